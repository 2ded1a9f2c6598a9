"""Maps held against a truth: by hand, by a slow oracle, against chance, and as properties."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.metrics.ranking import ranking
from engine.metrics.truth import TruthScores, truth_by_chance, truth_scores, unscored
from tests.oracles.truth import scores_by_all_orders, scores_of_order

MEASURES = ("overlap", "exact", "pointing", "mean_rank", "mean_of_ranks")
CASES = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=16).filter(
    lambda rows: 0 < sum(true for _, true in rows) < len(rows)
)


def measures(found: TruthScores) -> dict[str, float]:
    return {name: value for name, value in dataclasses.asdict(found).items() if name in MEASURES}


def split(rows: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([score for score, _ in rows], dtype=float), np.array([true for _, true in rows])


def test_a_map_on_a_grid_by_hand() -> None:
    scores = np.array([[0.9, -1.0, 0.4], [0.8, 0.1, 0.7]])  # ranks: 1 6 4 / 2 5 3
    truth = np.array([[True, False, False], [False, True, True]])
    found = truth_scores(scores, truth)
    assert (found.n, found.size) == (6, 3)
    assert found.overlap == pytest.approx(2 / 3), "the top three have ranks 1, 2, 3; of L there are 1 and 3"
    assert (found.exact, found.pointing) == (0, 1)
    assert found.mean_rank == 5
    assert found.mean_rank_pct == pytest.approx(5 / 6)
    assert found.mean_of_ranks == pytest.approx((1 + 3 + 5) / 3)


def test_a_perfect_map_and_its_opposite() -> None:
    truth = np.array([True, False, True, False, False])
    best, worst = truth_scores(truth.astype(float), truth), truth_scores(-truth.astype(float), truth)
    assert measures(best) == {"overlap": 1, "exact": 1, "pointing": 1, "mean_rank": 2, "mean_of_ranks": 1.5}
    assert measures(worst) == {"overlap": 0, "exact": 0, "pointing": 0, "mean_rank": 5, "mean_of_ranks": 4.5}


@given(CASES, st.integers(0, 5))
def test_scores_are_those_of_the_slow_oracle(rows: list[tuple[int, bool]], seed: int) -> None:
    scores, truth = split(rows)
    expected = scores_of_order(ranking(scores, (seed,)).tolist(), set(np.flatnonzero(truth).tolist()))
    assert measures(truth_scores(scores, truth, (seed,))) == pytest.approx(expected)


@given(CASES)
def test_they_stay_within_their_bounds_and_know_nothing_of_the_scale(rows: list[tuple[int, bool]]) -> None:
    scores, truth = split(rows)
    found = truth_scores(scores, truth)
    assert found == truth_scores(4 * scores - 1, truth)
    assert 0 <= found.overlap <= 1
    assert found.size <= found.mean_rank <= found.n
    assert (found.size + 1) / 2 <= found.mean_of_ranks <= found.n - (found.size - 1) / 2
    assert (found.exact == 1) == (found.overlap == 1) == (found.mean_rank == found.size)


@given(CASES)
def test_a_grid_is_read_row_by_row(rows: list[tuple[int, bool]]) -> None:
    scores, truth = split(rows)
    assert truth_scores(scores[None], truth[None]) == truth_scores(scores, truth)
    assert truth_scores(scores[:, None], truth[:, None]) == truth_scores(scores, truth)


@pytest.mark.parametrize(("n", "size"), [(2, 1), (4, 1), (5, 2), (6, 3), (6, 5), (7, 4)])
def test_chance_is_the_mean_over_all_orders(n: int, size: int) -> None:
    assert measures(truth_by_chance(n, size)) == pytest.approx(scores_by_all_orders(n, size))


def test_a_map_of_equal_scores_is_judged_by_chance_which_the_seed_holds() -> None:
    truth = np.arange(12) < 3
    flat = np.ones(12)
    assert truth_scores(flat, truth, (4, 2)) == truth_scores(flat, truth, (4, 2))
    drawn = [truth_scores(flat, truth, (seed,)) for seed in range(3000)]
    expected = truth_by_chance(12, 3)
    for name in MEASURES:
        values = [getattr(one, name) for one in drawn]
        within = 4 * max(np.std(values), 0.05) / math.sqrt(len(values))
        assert np.mean(values) == pytest.approx(getattr(expected, name), abs=within), name


def test_nothing_or_everything_true_has_words_and_no_numbers() -> None:
    none, everything = np.zeros((2, 2), dtype=bool), np.ones((2, 2), dtype=bool)
    with pytest.raises(UsageError, match="truth: no feature is true, so there is nothing to find"):
        truth_scores(np.zeros((2, 2)), none)
    with pytest.raises(UsageError, match="truth: every feature is true, so any map finds them"):
        truth_scores(np.zeros((2, 2)), everything)
    assert unscored(none, "patch") == "no patch is true, so there is nothing to find."
    assert unscored(np.array([True, False])) is None
