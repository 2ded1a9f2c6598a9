"""An experiment that is declared in one module has its command, link, widgets, job and files without another line."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas
import pytest
import typer
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

import tests.unit.experiments.toy as toy
from components.experiment.page import command_line
from components.experiment.state import ExperimentState, NoView, read_state, write_state
from engine import jobs
from engine.cli.experiments import command_of
from engine.errors import UsageError
from engine.experiments import base
from engine.experiments.base import experiment, register
from engine.experiments.options import options_of, page_options
from engine.experiments.run import carry_out, check, finished, key_of, missing_tasks, rows_of, sample_of
from engine.params import option
from engine.registry import all_explainers
from tests.app.options import open_options
from tests.unit.experiments.toy import TOY, ToyPlan
from tests.unit.randomization.making import TEXTS, reviews

pytestmark = pytest.mark.usefixtures("home")
MODEL = "reviews-minilm"
SECONDS = 60.0


@pytest.fixture
def plan(tmp_path: Path) -> ToyPlan:
    return ToyPlan((MODEL,), reviews(tmp_path), examples=2)


def command(*given: str) -> Any:
    app = typer.Typer()
    app.command("toy")(command_of(TOY, lambda result: (row["metric"] for row in rows_of(result))))
    return CliRunner().invoke(app, list(given))


def test_the_command_has_the_options_of_the_plan_and_writes_the_rows(plan: ToyPlan, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    given = ("--dataset", plan.dataset, "--examples", "2", "--unit", "word")
    printed = json.loads(command(*given, "--json", "--out", str(out)).stdout)
    assert printed["plan"]["unit"] == "word"
    assert [row["value"] for row in printed["rows"]] == [
        float(len(TEXTS[row["example"]].split())) for row in printed["rows"]
    ]
    assert pandas.read_parquet(out).to_dict("records") == printed["rows"]
    assert "What is counted." in command("--help").stdout
    assert "length" in command(*given).stdout
    assert isinstance(command("--dataset", plan.dataset, "--examples", "0").exception, UsageError)


def test_the_job_leaves_what_opens_without_work_and_a_cluster_has_a_task_a_group(plan: ToyPlan) -> None:
    spec = json.loads(json.dumps(plan.as_plain()))
    assert len(missing_tasks(plan, sample_of(plan))) == 2
    job = jobs.run_now(jobs.create("toy", spec))
    assert (job.state, job.title, job.total, job.computed) == ("done", f"Count letters of {plan.dataset}", 3, 3)
    with patch.object(toy, "_measure", side_effect=AssertionError("nothing is left to do")):
        assert finished(plan) == carry_out(plan)
    assert missing_tasks(plan, sample_of(plan)) == []
    with pytest.raises(UsageError, match="spec of a toy job: must have models and dataset, and may have"):
        jobs.create("toy", spec | {"letters": 3})
    with pytest.raises(UsageError, match="unit: unknown name 'line'"):
        jobs.create("toy", spec | {"unit": "line"})


def test_the_cache_key_knows_each_field(plan: ToyPlan) -> None:
    sample = sample_of(plan)
    other = dataclasses.replace(plan, unit="word")
    assert key_of(plan, sample) != key_of(other, sample)


def test_the_link_reopens_the_state_and_says_what_is_wrong(plan: ToyPlan) -> None:
    state = ExperimentState(kind="text", plan=dataclasses.replace(plan, unit="word"), view=NoView())
    link = write_state(state)
    assert link["unit"] == ["word"]
    assert read_state(TOY, NoView, "text", link, all_explainers("text")) == (state, [])
    _, wrong = read_state(TOY, NoView, "text", {"unit": ["line"]}, all_explainers("text"))
    assert wrong == ["unit: unknown name 'line'. Known: letter, word."]
    assert "--unit word" in command_line(state.plan)


def page() -> None:
    from components.experiment.page import ExperimentPage, experiment_page
    from components.experiment.state import ExperimentSession, NoView
    from tests.unit.experiments.toy import TOY

    experiment_page(ExperimentPage(ExperimentSession(TOY, "toy", NoView), "Texts are counted."))


def test_the_page_has_a_widget_a_field_and_runs_the_job(plan: ToyPlan) -> None:
    shown = AppTest.from_function(page, default_timeout=SECONDS)
    for name, value in {"data": plan.dataset, "examples": "2"}.items():
        shown.query_params[name] = value
    shown.run()
    assert not shown.exception
    open_options(shown, "toy_text_page.options")
    [unit] = [box for box in shown.selectbox if box.label == "Unit"]
    unit.select("word").run()
    assert shown.query_params["unit"] == "word"
    [start] = [button for button in shown.button if button.label == "Toy"]
    start.click().run()
    for job in jobs.list_jobs():
        assert jobs.wait(job.id, SECONDS).state == "done"
    shown.run()
    assert not shown.exception
    [table] = shown.dataframe
    assert table.value["value"].tolist() == [float(len(TEXTS[at].split())) for at in table.value["example"]]
    [repeat] = shown.code
    assert repeat.value.startswith("exegesis toy --models reviews-minilm --dataset ")


def test_a_new_field_is_one_line(plan: ToyPlan) -> None:
    """The line, and what follows from it: its option, its widget, its place in the link, the spec and the key."""

    @dataclasses.dataclass(frozen=True)
    class LongerPlan(ToyPlan):
        least: int = option(1, "The shortest text that counts.", low=1, high=9, metavar="N")

    longer = dataclasses.replace(TOY, plan=LongerPlan, opens_with={"text": LongerPlan((MODEL,), "reviews")})
    with patch.dict(base._experiments, {"toy": longer}):
        own = LongerPlan(**dataclasses.asdict(plan), least=3)
        assert longer.plan_of(json.loads(json.dumps(own.as_plain()))) == own
        assert "--least 3" in command_line(own)
        assert [one.flag for one in options_of(LongerPlan).values()][-1] == "--least"
        assert "least" in page_options(LongerPlan)
        state = ExperimentState(kind="text", plan=own, view=NoView())
        assert write_state(state)["least"] == ["3"]
        with pytest.raises(UsageError, match="least: must be a whole number from 1 to 9, got 10"):
            check(dataclasses.replace(own, least=10))
        sample = sample_of(own)
        assert key_of(own, sample) != key_of(dataclasses.replace(own, least=4), sample)


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="experiment 'toy' is registered twice"):
        register(dataclasses.replace(TOY, module="another"))
    assert experiment("toy") is TOY
    with pytest.raises(UsageError, match=r"experiment: unknown name 'toyy'\. Did you mean 'toy'\?"):
        experiment("toyy")
