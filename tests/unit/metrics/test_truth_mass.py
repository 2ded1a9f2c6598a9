"""How much of a map lies on the truth: by hand, and as a property."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.evaluation.judging import judge
from engine.evaluation.maps import Maps
from engine.evaluation.notes import Notes
from engine.evaluation.plan import Plan
from engine.metrics.complexity import FLAT
from engine.metrics.truth import truth_mass

PAIRS = st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=2, max_size=12).filter(
    lambda rows: 0 < sum(true for _, true in rows) < len(rows) and any(score for score, _ in rows)
)


def test_a_map_by_hand_signs_aside() -> None:
    scores, truth = np.array([[3.0, -1.0], [-4.0, 2.0]]), np.array([[True, False], [True, False]])
    assert truth_mass(scores, truth) == pytest.approx(7 / 10)


def test_a_map_of_zeros_has_no_share() -> None:
    assert truth_mass(np.zeros(3), np.array([True, False, False])) is None


def test_an_evaluation_notes_it_for_each_method_and_why_a_flat_map_has_none() -> None:
    plan = Plan(("m",), "reviews", ("lime", "gradient"), ("truth_mass",), unit="token")
    scores = {"lime": np.array([1.0, -1.0, 2.0]), "gradient": np.zeros(3), "random": np.array([3.0, 2.0, 1.0])}
    marks, segments = np.array([False, True, True]), np.zeros(3, dtype=int)
    notes = Notes("m", "reviews")
    judge(plan, [Maps(7, scores, {}, {}, marks, segments, (0,))], notes)
    assert {row.of.method: row.value for row in notes.rows} == {"lime": 3 / 4, "random": 3 / 6}
    assert [(skip.of.method, skip.example, skip.reason) for skip in notes.skips] == [("gradient", 7, FLAT)]


def test_a_truth_that_any_map_finds_is_refused() -> None:
    with pytest.raises(UsageError, match="truth: no feature is true"):
        truth_mass(np.ones(2), np.zeros(2, dtype=bool))


@given(PAIRS)
def test_the_shares_of_truth_and_of_the_rest_are_all_there_is(rows: list[tuple[float, bool]]) -> None:
    scores, truth = np.array([score for score, _ in rows]), np.array([true for _, true in rows])
    inside, outside = truth_mass(scores, truth), truth_mass(scores, ~truth)
    assert inside is not None
    assert outside is not None
    assert inside + outside == pytest.approx(1)
    slow = sum(abs(score) for score, true in rows if true) / sum(abs(score) for score, _ in rows)
    assert inside == pytest.approx(slow)
    assert truth_mass(-3 * scores, truth) == pytest.approx(inside)
