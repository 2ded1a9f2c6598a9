"""Intervals of a mean: against scipy, by simulated coverage, and at their limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from engine.metrics.bootstrap import interval

Draw = Callable[[np.random.Generator, int], np.ndarray]

NORMAL: Draw = lambda rng, n: rng.normal(0.3, 1.0, n)  # noqa: E731
SKEWED: Draw = lambda rng, n: rng.exponential(1.0, n)  # noqa: E731
FALLS: Draw = lambda rng, n: rng.beta(0.4, 1.2, n)  # noqa: E731
SHARES: Draw = lambda rng, n: (rng.random(n) < 0.3).astype(float)  # noqa: E731


@pytest.mark.parametrize(("draw", "truth", "n", "least"), [
    (NORMAL, 0.3, 10, 0.93),
    (NORMAL, 0.3, 50, 0.93),
    (SKEWED, 1.0, 20, 0.90),
    (SKEWED, 1.0, 100, 0.93),
    (FALLS, 0.25, 20, 0.91),
    (FALLS, 0.25, 500, 0.93),
    (SHARES, 0.3, 50, 0.92),
])  # fmt: skip
def test_it_covers_the_true_mean_in_about_95_of_100_samples(draw: Draw, truth: float, n: int, least: float) -> None:
    """Over 800 samples, of which the error is under 0.008 (one standard deviation at 95 %)."""
    rng = np.random.default_rng(11)
    found = [interval(draw(rng, n)) for _ in range(800)]
    covered = np.mean([low <= truth <= high for low, high in filter(None, found)])
    assert least <= covered <= 0.985


def test_of_many_examples_it_is_scipys() -> None:
    values = np.random.default_rng(2).exponential(1.0, 400)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(0))
    assert interval(values) == pytest.approx(tuple(theirs.confidence_interval), abs=0.012)


def test_a_skewed_mean_has_more_room_above() -> None:
    values = np.random.default_rng(5).exponential(1.0, 40)
    low, high = interval(values) or (0.0, 0.0)
    assert high - values.mean() > 1.1 * (values.mean() - low) > 0


def test_the_same_seed_gives_the_same_and_another_nearly_the_same() -> None:
    values = np.random.default_rng(1).normal(size=60)
    assert interval(values, 3) == interval(values, 3)
    assert interval(values, 3) != interval(values, 4)
    assert interval(values, 3) == pytest.approx(interval(values, 4), abs=0.05)


def test_it_moves_and_grows_with_the_values() -> None:
    values = np.random.default_rng(1).normal(size=30)
    low, high = interval(values) or (0.0, 0.0)
    assert interval(2 * values + 1) == pytest.approx((2 * low + 1, 2 * high + 1))


@pytest.mark.parametrize("n", [5, 12, 500])
def test_a_share_of_examples_has_the_exact_interval_however_many_count(n: int) -> None:
    for hits in (0, 1, n // 2, n - 1, n):
        theirs = stats.binomtest(hits, n).proportion_ci(method="exact")
        values = np.repeat([1.0, 0.0], [hits, n - hits])
        assert interval(values, share=True) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_one_of_twelve() -> None:
    """Clopper and Pearson's by hand: of 12 at 0.0021 one or more come in 2.5 %, at 0.3848 one or none."""
    low, high = interval(np.repeat([1.0, 0.0], [1, 11]), share=True) or (0.0, 0.0)
    assert 1 - (1 - low) ** 12 == pytest.approx(0.025)
    assert (1 - high) ** 12 + 12 * high * (1 - high) ** 11 == pytest.approx(0.025)
    assert (round(low, 4), round(high, 4)) == (0.0021, 0.3848)


def test_values_that_only_look_like_counts_are_resampled() -> None:
    """A perfect score is no share: its interval has no width, and never more than that of a worse score."""
    assert interval(np.ones(12)) == (1.0, 1.0)
    assert interval(np.full(12, 0.5), share=True) == (0.5, 0.5)
    assert interval(np.array([0.0, 0.5, 1.0, 1.0]), share=True) == interval(np.array([0.0, 0.5, 1.0, 1.0]))


def test_it_stays_within_the_values() -> None:
    low, high = interval(np.array([1.0] * 9 + [0.0])) or (-1.0, 2.0)
    assert 0 <= low < 0.9 < high <= 1


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.1, 1.0, -40.0]), min_size=2, max_size=30))
@settings(deadline=None)
def test_it_is_in_order_and_among_the_values_however_they_lie(values: list[float]) -> None:
    low, high = interval(np.array(values)) or (1.0, 0.0)
    assert min(values) <= low <= high <= max(values)


def test_few_or_equal_values() -> None:
    assert interval(np.array([])) is None
    assert interval(np.array([0.3])) is None
    assert interval(np.full(9, 0.3)) == (0.3, 0.3)
    low, high = interval(np.array([0.0, 1.0])) or (1.0, 0.0)
    assert 0 <= low < 0.5 < high <= 1
