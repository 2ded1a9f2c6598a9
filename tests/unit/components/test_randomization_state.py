"""The Randomization page's state in a link and back, what a link may get wrong, and the plan that it asks for."""

from __future__ import annotations

import dataclasses

import pytest

from components.experiment.page import command_line
from components.experiment.state import ExperimentState, plan_of, read_state, write_state
from components.randomization.view import RandomizationView, describe_plan, examples_note
from engine.randomization.curves import FEW, Curve, CurvePoint, judge
from engine.randomization.plan import RANDOMIZE, THESIS_METHODS, RandomizationPlan
from engine.randomization.result import Stage
from engine.registry import all_explainers
from engine.shipped.make import RANDOMIZATION_PLANS

PLAN = RandomizationPlan(
    models=("a folder/with spaces", "owner/name"),
    dataset="hub:owner/set",
    methods=("lime", "gradient_l2"),
    examples=7,
    seeds=5,
    modes=("independent",),
    head=True,
    embeddings=True,
    split="dev",
    seed=3,
    params={"lime": {"n_samples": 64}},
)
VIEW = RandomizationView(
    measure="top_k", model="owner/name", only=("lime",), beside=("0123456789",), lines="lime", of="owner/name",
    way="independent", stage=2, example="17", order="most", by="lime", draw=2, scale="shared",
)  # fmt: skip
FULL = ExperimentState(kind="text", plan=PLAN, view=VIEW)


def usual(kind: str, **changed: object) -> ExperimentState:
    """What the page opens with, or with fields of the plan that differ."""
    plan = dataclasses.replace(RANDOMIZE.opens_with[kind], **changed)
    return ExperimentState(kind=kind, plan=plan, view=RandomizationView())


def read(kind: str, query: dict[str, list[str]]) -> tuple[ExperimentState, list[str]]:
    return read_state(RANDOMIZE, RandomizationView, kind, query, all_explainers(kind))


@pytest.mark.parametrize("state", [usual("text"), usual("image"), FULL], ids=["text", "image", "full"])
def test_a_link_reopens_the_state(state: RandomizationState) -> None:
    assert read(state.kind, write_state(state)) == (state, [])


def test_what_is_usual_is_not_written() -> None:
    assert write_state(usual("text")) == {"input": ["text"]}
    assert write_state(usual("text", head=True)) == {"input": ["text"], "head": ["on"]}


def test_no_model_no_method_and_no_mode_stay_none() -> None:
    state = usual("text", models=(), methods=(), modes=())
    assert read("text", write_state(state)) == (state, [])


def test_each_thing_that_is_not_known_is_said_and_the_usual_stands_instead() -> None:
    query = {
        "method": ["nonsense", "gradient"], "examples": ["0"], "seeds": ["0"], "mode": ["upwards", "cascading"],
        "head": ["perhaps"], "seed": ["-1"], "measure": ["ssim"], "way": ["up"], "stage": ["x"], "example": ["first"],
        "draw": ["0"], "order": ["best"], "scale": ["log"],
    }  # fmt: skip
    state, said = read("text", query)
    assert len(said) == len(query)
    assert any(one.startswith("measure: ") and "spearman, spearman_abs, top_k" in one for one in said)
    assert state == usual("text", methods=("gradient",), modes=("cascading",))


def test_a_picture_has_one_measure_more() -> None:
    assert read("image", {"measure": ["ssim"]})[0].view.measure == "ssim"


def test_the_plan_is_that_of_the_command() -> None:
    unchosen = {"gradient_x_input": {"quantity": "probability"}}
    plan = plan_of(dataclasses.replace(FULL, plan=dataclasses.replace(PLAN, params={**PLAN.params, **unchosen})))
    assert plan == PLAN, "parameters of methods that are not chosen are left out"
    assert command_line(plan) == (
        "exegesis randomize --models 'a folder/with spaces,owner/name' --dataset hub:owner/set --methods "
        "lime,gradient_l2 --examples 7 --seed 3 --seeds 5 --mode independent --split dev --head --embeddings "
        "--param lime.n_samples=64 --out rows.csv"
    )
    assert command_line(RandomizationPlan(("m",), "d")) == (
        f"exegesis randomize --models m --dataset d --methods {','.join(THESIS_METHODS)} --out rows.csv"
    )


@pytest.mark.parametrize("kind", ["text", "image"])
def test_the_page_opens_with_what_is_shipped(kind: str) -> None:
    assert plan_of(usual(kind)) == RANDOMIZATION_PLANS[kind]


@pytest.mark.parametrize(
    ("examples", "note"),
    [
        (5, "A verdict on a method needs at least 5 examples with a rank correlation."),
        (4, "A verdict on a method needs at least 5 examples with a rank correlation. 4 are too few."),
        (1, "A verdict on a method needs at least 5 examples with a rank correlation. 1 is too few."),
    ],
)
def test_the_examples_that_a_verdict_needs_are_named_beforehand(examples: int, note: str) -> None:
    assert examples_note(examples) == note


@pytest.mark.parametrize("kind", ["text", "image"])
def test_the_page_opens_with_enough_examples_for_verdicts(kind: str) -> None:
    assert RANDOMIZATION_PLANS[kind].examples >= FEW


def test_the_rule_is_that_of_the_verdicts() -> None:
    stage = Stage("cascading", "1", 1, ("1",))
    for n in (FEW - 1, FEW):
        points = (CurvePoint(stage, 0.0, (-0.1, 0.1), n, (0.0,), {}),)
        verdict = judge(Curve("m", "d", "gradient_l2", "spearman", "cascading", 1.0, points))
        assert (verdict.kind == "unsure") is ("too few" in examples_note(n))


def test_the_settings_are_summarized_in_one_line() -> None:
    assert describe_plan(PLAN) == (
        "a folder/with spaces, owner/name on hub:owner/set: 7 examples, 5 randomizations, 2 methods"
    )
