"""Intervals at any chance of error, never without width, so that no claim is settled by a few equal examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from jaxtyping import Float

from engine.metrics.results import Interval, interval
from engine.reproduction.claims import Term
from engine.reproduction.measures import Measure, measure
from engine.reproduction.verdicts import CHANCE

FEW = 5
"""Of so many examples that differ from all others a bootstrap knows enough."""
HITS = "gt_overlap"
"""The metric that is 0 or 1 in each example of one model."""


def normal(chance: float) -> float:
    """The two-sided quantile."""
    return NormalDist().inv_cdf(1 - chance / 2)


def of_mean(
    values: Float[np.ndarray, "example"], ends: Interval, terms: Sequence[Term], seed: int, chance: float
) -> Interval:
    """Of the mean, wrong with that chance. `ends`: between which each value must lie.

    Shares of 0 and 1: Clopper and Pearson (1934). Means and differences of such shares: as if two more examples (of a
    mean four) had been half at one end and half at the other (Agresti and Coull, 1998; Bonett and Price, 2012). All
    else: the bootstrap of `engine.metrics.results`, with room for what few examples cannot show.
    """
    if any(term.metric != HITS for term in terms):
        return with_room(values, widened(values, seed, chance), ends, chance)
    if len(terms) == 1 and np.isin(values, (0.0, 1.0)).all() and ends == (0.0, 1.0):
        return exact(int(values.sum()), len(values), chance)
    return _as_if_more(values, ends, 2 if len(terms) == 1 else 1, chance)


def exact(hits: int, n: int, chance: float) -> Interval:
    """Clopper and Pearson's interval of a share."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, n - hits + 1, chance / 2)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - chance / 2)) if hits < n else 1.0
    return low, high


def _as_if_more(values: Float[np.ndarray, "example"], ends: Interval, times: int, chance: float) -> Interval:
    more = np.concatenate([values, np.repeat(ends, times)])
    half = normal(chance) * math.sqrt(more.var() / len(more))
    low, high = max(more.mean() - half, ends[0]), min(more.mean() + half, ends[1])
    return float(min(low, values.mean())), float(max(high, values.mean()))


def widened(values: Float[np.ndarray, "example"], seed: int, chance: float) -> Interval:
    """The 95 % bootstrap interval, each side as much longer as Student's t is at that chance.

    A bootstrap of 2,000 draws has no quantiles as far out as a claim of 48 numbers needs them.
    """
    from scipy.stats import t

    found = interval(values, seed)
    assert found is not None
    mean, times = float(values.mean()), float(np.divide(*t.ppf(1 - np.array([chance, CHANCE]) / 2, len(values) - 1)))
    return mean - (mean - found[0]) * times, mean + (found[1] - mean) * times


def with_room(values: Float[np.ndarray, "example *_"], found: Interval, ends: Interval, chance: float) -> Interval:
    """Where fewer than `FEW` examples differ from the commonest value: as far as those not seen may reach.

    As many may differ as Clopper and Pearson's upper end says, and each may lie at the end of what can be.
    """
    kinds, counts = np.unique(values.round(9), axis=0, return_counts=True)
    others = len(values) - int(counts.max())
    if others >= FEW:
        return found
    unseen = exact(others, len(values), chance)[1]
    centre = float(kinds[counts.argmax()]) if values.ndim == 1 else sum(found) / 2
    low, high = centre - unseen * (centre - ends[0]), centre + unseen * (ends[1] - centre)
    return min(found[0], low), max(found[1], high)


def ends_of(terms: Sequence[Term], weights: Sequence[int | float]) -> Interval:
    """Between which the sum of the terms lies in any example.

    A fall is from -1 to 1; but a sum whose weights on the same models cancel compares what is left of one probability.
    """
    totals: dict[tuple[str, ...], float] = {}
    for term, weight in zip(terms, weights, strict=True):
        totals[term.models] = totals.get(term.models, 0.0) + weight
    ends = [_ends(measure(term.metric), totals[term.models]) for term in terms]
    pairs = [sorted((weight * low, weight * high)) for weight, (low, high) in zip(weights, ends, strict=True)]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _ends(of: Measure, total: float) -> Interval:
    return (0.0 if of.fall and not total else of.low), of.high
