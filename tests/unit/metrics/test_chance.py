"""What rank agreement chance gives: by hand over all orders, and by simulation of maps that have nothing in common."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.ndimage
from scipy.stats import spearmanr, t

from engine.metrics.agreement import spearman
from engine.metrics.chance import LEVEL, limit_of_rho

CASES = 200


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("n", "heads"), [(5, 1), (6, 1), (6, 4)])
def test_few_features_against_a_loop_over_all_their_orders(n: int, heads: int) -> None:
    maps, scores = rng(n).normal(size=(heads, n)), rng(heads).normal(size=n)
    limit = limit_of_rho(maps, scores)
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
    limit = limit_of_rho(maps, scores)
    best = [abs(spearman(scores[list(order)], maps[0]) or 0.0) for order in itertools.permutations(range(6))]
    assert limit is not None
    assert 0 < np.mean([value > limit for value in best]) <= LEVEL


def test_many_features_and_one_map_as_the_t_distribution_has_it() -> None:
    n = 60
    expected = t.ppf(1 - LEVEL / 2, n - 2)
    expected /= math.sqrt(n - 2 + expected**2)
    assert limit_of_rho(rng(0).normal(size=(1, n)), rng(1).normal(size=n)) == pytest.approx(expected, abs=0.02)


def test_many_heads_that_are_alike_cost_no_more_than_one() -> None:
    one, scores = rng(0).normal(size=(1, 40)), rng(1).normal(size=40)
    alike = np.repeat(one, 144, axis=0)
    assert limit_of_rho(alike, scores) == pytest.approx(limit_of_rho(one, scores))
    alone, many = limit_of_rho(one, scores), limit_of_rho(rng(2).normal(size=(144, 40)), scores)
    assert alone is not None
    assert many is not None
    assert many > alone + 0.1


@pytest.mark.parametrize(("n", "heads"), [(9, 12), (24, 72)])
def test_one_text_in_twenty_has_a_head_beyond_the_limit_by_chance(n: int, heads: int) -> None:
    found = 0
    for case in range(CASES):
        maps, scores = rng(case).exponential(size=(heads, n)), rng(10_000 + case).normal(size=n)
        limit = limit_of_rho(maps, scores)
        found += limit is not None and any(abs(spearman(one, scores) or 0.0) > limit for one in maps)
    assert abs(found / CASES - LEVEL) < 3 * math.sqrt(LEVEL * (1 - LEVEL) / CASES)


def test_neighbouring_patches_that_are_alike_are_not_taken_for_agreement() -> None:
    def smooth(seed: int, count: int) -> np.ndarray:
        drawn = rng(seed).normal(size=(count, 14, 14))
        return scipy.ndimage.gaussian_filter(drawn, (0, 2, 2), mode="wrap").reshape(count, -1)

    found = apart = 0
    in_any_order = limit_of_rho(smooth(1, 12), smooth(2, 1)[0])
    assert in_any_order is not None
    for case in range(CASES):
        maps, scores = smooth(case, 12), smooth(10_000 + case, 1)[0]
        best = max(abs(spearman(one, scores) or 0.0) for one in maps)
        limit = limit_of_rho(maps, scores, (14, 14))
        assert limit is not None
        found += best > limit
        apart += best > in_any_order
    assert found / CASES < LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / CASES)
    assert apart / CASES > 0.5


def test_where_nothing_can_be_told_from_chance() -> None:
    some = rng(0).normal(size=(3, 4))
    assert limit_of_rho(some, np.arange(4.0)) is None  # 2 of 24 orders agree wholly or run opposite: more than 1 in 20
    assert limit_of_rho(some[:, :1], np.ones(1)) is None
    assert limit_of_rho(some[:, :0], np.ones(0)) is None
    assert limit_of_rho(np.ones((3, 9)), rng(1).normal(size=9)) is None
    assert limit_of_rho(rng(1).normal(size=(3, 9)), np.ones(9)) is None
    assert limit_of_rho(some, np.arange(4.0), (2, 2)) is None


def test_the_same_question_has_the_same_answer() -> None:
    maps, scores = rng(0).normal(size=(5, 30)), rng(1).normal(size=30)
    assert limit_of_rho(maps, scores) == limit_of_rho(maps, scores)
