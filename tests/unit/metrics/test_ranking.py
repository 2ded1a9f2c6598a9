"""The order of features, the size of a share, and the rank agreement that chance gives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.ndimage
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr, t

from engine.metrics.ranking import LEVEL, count_of_percent, rank_features, rho_limit, spearman, spearman_of_pairs

SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=20).map(lambda values: np.array(values, dtype=float))


def test_the_highest_score_comes_first_and_the_most_negative_last() -> None:
    assert rank_features(np.array([0.5, -2.0, 3.0, 0.0]), (0,)).tolist() == [2, 0, 3, 1]


@given(SCORES, st.integers(0, 5))
def test_a_ranking_is_a_permutation_that_never_rises(scores: np.ndarray, seed: int) -> None:
    order = rank_features(scores, (seed, 7))
    assert sorted(order) == list(range(len(scores)))
    assert (np.diff(scores[order]) <= 0).all()
    assert order.tolist() == rank_features(scores, (seed, 7)).tolist()


@given(SCORES, st.integers(0, 5))
def test_ties_know_nothing_of_the_scale(scores: np.ndarray, seed: int) -> None:
    assert rank_features(scores, (seed,)).tolist() == rank_features(4 * scores - 1, (seed,)).tolist()


def test_ties_favour_no_position() -> None:
    flat, n = np.zeros(5), 5
    first = [rank_features(flat, (seed,))[0] for seed in range(1000)]
    np.testing.assert_allclose(np.bincount(first, minlength=n) / 1000, 1 / n, atol=0.05)


@pytest.mark.parametrize(
    ("percent", "n", "expected"),
    [(0, 10, 0), (10, 10, 1), (10, 3, 1), (50, 5, 2), (50, 7, 4), (90, 3, 3), (100, 13, 13), (30, 0, 0), (10, 15, 2)],
)
def test_the_number_removed(percent: int, n: int, expected: int) -> None:
    assert count_of_percent(percent, n) == expected


CASES = 200


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("n", "heads"), [(5, 1), (6, 1), (6, 4)])
def test_few_features_against_a_loop_over_all_their_orders(n: int, heads: int) -> None:
    maps, scores = rng(n).normal(size=(heads, n)), rng(heads).normal(size=n)
    limit = rho_limit(maps, scores)
    best = [
        max(abs(spearmanr(scores[list(order)], one).statistic) for one in maps)
        for order in itertools.permutations(range(n))
    ]
    beyond = [value for value in best if limit is not None and value > limit]
    assert limit is not None
    assert len(beyond) / math.factorial(n) <= LEVEL
    lower = max(value for value in best if value < limit - 1e-6)
    assert sum(value > lower + 1e-9 for value in best) / math.factorial(n) > LEVEL


def test_values_that_tie_against_a_loop() -> None:
    maps, scores = np.array([[0.0, 0.0, 1.0, 1.0, 1.0, 2.0]]), np.array([1.0, 1.0, 1.0, 2.0, 3.0, 3.0])
    limit = rho_limit(maps, scores)
    best = [abs(spearman(scores[list(order)], maps[0]) or 0.0) for order in itertools.permutations(range(6))]
    assert limit is not None
    assert 0 < np.mean([value > limit for value in best]) <= LEVEL


def test_many_features_and_one_map_as_the_t_distribution_has_it() -> None:
    n = 60
    expected = t.ppf(1 - LEVEL / 2, n - 2)
    expected /= math.sqrt(n - 2 + expected**2)
    assert rho_limit(rng(0).normal(size=(1, n)), rng(1).normal(size=n)) == pytest.approx(expected, abs=0.02)


def test_many_heads_that_are_alike_cost_no_more_than_one() -> None:
    one, scores = rng(0).normal(size=(1, 40)), rng(1).normal(size=40)
    alike = np.repeat(one, 144, axis=0)
    assert rho_limit(alike, scores) == pytest.approx(rho_limit(one, scores))
    alone, many = rho_limit(one, scores), rho_limit(rng(2).normal(size=(144, 40)), scores)
    assert alone is not None
    assert many is not None
    assert many > alone + 0.1


@pytest.mark.parametrize(("n", "heads"), [(9, 12), (24, 72)])
def test_one_text_in_twenty_has_a_head_beyond_the_limit_by_chance(n: int, heads: int) -> None:
    found = 0
    for case in range(CASES):
        maps, scores = rng(case).exponential(size=(heads, n)), rng(10_000 + case).normal(size=n)
        limit = rho_limit(maps, scores)
        found += limit is not None and any(abs(spearman(one, scores) or 0.0) > limit for one in maps)
    assert abs(found / CASES - LEVEL) < 3 * math.sqrt(LEVEL * (1 - LEVEL) / CASES)


def test_neighboring_patches_that_are_alike_are_not_taken_for_agreement() -> None:
    def smooth(seed: int, count: int) -> np.ndarray:
        drawn = rng(seed).normal(size=(count, 14, 14))
        return scipy.ndimage.gaussian_filter(drawn, (0, 2, 2), mode="wrap").reshape(count, -1)

    found = apart = 0
    in_any_order = rho_limit(smooth(1, 12), smooth(2, 1)[0])
    assert in_any_order is not None
    for case in range(CASES):
        maps, scores = smooth(case, 12), smooth(10_000 + case, 1)[0]
        best = max(abs(spearman(one, scores) or 0.0) for one in maps)
        limit = rho_limit(maps, scores, (14, 14))
        assert limit is not None
        found += best > limit
        apart += best > in_any_order
    assert found / CASES < LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / CASES)
    assert apart / CASES > 0.5


def test_where_nothing_can_be_told_from_chance() -> None:
    some = rng(0).normal(size=(3, 4))
    assert rho_limit(some, np.arange(4.0)) is None  # 2 of 24 orders agree wholly or run opposite: more than 1 in 20
    assert rho_limit(some[:, :1], np.ones(1)) is None
    assert rho_limit(some[:, :0], np.ones(0)) is None
    assert rho_limit(np.ones((3, 9)), rng(1).normal(size=9)) is None
    assert rho_limit(rng(1).normal(size=(3, 9)), np.ones(9)) is None
    assert rho_limit(some, np.arange(4.0), (2, 2)) is None


def test_the_same_question_has_the_same_answer() -> None:
    maps, scores = rng(0).normal(size=(5, 30)), rng(1).normal(size=30)
    assert rho_limit(maps, scores) == rho_limit(maps, scores)


def test_pairs_of_maps_correlate_as_scipy_says() -> None:
    maps = np.random.default_rng(4).integers(0, 5, (5, 12)).astype(float)
    wanted = [spearmanr(a, b).statistic for a, b in itertools.combinations(maps, 2)]
    np.testing.assert_allclose(spearman_of_pairs(list(maps)), wanted, atol=1e-12)
