"""`exegesis scaffold`: tidy files, the table, the learned explainer, and what is refused in one line."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pandas
import pytest

from engine.cli.scaffold import exception_lines
from engine.jobs import list_jobs
from engine.scaffold.experiment import load_result
from engine.scaffold.learned_explainer import load
from engine.scaffold.plan import NONE, SMAT, ScaffoldPlan, StudentRun
from engine.scaffold.result import COLUMNS, ScaffoldResult, StudentResult, rows
from engine.scaffold.training import StudentTraining
from tests.unit.cli.conftest import Run
from tests.unit.scaffold.plans import FEW, plan, saved, texts

pytestmark = pytest.mark.usefixtures("home")


def asked(folder: Path, settings: str = f"{NONE},{SMAT}", **more: str) -> list[str]:
    """The command of `plans.plan`."""
    recipe = [part for name, value in FEW.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    given = [part for name, value in more.items() for part in (f"--{name.replace('_', '-')}", value)]
    return [
        "scaffold", "--teacher", saved("bert"), "--base", saved("bert", seed=1), "--dataset", texts(folder),
        "--settings", settings, "--train-sizes", "8", "--seeds", "0", *recipe, *given,
    ]  # fmt: skip


def test_the_files_hold_a_row_a_value_and_are_those_of_the_engine(run: Run, tmp_path: Path) -> None:
    for ending in ("csv", "json", "parquet"):
        done = run(*asked(tmp_path), "--job", "--out", str(tmp_path / f"rows.{ending}"))
        assert (done.code, done.err) == (0, ""), done.err
    [job] = [one for one in list_jobs() if one.computed]
    assert (job.kind, job.computed) == ("scaffold", 2)
    expected = list(rows(load_result(plan(tmp_path))))
    assert json.loads((tmp_path / "rows.json").read_text()) == expected
    table = pandas.read_parquet(tmp_path / "rows.parquet")
    assert (list(table.columns), len(table)) == (list(COLUMNS), len(expected))
    sheet = pandas.read_csv(tmp_path / "rows.csv")
    assert sheet["metric"].tolist() == [row["metric"] for row in expected]


def test_people_read_a_table_and_machines_all_of_it(run: Run, tmp_path: Path) -> None:
    told = run(*asked(tmp_path)).out
    lines = told.splitlines()
    assert lines[0] == f"students of {saved('bert')} on {tmp_path / 'texts.csv'}"
    assert [line.split()[0] for line in lines[3:5]] == ["none", "smat"]
    assert "Only 1 seed: quartiles are unreliable. The paper uses 5 seeds." in lines
    plain = run(*asked(tmp_path), "--json").json
    found = load_result(plan(tmp_path))
    assert [(one["setting"], one["values"]) for one in plain["cells"]] == [
        (outcome.run.setting, [outcome.simulability]) for outcome in found.students
    ]
    assert f"{plain['cells'][0]['median']:.3f} [" in lines[3]
    static, learned = plain["students"]
    assert (static["weights"], len(learned["weights"]), len(learned["weights"][0])) == (None, 3, 4)
    assert [one["pass"] for one in learned["passes"]] == [1, 2]
    assert (plain["metric"], plain["shape"], plain["explainer"]) == ("accuracy", [3, 4], None)


def test_a_learned_explainer_is_kept_and_used(run: Run, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    for place, folder in (("mine", tmp_path / "explainers"), (str(tmp_path / "kept" / "other"), tmp_path / "kept")):
        done = run(*asked(tmp_path), "--explainer", place, "--json")
        assert done.code == 0, done.err
        learned = load(done.json["explainer"])
        assert Path(done.json["explainer"]) == folder / learned.name
        assert learned.card.shape == (3, 4)
    used = run(
        "explain", "--model", saved("bert"), "--method", "smat", "--text", "a warm film", "--param", "explainer=mine"
    )
    assert used.code == 0, used.err
    assert "The learned explainer mine, from 8 examples" in used.out + used.err
    taken = run(*asked(tmp_path), "--explainer", "mine").complaint(2)
    assert taken.startswith("--explainer: must be a folder, or a name of letters, digits, dots, - and _ that is not")
    none = run(*asked(tmp_path, NONE), "--explainer", "another").complaint(2)
    assert none == "--explainer: requires the setting smat, got --settings none."


def test_the_same_command_goes_on_after_a_stop(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, begun = StudentTraining._epoch, list[int]()

    def stopping(self: StudentTraining, report: object) -> None:
        begun.append(self.position.epoch)
        if len(begun) == 2:
            signal.raise_signal(signal.SIGINT)
        real(self, report)  # type: ignore[arg-type]

    monkeypatch.setattr(StudentTraining, "_epoch", stopping)
    done = run(*asked(tmp_path, NONE))
    assert done.code == 130
    assert "scaffold: stopped; finished parts are stored. Run the same command to resume." in done.err
    assert run(*asked(tmp_path, NONE)).code == 0
    assert begun == [0, 1, 1]


def test_a_student_that_went_otherwise_is_told_in_words(run: Run, tmp_path: Path) -> None:
    told = run(*asked(tmp_path, NONE, inner_rate="1e30", clip="0")).out
    assert "none, 8 examples, seed 0: diverged: the loss became nan in step 2; it did not improve, so its state" in told
    assert "Try a lower --inner-rate." in told


def test_students_of_which_nothing_came_are_named_by_cell() -> None:
    def outcome(setting: str, seed: int, best: int, value: float | None = 0.5) -> StudentResult:
        return StudentResult(StudentRun(setting, 8, seed), value, best, 4, 1.0, "epochs", ())

    outcomes = (outcome(NONE, 0, -1), outcome(NONE, 1, -1), outcome(SMAT, 0, 1), outcome(SMAT, 1, 0, None))
    found = ScaffoldResult(
        ScaffoldPlan("a", "b", (NONE, SMAT), (8,), (0, 1, 2)),
        (2, 2),
        outcomes,
        "pearson",
        {StudentRun(SMAT, 8, 2): "why"},
    )
    lines = list(exception_lines(found))
    assert "No improvement on validation, so the state before training was measured" in lines[0]
    assert lines[0].endswith(": none, 8 examples, seeds 0, 1.")
    assert lines[1:] == [
        "smat, 8 examples, seed 1: no simulability, because its outputs are constant or not finite.",
        "1 student not trained: why",
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((), "--dataset: is missing. Example: --dataset reviews."),
        (("--dataset", "reviews", "--settings", "magic"), "setting: unknown name 'magic'."),
        (
            ("--dataset", "reviews", "--train-sizes", "0"),
            "--train-sizes: must be a whole number of at least 1, got '0'.",
        ),
        (("--dataset", "reviews", "--seeds", "one"), "--seeds: must be a whole number of at least 0, got 'one'."),
        (
            ("--dataset", "reviews", "--normalisation", "max"),
            "--normalisation: must be one of sparsemax, softmax",
        ),
        (("--dataset", "reviews", "--inner-rate", "fast"), "--inner-rate: must be a number of at least 0"),
        (("--dataset", "reviews", "--models", "a,b"), "--teacher: must be one model, got 'a,b'."),
        (("--dataset", "reviews", "--teacher", "no-such"), "model: unknown name 'no-such'."),
        (("--dataset", "scenes"), "dataset: scenes holds pictures, but the models read texts."),
        (("--dataset", "reviews", "--base", "bases/no"), "base: unknown name 'bases/no'."),
        (("--preset", "imd"), "preset: unknown name 'imd'. Did you mean 'imdb'? Known: cifar100, imdb, mlqe."),
        (
            ("--preset", "imdb"),
            "teacher: preset imdb needs google/electra-small-discriminator fine-tuned on imdb",
        ),
        (("--dataset", "reviews", "--out", "rows.txt"), "--out: must be a file whose name ends with one of .csv"),
        (("--dataset", "reviews", "--explainer", "no/such"), "--explainer: no is not a folder."),
        (("--dataset", "reviews", "--executor", "rai"), "executor: unknown name 'rai'. Did you mean 'ray'?"),
        (("--dataset", "reviews", "--job", "--executor", "ray"), "--job: runs on this machine"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in run("scaffold", *given).complaint(2)


def test_too_few_examples_end_the_command_with_what_is_needed(run: Run, tmp_path: Path) -> None:
    told = run(*asked(tmp_path, held_out="20")).complaint(1)
    assert "texts.csv has 40 examples, but the four splits need 44: 8 for training, 20 held out" in told


def test_a_preset_is_changed_by_what_else_is_given(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = list[ScaffoldPlan]()
    monkeypatch.setattr(
        "engine.cli.scaffold.run_scaffold",
        lambda plan, *rest: plans.append(plan) or ScaffoldResult(plan, (1, 2), ()),
    )
    done = run("scaffold", "--preset", "mlqe", "--teacher", saved("xlm-roberta", 1), "--epochs", "3", "--seeds", "1")
    assert "scaffold: no student could be trained" in done.err
    [made] = plans
    assert (made.train_sizes, made.seeds, made.base) == ((2100, 4200, 8400), (1,), "FacebookAI/xlm-roberta-base")
    assert (made.recipe.outer_rate, made.recipe.epochs) == (2e-4, 3)
