"""Maps against what people marked: by hand, by slow oracles, against scikit-learn, and with ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from engine.errors import UsageError
from engine.metrics.plausibility import average_precision, recall_at_k, roc_auc, token_f1
from engine.metrics.ranking import ranking
from tests.oracles.plausibility import auc_by_pairs, f1_of, precision_by_thresholds

CASES = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=16).filter(
    lambda rows: 0 < sum(mark for _, mark in rows) < len(rows)
)
SCORES = np.array([0.9, 0.1, 0.8, -0.4, 0.3])
MARKS = np.array([True, True, False, False, True])


def split(rows: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([score for score, _ in rows], dtype=float), np.array([mark for _, mark in rows])


def test_by_hand() -> None:
    """In order: marked, not, marked, marked, not."""
    assert roc_auc(SCORES, MARKS) == pytest.approx(4 / 6), "of 6 pairs the unmarked 0.8 beats 0.3 and 0.1"
    assert average_precision(SCORES, MARKS) == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3)
    assert token_f1(SCORES, MARKS, 0.4) == pytest.approx(2 * 1 / (2 + 3)), "two of five are chosen, one is marked"
    assert token_f1(SCORES, MARKS, 0.8) == pytest.approx(2 * 3 / (4 + 3))
    assert recall_at_k(SCORES, MARKS, 2) == pytest.approx(1 / 3)
    assert recall_at_k(SCORES, MARKS) == 1, "all five"


def test_a_perfect_map_and_its_opposite() -> None:
    perfect = MARKS.astype(float)
    assert (roc_auc(perfect, MARKS), average_precision(perfect, MARKS), token_f1(perfect, MARKS, 0.6)) == (1, 1, 1)
    assert (roc_auc(-perfect, MARKS), token_f1(-perfect, MARKS, 0.4), recall_at_k(-perfect, MARKS, 2)) == (0, 0, 0)


@given(CASES)
def test_they_are_the_slow_oracles_and_scikit_learns_with_ties_too(rows: list[tuple[int, bool]]) -> None:
    scores, marks = split(rows)
    assert roc_auc(scores, marks) == pytest.approx(auc_by_pairs(scores.tolist(), marks.tolist()))
    assert roc_auc(scores, marks) == pytest.approx(roc_auc_score(marks, scores))
    assert average_precision(scores, marks) == pytest.approx(precision_by_thresholds(scores.tolist(), marks.tolist()))
    assert average_precision(scores, marks) == pytest.approx(average_precision_score(marks, scores))


@given(CASES, st.integers(1, 16), st.integers(0, 3))
def test_chosen_units_are_the_first_of_the_ranking(rows: list[tuple[int, bool]], number: int, seed: int) -> None:
    scores, marks = split(rows)
    chosen = min(number, len(marks))
    top = set(ranking(scores, (seed,))[:chosen].tolist())
    predicted = np.isin(np.arange(len(marks)), list(top))
    found = token_f1(scores, marks, chosen / len(marks), (seed,))
    assert found == pytest.approx(f1_of(top, set(np.flatnonzero(marks).tolist())))
    assert found == pytest.approx(f1_score(marks, predicted))
    assert recall_at_k(scores, marks, number, (seed,)) == pytest.approx(marks[predicted].sum() / marks.sum())


def test_a_flat_map_gets_what_chance_gives() -> None:
    flat, marks = np.zeros(10), np.arange(10) < 3
    assert roc_auc(flat, marks) == 0.5
    assert average_precision(flat, marks) == pytest.approx(0.3)
    for measure in (lambda seed: token_f1(flat, marks, 0.3, seed), lambda seed: recall_at_k(flat, marks, 3, seed)):
        assert np.mean([measure((seed,)) for seed in range(2000)]) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("marks", [[True, True], [False, False]])
def test_all_or_nothing_marked_cannot_be_judged(marks: list[bool]) -> None:
    for measure in (roc_auc, average_precision, recall_at_k):
        with pytest.raises(UsageError, match="is marked, so that no map can be judged"):
            measure(np.array([1.0, 2.0]), np.array(marks))


def test_wrong_numbers_are_named() -> None:
    with pytest.raises(UsageError, match="share: must be more than 0 and at most 1, got 0"):
        token_f1(SCORES, MARKS, 0.0)
    with pytest.raises(UsageError, match="k: must be a whole number of at least 1, got 0"):
        recall_at_k(SCORES, MARKS, 0)
