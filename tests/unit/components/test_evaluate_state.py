"""The Evaluate page's state in a link and back, what a link may get wrong, and the plan that it asks for."""

from __future__ import annotations

import dataclasses

import pytest

from components.evaluate.view import EvaluationView, ScorePoint
from components.experiment.state import ExperimentState, plan_link, plan_of, read_state, state_of, write_state
from components.links import Query
from engine.errors import UsageError
from engine.evaluation.plan import EVALUATE, EvaluationPlan, parse_shares
from engine.registry import all_explainers

TEXT = all_explainers("text")
PLAN = EvaluationPlan(
    models=("a folder/with spaces", "owner/name"), dataset="hub:owner/set", methods=("lime", "ensemble_top3"),
    metrics=("gt_overlap", "sensitivity"), examples=7, seed=3, split="dev", unit="word", removal="pad",
    params={"lime": {"n_samples": 64, "removal": "delete"}},
)  # fmt: skip
FULL = ExperimentState(
    kind="text",
    plan=PLAN,
    view=EvaluationView(
        view="scaling", sort="mean_rank", metric="gt_overlap", other="complexity", way="with_top", slice="length",
        inside="cost", cost="seconds", model="owner/name", family="T5", over="training",
        order="index", only=("lime", "random"), columns=("token_f1", "mean_rank"),
        point=ScorePoint("owner/name", "lime", "with_top", "", "50", "label: a|b").as_fields(),
    ),
    texts={"shares": "10, 30"},
)  # fmt: skip


def usual(kind: str) -> ExperimentState:
    return dataclasses.replace(
        state_of(dataclasses.replace(EVALUATE.opens_with[kind]), EvaluationView), texts={"shares": "5,10,20,50"}
    )


def read(query: Query, kind: str = "text") -> tuple[ExperimentState, list[str]]:
    return read_state(EVALUATE, EvaluationView, kind, query, all_explainers(kind))


@pytest.mark.parametrize("state", [usual("text"), usual("image"), FULL], ids=["text", "image", "full"])
def test_a_link_reopens_the_state(state: ExperimentState) -> None:
    assert read(write_state(state), state.kind) == (state, [])


def test_what_is_usual_is_not_written() -> None:
    state = usual("text")
    assert write_state(state) == {"input": ["text"]}
    changed = dataclasses.replace(state, plan=dataclasses.replace(state.plan, seed=4))
    assert write_state(changed) == {"input": ["text"], "seed": ["4"]}


def test_no_model_and_no_method_stay_none() -> None:
    state = usual("text")
    state = dataclasses.replace(state, plan=dataclasses.replace(state.plan, models=(), methods=()))
    assert read(write_state(state)) == (state, [])


def test_each_thing_that_is_not_known_is_said_and_the_usual_stands_instead() -> None:
    query = {
        "method": ["nonsense", "random"], "metric": ["<b>", "gt_overlap"], "examples": ["0"], "seed": ["-1"],
        "unit": ["patch"], "removal": ["blur"], "view": ["pie"], "sort": ["best"], "point": ["a", "b"],
        "lime.n_samples": ["many"], "column": ["all"],
    }  # fmt: skip
    state, said = read(query)
    assert len(said) == 11
    plan = state.plan
    assert (plan.methods, plan.metrics, plan.examples, plan.seed) == (("random",), ("gt_overlap",), 40, 0)
    assert (plan.unit, plan.removal, state.view, plan.params.get("lime", {})) == (None, None, EvaluationView(), {})
    named = ("method", "metric", "examples", "seed", "unit", "removal", "view", "sort", "point", "lime", "column")
    for name in named:
        assert any(sentence.startswith(name) for sentence in said), name


def test_a_point_needs_a_metric_and_a_percent_that_there_are() -> None:
    for point in (["m", "lime", "nonsense", "", "", ""], ["m", "lime", "with_top", "", "101", ""]):
        state, said = read({"point": point})
        assert state.view.picked is None
        assert said[0].startswith("point: must be")
    state, _ = read({"point": ["m", "lime", "with_top", "", "50", ""]})
    assert state.view.picked == ScorePoint("m", "lime", "with_top", percent="50")
    assert state.view.picked.at == 50


def test_the_plan_is_that_of_the_command_and_comes_back() -> None:
    plan = plan_of(FULL)
    assert plan == dataclasses.replace(PLAN, shares=(10, 30))
    embedded = dataclasses.replace(plan, models=("reviews-minilm",))
    assert plan_of(state_of(embedded, EvaluationView)) == embedded
    assert state_of(embedded, EvaluationView).texts == {"shares": "10,30"}


def test_a_link_to_a_plan_names_the_view() -> None:
    plan = dataclasses.replace(EVALUATE.opens_with["text"], seed=1)
    link = plan_link(plan, view="scaling", y="gt_overlap")
    state, said = read(link)
    assert (said, plan_of(state), state.view) == ([], plan, EvaluationView(view="scaling", metric="gt_overlap"))


def test_parameters_of_methods_that_are_not_chosen_are_not_asked_for() -> None:
    state = dataclasses.replace(FULL, plan=dataclasses.replace(PLAN, methods=("random",)))
    assert plan_of(state).params == {}


@pytest.mark.parametrize("given", ["", "5,", "0", "101", "5,5", "five", "5;10", "-5", "1e1", "５x", "9" * 5000])
def test_shares_that_are_no_percentages_are_refused(given: str) -> None:
    with pytest.raises(UsageError, match="shares: must be different whole percentages from 1 to 100"):
        parse_shares(given)
    with pytest.raises(UsageError, match="shares: must be different whole percentages from 1 to 100"):
        plan_of(dataclasses.replace(FULL, texts={"shares": given}))


def test_shares_are_read_with_spaces() -> None:
    assert parse_shares(" 5, 10 ,20") == (5, 10, 20)
    assert parse_shares("5,10,20,50") == (5, 10, 20, 50)
    assert plan_of(usual("text")).shares == (5, 10, 20, 50)
