"""`exegesis evaluate`: tidy files, the leaderboard, what is not computed again, and what is refused in one line."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pandas
import pytest

import engine.cli.experiments as run_module
import engine.evaluation.measurement as explanations
from engine import runtime
from engine.cli.experiments import with_absolute_paths
from engine.errors import ExegesisError
from engine.evaluation import result
from engine.evaluation.experiment import evaluate, rows
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import COLUMNS
from engine.jobs import list_jobs
from engine.metrics.plausibility import ALL, NOTHING
from engine.metrics.results import BY_BATCH, EQUAL
from engine.progress import CancelToken
from engine.request import Request
from engine.table_io import unescape_cell
from tests.unit.cli.conftest import Ran, Run
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")

METHODS = ("gradient_x_input", "gradient_l2")


@pytest.fixture
def reviews(tmp_path: Path) -> str:
    return written(tmp_path / "reviews.jsonl", REVIEWS)


def ran(run: Run, bert: str, reviews: str, *more: str) -> Ran:
    done = run("evaluate", "--models", bert, "--dataset", reviews, "--methods", ",".join(METHODS), *more)
    assert (done.code, done.err) == (0, ""), done.err
    return done


def test_the_files_hold_a_row_a_value_and_are_those_of_the_engine(
    run: Run, bert: str, reviews: str, tmp_path: Path
) -> None:
    found = evaluate([bert], reviews, METHODS, seed=3)
    expected = [row for one in found.models for row in rows(one)]
    for ending in ("csv", "json", "parquet"):
        done = ran(run, bert, reviews, "--seed", "3", "--out", str(tmp_path / f"rows.{ending}"))
        assert f"rows.{ending}, {len(expected):,} rows" in done.out
    assert json.loads((tmp_path / "rows.json").read_text()) == expected
    with open(tmp_path / "rows.csv", encoding="utf-8", newline="") as file:
        sheet = list(csv.DictReader(file))
    assert [list(row) for row in sheet] == [list(COLUMNS)] * len(expected)
    for row, value in zip(sheet, expected, strict=True):
        assert float(row["value"]) == value["value"]
        assert (row["percent"], unescape_cell(row["model"])) == (str(value["percent"] or row["percent"] or ""), bert)
    table = pandas.read_parquet(tmp_path / "rows.parquet")
    assert list(table.columns) == list(COLUMNS)
    assert table["value"].tolist() == [value["value"] for value in expected]
    assert table["percent"].dropna().tolist() == [v["percent"] for v in expected if v["percent"] is not None]
    assert [file.name for file in tmp_path.iterdir() if "partial" in file.name] == []


def test_a_name_that_a_spreadsheet_would_run_is_defused(run: Run, bert: str, tmp_path: Path) -> None:
    data, out = written(tmp_path / "=1+1.jsonl", REVIEWS), tmp_path / "rows.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        ran(run, bert, Path(data).name, "--metrics", "complexity", "--out", str(out))
    with open(out, encoding="utf-8", newline="") as file:
        names = {row["dataset"] for row in csv.DictReader(file)}
    assert names == {"'=1+1.jsonl"}


def test_the_json_says_what_was_planned_and_what_came_of_it(run: Run, bert: str, reviews: str) -> None:
    told = ran(run, bert, reviews, "--metrics", "plausibility_auc,comprehensiveness", "--json").json
    assert set(told) == {"plan", "scores", "second_scores", "operators", "classes", "notes", "removal_rows"}
    assert told["plan"]["company"] == [*METHODS, "random"]
    found = evaluate([bert], reviews, METHODS, ["plausibility_auc", "comprehensiveness"])
    by_name = {(one["metric"], one["method"]): one for one in told["scores"]}
    for score in found.scores:
        one = by_name[score.metric, score.method]
        assert (one["value"], one["n"], one["skipped"]) == (score.value, score.n, dict(score.skipped))
        assert score.interval == (one["low"], one["high"])
    assert by_name["plausibility_auc", "random"]["skipped"] == {NOTHING: 1, ALL: 1}
    assert [one["best"] for one in told["scores"]].count(True) == 2


def test_probabilities_too_near_1_are_told_and_their_logits_measured(
    run: Run, bert: str, reviews: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result, "SATURATED", 0.49)
    monkeypatch.setattr(result, "LEAST_SPREAD", 2.0)
    asked = ("--metrics", "comprehensiveness,comprehensiveness_logit")
    told = f"The class probability is above 0.49 on most examples: {bert} on 6 of 6."
    out = ran(run, bert, reviews, *asked).out
    assert told in " ".join(out.split())
    assert "comprehensiveness_logit ↑" in out
    made = ran(run, bert, reviews, *asked, "--json").json
    assert [one.startswith(told) for one in made["notes"]] == [True]


def test_seconds_come_without_interval_and_rank_in_words(run: Run, bert: str, reviews: str) -> None:
    asked = ("--metrics", "seconds,evaluations")
    lines = ran(run, bert, reviews, *asked).out.splitlines()
    cells = [line.split() for line in lines if line.startswith(("seconds ↓", "evaluations ↓"))]
    assert {row[4] for row in cells} == {"-"}, "one measurement a batch, and counts that are all equal"
    assert {row[-1] for row in cells if row[0] == "seconds"}.isdisjoint({"best", "level"})
    assert {f"seconds: {BY_BATCH}", f"evaluations: {EQUAL}"} <= set(lines)
    scores = ran(run, bert, reviews, *asked, "--json").json["scores"]
    assert {one["doubt"] for one in scores} == {BY_BATCH, EQUAL}


def test_the_leaderboard_has_the_best_first_and_says_what_was_skipped(run: Run, bert: str, reviews: str) -> None:
    lines = ran(run, bert, reviews).out.splitlines()
    assert lines[0].startswith(f"{bert} on ")
    found = evaluate([bert], reviews, METHODS)
    means = {s.method: s.value for s in found.scores if s.metric == "comprehensiveness"}
    cells = [line.split() for line in lines if line.startswith("comprehensiveness ↑")]
    assert [row[2] for row in cells] == sorted(means, key=lambda name: -(means[name] or 0))
    assert [row[3] for row in cells] == [f"{value:.4g}" for value in sorted(means.values(), reverse=True)]
    assert cells[0][7:9] == ["6", "best"]
    assert found.second is not None
    by_delete = {s.method: f"{s.value:.4g}" for s in found.second.scores if s.metric == "comprehensiveness"}
    assert all(by_delete[row[2]] in row[8:] for row in cells)
    assert any(line.startswith("Tokens deleted instead of masked: The best method ") for line in lines)
    assert any(line.startswith("Sufficiency: ") for line in lines)
    alone = ran(run, bert, reviews, "--second-removal", "none").out
    assert "delete" not in alone
    [said] = [line for line in lines if line.endswith(f": {NOTHING}")]
    assert "1 example in gt_overlap, " in said
    assert not any("with_top" in line for line in lines[:-1] if "--metrics" not in line)
    named = ran(run, bert, reviews, "--metrics", "with_top,rank_spearman").out
    assert "with_top at 50% ↑" in named
    assert f"{METHODS[0]} with {METHODS[1]}" in named


def test_a_second_run_computes_nothing_and_neither_does_one_after_a_job(
    run: Run, bert: str, reviews: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("--metrics", "complexity,comprehensiveness", "--param", "integrated_gradients.n_steps=4")
    by = ("--methods", "integrated_gradients,gradient_l2")
    first = ran(run, bert, reviews, *asked, *by, "--job", "--json").json
    assert [(job.kind, job.state) for job in list_jobs()] == [("evaluate", "done")]

    def refuse(*args: Any, **more: Any) -> Any:
        raise AssertionError("a model was run")

    monkeypatch.setattr(explanations, "explain_many", refuse)
    again = ran(run, bert, reviews, *asked, *by, "--json").json
    assert again["scores"] == first["scores"]
    assert again["removal_rows"] == {"asked": 0, "run": 0}
    whole = evaluate([bert], reviews, ["integrated_gradients", "gradient_l2"], ["complexity", "comprehensiveness"],
                     params={"integrated_gradients": {"n_steps": 4}})  # fmt: skip
    assert whole.plan.as_plain()["params"] == again["plan"]["params"]


def test_a_job_names_files_by_absolute_paths_so_that_any_folder_can_resume_it(
    run: Run, bert: str, reviews: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(reviews).parent)
    name = f"{Path(reviews).name}:slice=few,rows=0-3"
    ran(run, bert, name, "--metrics", "complexity", "--methods", "random", "--job")
    [job] = list_jobs()
    assert job.spec["dataset"] == f"{reviews}:slice=few,rows=0-3"
    plan = EvaluationPlan(("reviews-minilm",), "reviews", ("random",))
    assert with_absolute_paths(plan) == plan, "names of the project stay"


def test_a_failing_example_is_told_and_the_others_go_on(
    run: Run, bert: str, reviews: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = explanations.explain_many

    def explain_many(requests: list[Request]) -> Any:
        if any(one.example.as_plain().get("text") == REVIEWS[1]["text"] for one in requests):
            raise ExegesisError("model bert: its logits are not finite numbers.")
        return real(requests)

    monkeypatch.setattr(explanations, "explain_many", explain_many)
    told = ran(run, bert, reviews, "--metrics", "complexity").out
    assert "1 example in complexity: model bert: its logits are not finite numbers." in told


def test_what_is_stopped_says_how_to_go_on(run: Run, bert: str, reviews: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = run_module.carry_out

    def stopped(plan: Any, report: Any, cancel: CancelToken, **where: Any) -> Any:
        cancel.cancel()
        return real(plan, report, cancel, **where)

    monkeypatch.setattr(run_module, "carry_out", stopped)
    done = run("evaluate", "--models", bert, "--dataset", reviews, "--methods", "random")
    assert done.complaint(130) == "evaluate: stopped; finished parts are stored. Run the same command to resume."


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--methods", "random"), "--dataset: is missing. Example: --dataset reviews."),
        (("--dataset", "reviews"), "--methods: is missing. Give one or more, separated by commas, or all. Known: "),
        (("--dataset", "reviews", "--methods", "limee"), "method: unknown name 'limee'. Did you mean 'lime'?"),
        (("--dataset", "reviews", "--methods", "random", "--metrics", "auc"), "metric: unknown name 'auc'."),
        (("--dataset", "reviews", "--methods", "random", "--models", "a,"), "model: unknown name 'a'."),
        (("--dataset", "reviws", "--methods", "random"), "dataset: unknown name 'reviws'."),
        (("--dataset", "reviews", "--methods", "random", "--examples", "0"), "--examples: must be a whole number"),
        (("--dataset", "reviews", "--methods", "random", "--unit", "patch"), "unit: unknown name 'patch'."),
        (("--dataset", "reviews", "--methods", "random", "--removal", "blur"), "removal: "),
        (("--dataset", "reviews", "--methods", "random", "--shares", "0"), "shares: must be at least one"),
        (("--dataset", "reviews", "--methods", "lime", "--param", "lime.x=1"), "--param: parameter of lime: unkn"),
        (("--dataset", "reviews", "--methods", "random", "--out", "a.xlsx"), "--out: must be a file whose name"),
        (("--dataset", "reviews", "--methods", "random", "--out", "/no/a.csv"), "--out: /no is not a folder."),
        (
            ("--dataset", "reviews", "--methods", "random", "--executor", "rai"),
            "executor: unknown name 'rai'. Did you m",
        ),
        (
            ("--dataset", "reviews", "--methods", "random", "--address", "a:1"),
            "address: only applies to executor ray",
        ),
        (
            ("--dataset", "reviews", "--methods", "random", "--executor", "ray", "--job"),
            "--job: runs on this",
        ),
        (("--dataset", "reviews", "--methods", "random", "--split", "tset"), "split: "),
    ],
)
def test_what_is_wrong_is_told_in_one_line(run: Run, args: tuple[str, ...], said: str) -> None:
    assert run("evaluate", *args).complaint(2).startswith(said)


def test_where_nothing_could_be_explained_the_command_says_so_and_fails(
    run: Run, bert: str, reviews: str, tmp_path: Path
) -> None:
    broken = shutil.copytree(bert, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"nothing")
    done = run(
        "evaluate", "--models", str(broken), "--dataset", reviews, "--methods", METHODS[0], "--metrics", "complexity"
    )
    assert (done.code, done.err) == (1, "error: evaluate: no example could be explained; see the reasons above.\n")
    assert "skipped on" in done.out


def test_notes_of_the_work_are_printed_beside_the_result_once(
    run: Run, bert: str, reviews: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out = run_module.carry_out

    def noted(*given: Any, **more: Any) -> Any:
        runtime.note("2 examples failed on the cluster")
        runtime.note("2 examples failed on the cluster")
        return carry_out(*given, **more)

    monkeypatch.setattr(run_module, "carry_out", noted)
    done = run("evaluate", "--models", bert, "--dataset", reviews, "--methods", "random", "--metrics", "complexity")
    assert (done.code, done.err) == (0, "note: 2 examples failed on the cluster\n")
