"""Intervals at any error rate, never without width, so that no claim is settled by a few equal examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from jaxtyping import Float

from engine.metrics.results import Interval, interval
from engine.reproduction.claims import MethodTerm
from engine.reproduction.measures import OVERLAP, measure
from engine.reproduction.verdicts import ERROR_RATE

FEW = 5
"""With as many examples that differ from all others a bootstrap is enough."""
LARGEST_VARIANCE = 4 / 3
"""How far a variance of four means from 0 to 1 can be moved at most, as a multiple of the share of examples moved."""

Weights = Sequence[int | float]
Columns = Sequence[Float[np.ndarray, "example model"]]


def normal_quantile(error_rate: float) -> float:
    """The two-sided quantile of the normal distribution."""
    return NormalDist().inv_cdf(1 - error_rate / 2)


def mean_interval(
    values: Float[np.ndarray, "example"], ends: Interval, terms: Sequence[MethodTerm], seed: int, error_rate: float
) -> Interval:
    """Interval of the mean, wrong at that rate. `ends`: range of each value.

    Shares of 0 and 1: Clopper and Pearson (1934). Means and differences of such shares: as if two more examples (of a
    mean four) had been half at one end and half at the other (Agresti and Coull, 1998; Bonett and Price, 2012). All
    else: the bootstrap of `engine.metrics.results`, with room for what few examples cannot show.
    """
    if any(term.metric != OVERLAP for term in terms):
        return with_room(values, widened_interval(values, seed, error_rate), ends, error_rate)
    if len(terms) == 1 and np.isin(values, (0.0, 1.0)).all() and ends == (0.0, 1.0):
        return share_interval(int(values.sum()), len(values), error_rate)
    more = np.concatenate([values, np.repeat(ends, 2 if len(terms) == 1 else 1)])
    half = normal_quantile(error_rate) * math.sqrt(more.var() / len(more))
    low, high = max(more.mean() - half, ends[0]), min(more.mean() + half, ends[1])
    return float(min(low, values.mean())), float(max(high, values.mean()))


def share_interval(hits: int, n: int, error_rate: float) -> Interval:
    """Clopper and Pearson's interval of a share."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, n - hits + 1, error_rate / 2)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - error_rate / 2)) if hits < n else 1.0
    return low, high


def widened_interval(values: Float[np.ndarray, "example"], seed: int, error_rate: float) -> Interval:
    """The 95 % bootstrap interval, each side as much longer as Student's t is at that rate.

    A bootstrap of 2,000 draws has no quantiles as far out as a claim of 48 numbers needs them.
    """
    from scipy.stats import t

    plain = interval(values, seed)
    assert plain is not None
    mean = float(values.mean())
    times = float(np.divide(*t.ppf(1 - np.array([error_rate, ERROR_RATE]) / 2, len(values) - 1)))
    return mean - (mean - plain[0]) * times, mean + (plain[1] - mean) * times


def with_room(values: Float[np.ndarray, "example *_"], plain: Interval, ends: Interval, error_rate: float) -> Interval:
    """Widen an interval where fewer than `FEW` examples differ from the commonest value.

    As many may differ as Clopper and Pearson's upper end says, and each may lie at the end of the range.
    """
    kinds, counts = np.unique(values.round(9), axis=0, return_counts=True)
    others = len(values) - int(counts.max())
    if others >= FEW:
        return plain
    unseen = share_interval(others, len(values), error_rate)[1]
    center = float(kinds[counts.argmax()]) if values.ndim == 1 else sum(plain) / 2
    low, high = center - unseen * (center - ends[0]), center + unseen * (ends[1] - center)
    return min(plain[0], low), max(plain[1], high)


def range_of_sum(terms: Sequence[MethodTerm], weights: Weights) -> Interval:
    """The range of the sum of the terms in any example.

    A fall is from -1 to 1; but a sum whose weights on the same models cancel compares what is left of one probability.
    """
    totals: dict[tuple[str, ...], float] = {}
    for term, weight in zip(terms, weights, strict=True):
        totals[term.models] = totals.get(term.models, 0.0) + weight
    pairs = []
    for term, weight in zip(terms, weights, strict=True):
        own = measure(term.metric)
        low = 0.0 if own.fall and not totals[term.models] else own.low
        pairs.append(sorted((weight * low, weight * own.high)))
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def sum_interval(value: float, parts: Sequence[float], intervals: Sequence[Interval]) -> Interval:
    """Interval of a sum of independent parts: adds the squares of their reach (Zou and Donner, 2008)."""
    below = math.sqrt(sum((one - low) ** 2 for one, (low, _) in zip(parts, intervals, strict=True)))
    above = math.sqrt(sum((high - one) ** 2 for one, (_, high) in zip(parts, intervals, strict=True)))
    return value - below, value + above


def variance_intervals(
    columns: Columns, weights: Weights, error_rates: Sequence[float]
) -> tuple[float, tuple[Interval, ...]]:
    """The weighted sum of the variances between the models' means, with an interval for each error rate.

    It is free of the noise of the examples, so that it is 0 where the models are equal. The variance of the means
    themselves is too large by the noise of each example with itself; left out, the mean of the products of all pairs
    of different examples is right on average (Hoeffding's U-statistic, 1948).
    """
    products = [weight * _products(own) for own, weight in zip(columns, weights, strict=True)]
    value, error = _mean_of_pairs(np.sum(products, axis=0))
    reach = LARGEST_VARIANCE * sum(map(abs, weights))
    rows = np.concatenate(columns, axis=1)
    plain = [(value - normal_quantile(rate) * error, value + normal_quantile(rate) * error) for rate in error_rates]
    ends = (value - reach, value + reach)
    return value, tuple(with_room(rows, one, ends, rate) for one, rate in zip(plain, error_rates, strict=True))


def _products(column: Float[np.ndarray, "example model"]) -> Float[np.ndarray, "example example"]:
    """What each two examples say together of the variance between the models."""
    centered = column - column.mean(axis=1, keepdims=True)
    products = centered @ centered.T / (column.shape[1] - 1)
    np.fill_diagonal(products, 0.0)
    return products


def _mean_of_pairs(products: Float[np.ndarray, "example example"]) -> tuple[float, float]:
    """The mean over pairs of different examples, and its standard error.

    The jackknife's (Arvesen, 1969) knows what single examples add. Where models are equal that is nothing, and only
    what pairs add is left: Hoeffding's second term, which makes the error too large rather than too small.
    """
    n, total, own = len(products), products.sum(), products.sum(axis=1)
    value = float(total / (n * (n - 1)))
    if n < 3:
        return value, 0.0  # no pair is left without one of them; the room for what is not seen is the interval
    without = (total - 2 * own) / ((n - 1) * (n - 2))
    single = (n - 1) / n * ((without - without.mean()) ** 2).sum()
    pairs = 2 * (products**2).sum() / (n * (n - 1)) ** 2
    return value, float(np.sqrt(single + pairs))
