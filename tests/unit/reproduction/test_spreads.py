"""The variance between models: nothing where they are equal, and intervals that cover what is true."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.reproduction.claims import Contrast, Term
from engine.reproduction.estimates import Cell, Values, estimate
from engine.reproduction.spreads import variances
from engine.reproduction.verdicts import CHANCE

SIZES = tuple(f"size-{number}" for number in range(1, 5))
RUNS = 400


def drawn(chance: np.random.Generator, shares: list[float], n: int = 200) -> np.ndarray:
    return (chance.random((n, len(shares))) < shares).astype(np.float64)


def test_it_is_the_mean_over_pairs_of_different_examples() -> None:
    """The slow way: for each two examples the covariance of their values over models."""
    values = np.random.default_rng(1).normal(size=(7, 4))
    slow = [np.cov(values[a], values[b])[0, 1] for a, b in itertools.permutations(range(7), 2)]
    found, _ = variances([values], [1.0], [CHANCE])
    assert found == pytest.approx(np.mean(slow))
    assert variances([values, values[:, ::-1]], [1.0, -1.0], [CHANCE])[0] == pytest.approx(0.0), "of the same means"


@pytest.mark.parametrize("shares", [[0.5] * 4, [0.9] * 4, [0.0, 1.0, 0.1, 0.1], [0.4, 0.5, 0.6, 0.5], [0.5] * 2])
def test_what_is_true_is_covered_also_where_models_are_equal(shares: list[float]) -> None:
    """The largest mean less the smallest, resampled, covered a true 0 in no run of 200."""
    chance, true = np.random.default_rng(3), float(np.var(shares, ddof=1))
    found = [variances([drawn(chance, shares)], [1.0], [CHANCE]) for _ in range(RUNS)]
    assert np.mean([value for value, _ in found]) == pytest.approx(true, abs=0.003), "right on average"
    assert np.mean([low <= true <= high for _, [(low, high)] in found]) > 0.93


def test_a_noisy_method_does_not_vary_more_than_a_saturated_one() -> None:
    chance, wrong = np.random.default_rng(5), 0
    contrast = Contrast("", tuple(
        Term(times, "marked", "gt_overlap", (method,), SIZES, "variance") for times, method in ((1, "a"), (-1, "b"))
    ))  # fmt: skip
    for _ in range(RUNS):
        found: dict[Cell, Values] = {}
        for method, shares in (("a", [0.5] * 4), ("b", [1.0] * 4)):
            columns = drawn(chance, shares).T.tolist()
            for size, values in zip(SIZES, columns, strict=True):
                found["marked", size, method, "gt_overlap"] = dict(enumerate(values))
        [(low, high)] = estimate(contrast, found, 0).intervals
        wrong += low > 0 or high < 0
    assert wrong / RUNS < 0.06


def test_one_that_does_vary_is_told_from_one_that_does_not() -> None:
    chance = np.random.default_rng(6)
    pair = [drawn(chance, [0.0, 1.0, 0.1, 0.1]), drawn(chance, [1.0, 0.98, 1.0, 1.0])]
    _, [(low, _)] = variances(pair, [1.0, -1.0], [CHANCE / 10])
    assert low > 0.1


def test_two_examples_say_next_to_nothing() -> None:
    _, [(low, high)] = variances([np.ones((2, 4))], [1.0], [CHANCE])
    assert low < -0.5
    assert high > 0.5
