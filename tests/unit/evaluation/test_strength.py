"""A mark of graded worth: attribution on it over data and over training, by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from engine.data.datasets import load
from engine.evaluation.groups import (
    equal_strengths,
    grade_by_data,
    grade_by_training,
    mark_influence,
    mark_strength,
    plans_at_strengths,
    training_strengths,
)
from engine.evaluation.result import Evaluation
from engine.metrics.plausibility import NOTHING
from engine.metrics.results import interval
from engine.metrics.sensitivity import FLAT
from engine.models import catalog
from tests.unit.evaluation.by_hand import Found, by_hand, evaluation, fact


def marked_set(values: Found, carry: list[bool], right: list[bool | None] | None = None) -> Evaluation:
    facts = [
        fact(place, ["bad", "good"][place % 2], (right or [True] * 9)[place], marked=one)
        for place, one in enumerate(carry)
    ]
    return by_hand({("m", "lime", "truth_mass"): values}, facts, "reviews-marked:strength=0.5")


def test_an_example_without_a_mark_has_nothing_on_it() -> None:
    found = marked_set([0.8, NOTHING, 0.4, NOTHING], [True, False, True, False])
    (one,) = grade_by_data([found], "m")
    assert (one.strength, one.ideal) == (0.5, 0.5), "half of the examples carry the mark"
    assert one.score.value == pytest.approx((0.8 + 0.4) / 4)
    assert one.score.interval == interval(np.array([0.8, 0.4, 0, 0]), 0, share=True)
    assert (one.score.n, one.score.skipped) == (4, {})


def test_everything_on_every_mark_lies_on_the_diagonal_and_a_share_of_it_below() -> None:
    full = [marked_set([1.0] * k + [NOTHING] * (4 - k), [True] * k + [False] * (4 - k)) for k in (3, 1, 4)]
    assert [(one.strength, one.score.value) for one in grade_by_data(full, "m")] == [
        (0.25, 0.25),
        (0.75, 0.75),
        (1.0, 1.0),
    ]
    part = [
        evaluation(one.plan, [dataclasses.replace(row, value=0.3) for row in one.rows], one.skips, one.facts)
        for one in full
    ]
    assert all(one.score.value == pytest.approx(0.3 * one.strength) for one in grade_by_data(part, "m"))


def test_what_could_not_be_explained_is_no_zero() -> None:
    found = marked_set([0.8, "too long", "too long"], [True, False, True])
    (one,) = grade_by_data([found], "m")
    assert (one.score.value, one.score.n, one.score.skipped) == (0.8, 1, {"too long": 2})
    assert grade_by_data([found], "m", ["gradient"]) == []


def test_a_method_without_a_value_on_any_marked_example_has_none() -> None:
    found = marked_set([FLAT, FLAT, NOTHING, NOTHING], [True, True, False, False])
    (one,) = grade_by_data([found], "m")
    assert (one.strength, one.score.value, one.score.n) == (0.5, None, 0)
    assert one.score.skipped == {FLAT: 2, NOTHING: 2}


def test_marked_examples_without_a_value_are_missing_from_both_sides() -> None:
    """All on the mark wherever there is a map: the point stays on the diagonal, though a flat map has no value."""
    found = marked_set([1.0, FLAT, 1.0, NOTHING, NOTHING], [True, True, True, False, False])
    (one,) = grade_by_data([found], "m")
    assert (one.strength, one.score.value, one.ideal, one.score.n) == (0.5, 0.5, 0.5, 4)


def test_how_far_the_mark_decides_is_accuracy_above_chance_on_the_marked_examples() -> None:
    right = [True, True, True, False, False]
    found = marked_set([1.0] * 5, [True, True, True, True, False], right)  # type: ignore[arg-type]
    low, high = interval(np.array([1.0, 1.0, 1.0, 0.0]), 0, share=True)  # type: ignore[misc]
    told = mark_influence(found, "m")
    assert told.value == pytest.approx(2 * 0.75 - 1)
    assert told.n == 4, "the fifth carries no mark"
    assert told.interval == pytest.approx((2 * low - 1, 2 * high - 1))
    assert mark_influence(found, "other").value is None
    assert mark_influence(marked_set([1.0], [True]), "m").value is None, "one class has no chance to be held against"


def test_strengths_whose_examples_carry_the_mark_equally_often_stand_together() -> None:
    shares = {1.0: [True] * 4, 0.75: [True, False] * 2, 0.5: [False, True] * 2, 0.1: [False] * 4}
    founds = [
        by_hand({("m", "lime", "truth_mass"): [1.0]}, [fact(e, marked=one) for e, one in enumerate(carry)],
                f"reviews-marked:strength={asked}")
        for asked, carry in shares.items()
    ]  # fmt: skip
    assert equal_strengths(founds, "m") == [[0.5, 0.75]]
    assert equal_strengths(founds[2:], "m") == equal_strengths(founds, "another") == []


def test_models_stand_at_the_strength_they_were_trained_at() -> None:
    facts = [
        fact(e, ["bad", "good"][e % 2], e < right, model=m, marked=True)
        for m, right in (("a", 4), ("b", 3))
        for e in range(4)
    ]
    values = {(m, "lime", "truth_mass"): [v] * 4 for m, v in (("a", 0.9), ("b", 0.2), ("c", 0.5))}
    found = by_hand(values, facts, "reviews-marked")  # type: ignore[arg-type]
    points = grade_by_training(found, {"a": 0.8, "b": 0.1})
    assert [(one.strength, one.score.model, one.ideal) for one in points] == [(0.1, "b", 0.5), (0.8, "a", 1.0)]
    assert [one.score.value for one in points] == pytest.approx([0.2, 0.9])


def test_strengths_are_read_from_names_of_sets_and_from_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mark_strength("reviews-marked") == 1
    assert mark_strength("scenes-marked:seed=3,strength=0.25") == 0.25
    assert mark_strength("reviews") is None
    cards = {
        "a": {"settings": {"dataset": "reviews-marked:strength=0.9"}},
        "b": {"settings": {"dataset": "sst2"}},
        "c": {},
    }
    monkeypatch.setattr(catalog, "card", cards.__getitem__)
    assert training_strengths(["a", "b", "c"]) == {"a": 0.9}


def test_plans_at_several_strengths_differ_in_nothing_else() -> None:
    plan = marked_set([1.0], [True]).plan
    plan = dataclasses.replace(plan, dataset="reviews-marked:count=40,seed=2")
    plans = plans_at_strengths(plan, (0.25, 1.0))
    assert [one.dataset for one in plans] == [
        "reviews-marked:count=40,seed=2,strength=0.25", "reviews-marked:count=40,seed=2,strength=1",
    ]  # fmt: skip
    assert all(dataclasses.replace(one, dataset=plan.dataset) == plan for one in plans)
    weak, full = (load(one.dataset, None) for one in plans)
    assert {one.example.text for one in weak.examples if one.rationale} < {one.example.text for one in full.examples}
