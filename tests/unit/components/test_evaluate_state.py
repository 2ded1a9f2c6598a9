"""The Evaluate page's state in a link and back, what a link may get wrong, and the plan that it asks for."""

from __future__ import annotations

import dataclasses

import pytest

from components.evaluate.look import Look, Point, as_fields
from components.evaluate.state import SHARES, EvaluateState, of_plan, plan_of, read, read_shares, usual, write
from engine.errors import UsageError
from engine.evaluation.plan import Plan
from engine.registry import all_explainers

TEXT = all_explainers("text")
FULL = EvaluateState(
    kind="text",
    models=("a folder/with spaces", "owner/name"),
    data="hub:owner/set",
    methods=("lime", "ensemble_top3"),
    examples=7,
    split="dev",
    metrics=("gt_overlap", "sensitivity"),
    seed=3,
    unit="word",
    removal="pad",
    shares="10,30",
    params={"lime": {"n_samples": "64", "removal": "delete"}},
    look=Look(
        view="scaling", sort="mean_rank", metric="gt_overlap", other="complexity", way="with_top", slice="length",
        inside="cost", cost="seconds", model="owner/name", family="T5", over="training",
        order="index", only=("lime", "random"), columns=("token_f1", "mean_rank"),
        point=as_fields(Point("owner/name", "lime", "with_top", "", "50", "label: a|b")),
    ),
)  # fmt: skip


@pytest.mark.parametrize("state", [usual("text"), usual("image"), FULL], ids=["text", "image", "full"])
def test_a_link_reopens_the_state(state: EvaluateState) -> None:
    assert read(state.kind, write(state), all_explainers(state.kind)) == (state, [])


def test_what_is_usual_is_not_written() -> None:
    assert write(usual("text")) == {"input": ["text"]}
    assert write(dataclasses.replace(usual("text"), seed=4)) == {"input": ["text"], "seed": ["4"]}


def test_no_model_and_no_method_stay_none() -> None:
    state = dataclasses.replace(usual("text"), models=(), methods=())
    assert read("text", write(state), TEXT) == (state, [])


def test_each_thing_that_is_not_known_is_said_and_the_usual_stands_instead() -> None:
    query = {
        "method": ["nonsense", "random"], "metric": ["<b>", "gt_overlap"], "examples": ["0"], "seed": ["-1"],
        "unit": ["patch"], "removal": ["blur"], "view": ["pie"], "sort": ["best"], "point": ["a", "b"],
        "lime.n_samples": ["many"], "column": ["all"],
    }  # fmt: skip
    state, said = read("text", query, TEXT)
    assert len(said) == 11
    assert (state.methods, state.metrics, state.examples, state.seed) == (("random",), ("gt_overlap",), 40, 0)
    assert (state.unit, state.removal, state.look, state.params.get("lime", {})) == ("", "", Look(), {})
    named = ("method", "metric", "examples", "seed", "unit", "removal", "view", "sort", "point", "lime", "column")
    for name in named:
        assert any(sentence.startswith(name) for sentence in said), name


def test_a_point_needs_a_metric_and_a_percent_that_there_are() -> None:
    for point in (["m", "lime", "nonsense", "", "", ""], ["m", "lime", "with_top", "", "101", ""]):
        state, said = read("text", {"point": point}, TEXT)
        assert state.look.picked is None
        assert said[0].startswith("point: must be")
    state, _ = read("text", {"point": ["m", "lime", "with_top", "", "50", ""]}, TEXT)
    assert state.look.picked == Point("m", "lime", "with_top", percent="50")
    assert state.look.picked.at == 50


def test_the_plan_is_that_of_the_command_and_comes_back() -> None:
    plan = plan_of(FULL, TEXT)
    assert plan == Plan(
        models=FULL.models, dataset="hub:owner/set", methods=FULL.methods, metrics=FULL.metrics, examples=7, seed=3,
        split="dev", unit="word", removal="pad", shares=(10, 30),
        params={"lime": {"n_samples": 64, "removal": "delete"}},
    )  # fmt: skip
    assert plan_of(usual("text"), TEXT).removal is None
    embedded = dataclasses.replace(plan, models=("reviews-minilm",))
    assert of_plan(embedded, FULL.look) == dataclasses.replace(FULL, models=("reviews-minilm",))


def test_parameters_of_methods_that_are_not_chosen_are_not_asked_for() -> None:
    assert plan_of(dataclasses.replace(FULL, methods=("random",)), TEXT).params == {}


@pytest.mark.parametrize("given", ["", "5,", "0", "101", "5,5", "five", "5;10", "-5", "1e1", "５x"])
def test_shares_that_are_no_percentages_are_refused(given: str) -> None:
    with pytest.raises(UsageError, match="shares: must be different whole percentages from 1 to 100"):
        read_shares(given)


def test_shares_are_read_with_spaces() -> None:
    assert read_shares(" 5, 10 ,20") == (5, 10, 20)
    assert read_shares(SHARES) == (5, 10, 20, 50)
