"""Experiments, comparisons and questions of the Python interface: the plans, keys and numbers of the commands."""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import exegesis
from engine.attacks.plan import AttackParams, AttackPlan
from engine.cli.root import app
from engine.comparison.agreement import AgreementOptions
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.experiments.options import options_of
from engine.experiments.run import finished
from engine.metrics.ranking import spearman
from engine.randomization.plan import RandomizationPlan
from exegesis.display import working
from exegesis.experiments import documented, make_plan
from exegesis.questions import EXPLAINING
from tests.unit.experiments.toy import TOY

MODEL, DATA = "bert-marked", "reviews-marked"


@pytest.fixture(scope="module")
def evaluation() -> exegesis.ExperimentRun:
    return exegesis.evaluate(
        MODEL, DATA, {"occlusion": {"window": 2}, "gradient_x_input": {}}, examples=3, metrics="mean_rank",
        second_removal="none", progress=False,
    )  # fmt: skip


def command(*arguments: str) -> Any:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_an_evaluation_is_that_of_the_command(evaluation: exegesis.ExperimentRun, tmp_path: Path) -> None:
    arguments = ["evaluate", "--models", MODEL, "--dataset", DATA, "--methods", "occlusion,gradient_x_input"]
    arguments += ["--examples", "3", "--metrics", "mean_rank", "--second-removal", "none"]
    arguments += ["--param", "occlusion.window=2", "--out", str(tmp_path / "rows.parquet")]
    assert command(*arguments) == evaluation.to_dict()
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "rows.parquet"), evaluation.to_pandas(), check_dtype=False)
    assert finished(evaluation.plan) is not None  # under the key of the page


@pytest.mark.parametrize(
    ("function", "plan"),
    [(exegesis.evaluate, EvaluationPlan), (exegesis.randomize, RandomizationPlan), (exegesis.attack, AttackPlan)],
)
def test_every_field_of_a_plan_is_an_argument(function: Any, plan: type) -> None:
    parameters = inspect.signature(function).parameters
    own = {*options_of(plan), *(options_of(AttackParams) if plan is AttackPlan else ())}
    fields = own - {"attack", "objective"}
    assert fields <= set(parameters)
    assert parameters["examples"].default == options_of(plan)["examples"].default
    assert all(f"    {name} : " in str(function.__doc__) for name in fields - {"models", "dataset", "methods"})


def test_a_new_experiment_has_its_arguments_without_a_line() -> None:
    @documented(TOY)
    def toy(models: Any, dataset: Any, methods: Any = None, **options: Any) -> Any:
        """Count.

        **options
        """

    assert inspect.signature(toy).parameters["unit"].default == "letter"
    assert "    unit : str, default 'letter'\n        What is counted. One of: letter, word." in str(toy.__doc__)
    assert make_plan(TOY, MODEL, "reviews", "random", {"unit": "word"}).unit == "word"


def test_a_loaded_model_and_a_data_frame_make_a_plan() -> None:
    from engine.models.loading import load_model

    model = load_model(MODEL)
    frame = pd.DataFrame({"text": ["a film positive", "a film negative"], "label": ["positive", "negative"]})
    options = {"tokenizer": model.tokenizer, "params": {"lime": {"seed": 1}}}
    plan = make_plan(EVALUATE, model.module, frame, ["occlusion"], options)
    assert Path(plan.models[0]).is_dir()
    assert Path(plan.dataset).is_file()
    assert plan.methods == ("occlusion",)
    assert plan.dtype == "float32"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exegesis.evaluate(MODEL, DATA, exmples=3), "option of evaluate: unknown name 'exmples'. Did"),
        (lambda: exegesis.evaluate(MODEL, DATA, examples=0), "examples: must be a whole number of at least 1, got 0."),
        (lambda: exegesis.evaluate(MODEL, DATA, metrics=3.5), "metrics: must be a list, got 3.5."),
        (lambda: exegesis.evaluate(MODEL, DATA, metrics=["mean"]), "metric: unknown name 'mean'."),
        (lambda: exegesis.evaluate([], DATA), "models: must name at least one, got none."),
        (lambda: exegesis.attack(MODEL, DATA), "methods: is missing."),
        (lambda: exegesis.attack(MODEL, DATA, "gradient", steps=0), "attack.steps: must be a whole number from 1"),
        (lambda: exegesis.attack(MODEL, DATA, "lime"), "methods: lime cannot be attacked"),
        (lambda: exegesis.compare(["lime@bert-marked"], "a"), "columns: must be 2 to 8 pairs"),
        (lambda: exegesis.compare([3, 4], "a"), "columns: must be method@model or (method, model), got 3."),
        (lambda: exegesis.compare([("lime", MODEL), ("random", MODEL)]), "compare: needs text or dataset, got none"),
        (lambda: exegesis.compare([("lime", MODEL), ("random", MODEL)], "a", unit="patch"), "unit: unknown name"),
        (lambda: exegesis.ask("sing me a song", progress=False), ""),
    ],
)  # fmt: skip
def test_wrong_options_are_named(call: Any, message: str) -> None:
    with pytest.raises(exegesis.UsageError) as error:
        call()
    assert str(error.value).startswith(message)


def test_an_attack_takes_the_parameters_of_the_attack() -> None:
    plan = make_plan(exegesis.experiments.ATTACK, MODEL, DATA, "gradient", {"steps": 7, "objectives": "constrained"})
    assert (plan.attack, plan.objectives) == ({"steps": 7}, ("constrained",))


def test_runs_are_saved_and_reloaded(evaluation: exegesis.ExperimentRun, tmp_path: Path) -> None:
    own = exegesis.randomize(MODEL, DATA, "gradient_x_input", examples=2, seeds=1, modes="independent", progress=False)
    hit = exegesis.attack(MODEL, DATA, "gradient_x_input", examples=1, steps=3, starts=1, progress=False)
    for number, before in enumerate((evaluation, own, hit)):
        after = exegesis.load(before.save(tmp_path / f"{number}.npz"))
        assert isinstance(after, exegesis.ExperimentRun)
        assert (after.id, after.plan, after.rows()) == (before.id, before.plan, before.rows())
        assert after.to_dict() == before.to_dict()
        assert str(after) == str(before)
        assert str(before).splitlines()[0] in before._repr_html_()
    frame = exegesis.load(own.save(tmp_path / "rows.csv"))
    assert len(frame) == len(own.to_pandas()) > 0


def test_a_comparison_of_one_input_measures_agreement(tmp_path: Path) -> None:
    text = "A fine and funny film. positive"
    columns = [("occlusion", MODEL), ("gradient_x_input", MODEL), "occlusion,window=2@bert-marked"]
    found = exegesis.compare(columns, text, unit="token", progress=False)
    maps = exegesis.explain(MODEL, text, ["occlusion", "gradient_x_input"], progress=False)
    scores = [one.scores[one.features] for one in maps]
    row = found.rows()[0]
    assert row["spearman"] == pytest.approx(spearman(*scores), abs=1e-12)
    assert row["other"] == "gradient_x_input@bert-marked"
    methods = ("occlusion", "gradient_x_input", "occlusion,window=2")
    pairs = [part for method in methods for part in ("--column", f"{method}@{MODEL}")]
    printed = command("compare", *pairs, "--text", text, "--unit", "token")
    for one in (*printed["columns"], *found.plain["columns"]):
        one["cached"] = True
    assert printed == found.to_dict()
    again = exegesis.load(found.save(tmp_path / "compared.npz"))
    assert (again.input, again.plan, again.rows()) == (found.input, found.plan, found.rows())
    assert "xg-row" in found._repr_html_()


def test_a_search_for_disagreement_is_that_of_the_command(tmp_path: Path) -> None:
    found = exegesis.compare(["occlusion@bert-marked", "random@bert-marked"], dataset=DATA, examples=3, progress=False)
    printed = command("compare", "--column", f"occlusion@{MODEL}", "--column", f"random@{MODEL}", "--dataset", DATA,
                      "--examples", "3")  # fmt: skip
    assert printed == found.to_dict()
    assert exegesis.load(found.save(tmp_path / "found.npz")).rows() == found.rows()
    assert AgreementOptions().measure == found.measure


def test_questions_are_answered() -> None:
    top = exegesis.ask("which words matter most in example 3 of reviews by occlusion?", progress=False)
    assert top.query.operation in EXPLAINING
    assert top.result.input == exegesis.example("reviews", 3)
    assert top.commands[0].startswith("exegesis explain --model reviews-minilm")
    edited = exegesis.ask("what if 'not' is deleted in 'This is not good'?", progress=False)
    assert [one.input.text for one in edited.results] == ["This is not good", "This is good"]
    assert edited.results[0].prediction.label != edited.results[1].prediction.label
    similar = exegesis.ask("how similar are 'a dull film' and 'a boring movie'?", progress=False)
    assert isinstance(similar.result, dict)
    assert similar.to_dict()["results"] == list(similar.results)
    assert "exegesis similarity" in similar._repr_html_()
    wrong = exegesis.ask("which examples of nli are misclassified?", model="bert-nli", progress=False)
    assert wrong.query.operation == "mistakes"
    first = wrong.result[0]
    again = exegesis.explain("bert-nli", exegesis.example("nli", first["index"]), "random", progress=False)
    assert first["label"] != first["predicted"] == again.prediction.label
    assert first["probability"] == pytest.approx(max(again.prediction.probabilities), abs=1e-5)
    assert [one["probability"] for one in wrong.result] == sorted(
        (r["probability"] for r in wrong.result), reverse=True
    )
    silent = exegesis.ask("which words matter most in example 3 of reviews?", run=False)
    with pytest.raises(exegesis.ExegesisError, match="the question was not run"):
        _ = silent.result


class _Handle:
    def __init__(self, shown: list[str], first: str) -> None:
        self.shown = shown
        self.shown.append(first)

    def update(self, html: str) -> None:
        self.shown.append(html)


def test_a_notebook_shows_a_bar_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    display = types.SimpleNamespace(HTML=str, display=lambda html, display_id: _Handle(shown, html))
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(display=display, get_ipython=lambda: shell))
    exegesis.explain(MODEL, "A fine film. <b>positive", "random")
    assert "explaining" in shown[0]
    assert shown[-1] == ""
    assert any('value="1" max="1"' in one for one in shown)
    assert "&lt;b&gt;" in exegesis.display.bar_html("<b>", 0, 0)
    count = len(shown)
    exegesis.explain(MODEL, "A fine film. positive", "random", progress=False)
    assert len(shown) == count


def test_an_interrupt_stops_between_two_parts_and_gives_the_handler_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with working("x", False) as (_, cancel):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(exegesis.Cancelled, match="Finished parts are kept"):
            cancel.check()
    assert signal.getsignal(signal.SIGINT) is before


def test_numbers_do_not_depend_on_how_a_method_is_named() -> None:
    one = exegesis.explain(MODEL, "A fine film. positive", "occlusion", progress=False)
    other = exegesis.explain(MODEL, "A fine film. positive", [{"occlusion": {"window": 1}}], progress=False)
    np.testing.assert_array_equal(one[0].scores, other[0].scores)
    assert other[0].cached
