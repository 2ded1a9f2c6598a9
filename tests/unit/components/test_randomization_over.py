"""Models over each other: whose lines they are, where a stage stands among models of other depths, what is offered."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from components.charts.frame import NOTHING, ChartFrame
from components.experiment.runs import CachedResults, Run
from components.randomization import view
from components.randomization.charts import class_chart, models_chart, models_table, numbers_table, same_stages
from components.randomization.page import describe_means, method_verdicts
from components.randomization.view import (
    NO_VERDICT,
    DrawnModel,
    compared_checks,
    describe_plan,
    drawn_models,
    mark_of,
    offered_checks,
)
from engine.experiments.sample import Sample
from engine.jobs import Job
from engine.randomization.curves import Curve, curves_of
from engine.randomization.plan import RandomizationPlan
from engine.randomization.result import ModelRandomization, stages_of
from engine.shipped.make import RANDOMIZATION_PLANS
from tests.unit.components.randomized import PLAN, found

FRAME = ChartFrame({"gradient_x_input": "Input x gradient"})
ONE_BLOCK = stages_of(PLAN, 1)


def held(plan: RandomizationPlan, *models: ModelRandomization) -> CachedResults:
    return CachedResults(plan, Mock(spec=Sample), models)


def shallow() -> ModelRandomization:
    """A model of one block, whose map keeps a half of its order."""
    known = found()
    half = known.likeness[:2] * 0 + 0.5
    return found(
        model="small", stages=ONE_BLOCK, likeness=half, why=known.why[:2], after=known.after[:2],
        changed=known.changed[:2],
    )  # fmt: skip


def of(metric: str, *models: ModelRandomization, method: str = "gradient_x_input") -> list[Curve]:
    made = (curve for one in models for curve in curves_of(one))
    return [one for one in made if (one.mode, one.metric, one.method) == ("cascading", metric, method)]


def test_models_of_one_depth_stand_on_the_same_stages() -> None:
    curves = of("spearman", found(), found(model="model-b"))
    assert same_stages(curves)
    data = models_table(curves)
    assert data["name"].tolist() == ["model-a"] * 3 + ["model-b"] * 3
    assert data["at"].tolist() == [0, 1, 2] * 2
    spec = json.loads(models_chart(curves, FRAME, (-0.2, 1.0)).to_json())
    assert '["original", "2", "1"]' in json.dumps(spec).replace("\\", "")


def test_models_of_other_depths_stand_on_the_share_of_their_parts() -> None:
    curves = of("spearman", found(), shallow())
    assert not same_stages(curves)
    data = models_table(curves)
    assert data["at"].tolist() == pytest.approx([0, 0.5, 1, 0, 1])
    assert data["percent"].tolist() == [0, 1, 2, 0, 1], "a click still says the stage"
    assert data["value"].tolist()[-1] == pytest.approx(0.5)
    spec = models_chart(curves, FRAME, (-0.2, 1.0)).to_dict()
    line = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "line")
    assert line["encoding"]["x"]["scale"]["domain"] == [0, 1]
    assert line["encoding"]["color"]["scale"]["domain"] == ["model-a", "small"]


def test_each_model_says_how_likely_its_own_class_is() -> None:
    spec = class_chart(of("probability", found(), shallow(), method=""), FRAME).to_dict()
    whole = max(spec["datasets"].values(), key=len)
    assert [row["value"] for row in whole] == pytest.approx([0.8, 0.6, 0.6, 0.8, 0.6])


def test_a_method_without_an_order_on_any_model_draws_nothing_and_says_so() -> None:
    flat = of("spearman", found(), method="gradient")
    assert NOTHING in models_chart(flat, FRAME, (0.0, 1.0)).to_json()


def test_the_table_names_the_model_first() -> None:
    table = numbers_table(of("spearman", found(), shallow()), FRAME.titles, models=True)
    assert list(table.columns)[:3] == ["Model", "Line", "Randomized"]
    assert table["Model"].tolist() == ["model-a", "model-a", "small"]


def test_a_verdict_a_model_of_one_method() -> None:
    drawn = drawn_models([held(PLAN, found(), shallow())])
    judged = method_verdicts("gradient_x_input", drawn, "text")
    assert [(name, one.method) for name, one in judged] == [
        ("model-a", "gradient_x_input"), ("small", "gradient_x_input"),
    ]  # fmt: skip
    assert method_verdicts("lime", drawn, "text") == []


@pytest.mark.parametrize(
    ("datasets", "models", "names"),
    [
        (("reviews",), (("a", "b"),), ["a", "b"]),
        (("reviews", "nli"), (("a",), ("a",)), ["a on reviews", "a on nli"]),
        (("reviews", "reviews"), (("a", "b"), ("a",)), ["a", "b", "a (2)"]),
    ],
)
def test_what_is_drawn_together_has_names_of_its_own(
    datasets: Sequence[str], models: Sequence[Sequence[str]], names: list[str]
) -> None:
    every = [
        held(RandomizationPlan(tuple(own), data), *(found(model=one, dataset=data) for one in own))
        for data, own in zip(datasets, models, strict=True)
    ]
    assert [one.name for one in drawn_models(every)] == names


def test_other_checks_that_are_finished_are_offered_and_those_that_are_not_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = RANDOMIZATION_PLANS["text"]
    other = dataclasses.replace(text, dataset="nli")
    done, failed = (Mock(spec=Job, id=1, finished=1.0, state=state, over=True) for state in ("done", "failed"))
    before: list[Run] = [(done, other), (failed, dataclasses.replace(text, seed=1))]
    there = offered_checks(dataclasses.replace(text, seed=2), before)
    assert list(there.values()) == [other, text]
    assert describe_plan(other).startswith("reviews-minilm on nli: 16 examples, ")
    monkeypatch.setattr(view, "results_of", lambda plan, ended: held(plan, found()))
    drawn, said = compared_checks([mark_of(other), "0000000000"], there, before)
    assert [one.plan for one in drawn] == [other]
    assert len(said) == 1
    assert "0000000000" in said[0]
    assert isinstance(drawn_models(drawn)[0], DrawnModel)


def page(method: str) -> None:
    from components.experiment.state import ExperimentState
    from components.randomization.page import method_area
    from components.randomization.view import RandomizationView, drawn_models
    from engine.randomization.curves import curves_of
    from tests.unit.components.randomized import found
    from tests.unit.components.test_randomization_over import PLAN, held

    drawn = drawn_models([held(PLAN, found())])
    curves = {one.name: curves_of(one.found) for one in drawn}
    state = ExperimentState(kind="text", plan=PLAN, view=RandomizationView())
    method_area(state, method, drawn, curves, {}, (-0.2, 1.0))


@pytest.mark.parametrize(("method", "judged"), [("gradient_x_input", True), ("lime", False)])
def test_a_method_is_judged_or_it_is_said_why_it_is_not(method: str, judged: bool) -> None:
    shown = AppTest.from_function(page, args=(method,), default_timeout=60).run()
    assert not shown.exception
    said = [one.proto.body for one in shown.get("html")]
    assert any(NO_VERDICT in one for one in said) is not judged
    assert any(f"Verdicts on {method}" in one for one in said) is judged


def test_the_caption_counts_examples_and_randomizations_of_all_models() -> None:
    two = drawn_models([held(PLAN, found(), found(model="b", examples=(1, 2)))])
    assert describe_means(two[:1]).startswith("Means over 3 examples and 2 randomizations; bands are 95% intervals.")
    assert describe_means(two).startswith("Means over 2 to 3 examples and 2 randomizations;")
