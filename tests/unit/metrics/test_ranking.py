"""The order of features and the size of a share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.metrics.ranking import number_of, ranking

SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=20).map(lambda values: np.array(values, dtype=float))


def test_the_highest_score_comes_first_and_the_most_negative_last() -> None:
    assert ranking(np.array([0.5, -2.0, 3.0, 0.0]), (0,)).tolist() == [2, 0, 3, 1]


@given(SCORES, st.integers(0, 5))
def test_a_ranking_is_a_permutation_that_never_rises(scores: np.ndarray, seed: int) -> None:
    order = ranking(scores, (seed, 7))
    assert sorted(order) == list(range(len(scores)))
    assert (np.diff(scores[order]) <= 0).all()
    assert order.tolist() == ranking(scores, (seed, 7)).tolist()


@given(SCORES, st.integers(0, 5))
def test_ties_know_nothing_of_the_scale(scores: np.ndarray, seed: int) -> None:
    assert ranking(scores, (seed,)).tolist() == ranking(4 * scores - 1, (seed,)).tolist()


def test_ties_favour_no_position() -> None:
    flat, n = np.zeros(5), 5
    first = [ranking(flat, (seed,))[0] for seed in range(1000)]
    np.testing.assert_allclose(np.bincount(first, minlength=n) / 1000, 1 / n, atol=0.05)


@pytest.mark.parametrize(
    ("percent", "n", "expected"),
    [(0, 10, 0), (10, 10, 1), (10, 3, 1), (50, 5, 2), (50, 7, 4), (90, 3, 3), (100, 13, 13), (30, 0, 0), (10, 15, 2)],
)
def test_the_number_removed(percent: int, n: int, expected: int) -> None:
    assert number_of(percent, n) == expected
