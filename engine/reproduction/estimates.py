"""Estimates of contrasts, with intervals, from values by example or by seed.

Intervals can have any error rate. They always have a width, so that a few equal examples never decide a claim.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from jaxtyping import Float

from engine.lazy import scipy
from engine.metrics.results import Interval, interval, share_interval
from engine.reproduction.claims import Claim, Contrast, MethodTerm, NoNumber, interval_number
from engine.reproduction.papers import EMBEDDED, OVERLAP, Scale, Source, ceiling_measure, measure
from engine.reproduction.report import CEILING_WIDTH, ERROR_RATE, ROUNDING, ClaimNumber, Margin

ValueKey = tuple[str, str, str, str]
"""Key of the data set, part that a model plays, method, metric."""
ExampleValues = Mapping[int, float]
"""Values by example."""
FEW = 5
"""Number of examples differing from the most common value at which a bootstrap interval is reliable."""
LARGEST_VARIANCE = 4 / 3
"""Maximum change of the variance of four means in 0 to 1, as a multiple of the share of examples that change."""

Weights = Sequence[int | float]
Columns = Sequence[Float[np.ndarray, "example model"]]


@dataclass(frozen=True)
class ExampleFindings:
    """Values of experiments by example.

    `values`: by data set, part, method and metric. `absent`: why there are none, by data set, part and source.
    """

    values: Mapping[ValueKey, ExampleValues]
    absent: Mapping[tuple[str, str, Source], str] = field(default_factory=dict)
    scale: Scale = EMBEDDED

    def entries(self, claim: Claim) -> Sequence[Sequence[Contrast]]:
        return entries_at(self.scale, claim)

    def missing(self, claim: Claim) -> str:
        terms = [term for entry in self.entries(claim) for contrast in entry for term in contrast.terms]
        needed = dict.fromkeys(
            (term.task, model, measure(term.metric).source) for term in terms for model in term.models
        )
        return " ".join(dict.fromkeys(self.absent[part] for part in needed if part in self.absent))

    def number(
        self, claim: Claim, contrast: Contrast, seed: int, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        result = estimate(contrast, self.values, seed, (ERROR_RATE, *error_rates))
        at_best = self._at_best(contrast)
        return interval_number(claim, contrast, result.value, result.intervals, result.n, error_rates, at_best)

    def _at_best(self, contrast: Contrast) -> bool:
        """Whether the mean of each method on each model is within `CEILING_WIDTH` of the best possible score."""
        keys = [
            (term.task, model, method, ceiling_measure(term.metric))
            for term in contrast.terms
            for model in term.models
            for method in term.methods
        ]
        means = [sum(own.values()) / len(own) if (own := self.values.get(key)) else None for key in keys]
        return all(
            mean is not None and mean >= measure(key[3]).high - CEILING_WIDTH - ROUNDING
            for key, mean in zip(keys, means, strict=True)
        )


def entries_at(scale: Scale, claim: Claim) -> list[tuple[Contrast, ...]]:
    """Return the claim's entries, with tasks replaced by the keys of their data sets.

    Entries that become equal, because one data set stands in for two tasks, are kept once.
    """
    keys = {task: data.key for task, data in scale.tasks.items()}

    def place(contrast: Contrast) -> Contrast:
        terms = tuple(replace(term, task=keys[term.task]) for term in contrast.terms)
        name = ", ".join(keys.get(word, word) for word in contrast.name.split(", "))
        return replace(contrast, name=name, terms=terms)

    return list(dict.fromkeys(tuple(place(contrast) for contrast in choices) for choices in claim.entries))


@dataclass(frozen=True)
class Estimate:
    """The estimate of a contrast.

    `intervals`: one per error rate. `n`: number of examples that have all values; the smaller number for two data sets.
    """

    value: float
    intervals: tuple[Interval, ...]
    n: int


def estimate(
    contrast: Contrast,
    values: Mapping[ValueKey, ExampleValues],
    seed: int,
    error_rates: Sequence[float] = (ERROR_RATE,),
) -> Estimate:
    """Estimate a contrast from the examples that have every value that their task needs (a paired comparison).

    Values are averaged over methods and models within each example (`mean_interval`); for variances between models see
    `variance_intervals`. Different tasks have different examples, so their intervals are summed.
    """
    tasks = dict.fromkeys(term.task for term in contrast.terms)
    of_tasks = ([term for term in contrast.terms if term.task == task] for task in tasks)
    parts = [_task_estimate(terms, contrast.oriented, values, seed, error_rates) for terms in of_tasks]
    if len(parts) == 1:
        return parts[0]
    each = [part.value for part in parts]
    total = sum(each)
    intervals = zip(*(part.intervals for part in parts), strict=True)
    return Estimate(total, tuple(sum_interval(total, each, own) for own in intervals), min(part.n for part in parts))


def _task_estimate(
    terms: Sequence[MethodTerm],
    oriented: bool,
    values: Mapping[ValueKey, ExampleValues],
    seed: int,
    error_rates: Sequence[float],
) -> Estimate:
    keys = [
        [[(term.task, model, method, term.metric) for method in term.methods] for model in term.models]
        for term in terms
    ]
    examples = _shared_examples([key for term in keys for model in term for key in model], values)
    columns = [np.stack([_mean(model, values, examples) for model in term], axis=1) for term in keys]
    signs = [-1 if oriented and measure(term.metric).better == "low" else 1 for term in terms]
    weights = [term.times * sign for term, sign in zip(terms, signs, strict=True)]
    if terms[0].take == "variance":
        return Estimate(*variance_intervals(columns, weights, error_rates), len(examples))
    sums = np.stack([own.mean(axis=1) for own in columns], axis=1) @ np.array(weights, dtype=np.float64)
    ends = range_of_sum(terms, weights)
    intervals = tuple(mean_interval(sums, ends, terms, seed, rate) for rate in error_rates)
    return Estimate(float(sums.mean()), intervals, len(examples))


def _shared_examples(keys: Sequence[ValueKey], values: Mapping[ValueKey, ExampleValues]) -> list[int]:
    for key in keys:
        if not values.get(key):
            _, model, method, metric = key
            raise NoNumber(f"no example has a value of {metric} of {method} on {model}.")
    examples = sorted(set.intersection(*(set(values[key]) for key in keys)))
    if len(examples) < 2:
        raise NoNumber("fewer than two examples have all the numbers.")
    return examples


def _mean(keys: Sequence[ValueKey], values: Mapping[ValueKey, ExampleValues], examples: Sequence[int]) -> np.ndarray:
    return np.mean([[values[key][example] for example in examples] for key in keys], axis=0)


def normal_quantile(error_rate: float) -> float:
    """Return the two-sided quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(1 - error_rate / 2)


@functools.cache
def student_quantile(error_rate: float, degrees: int) -> float:
    """Return the two-sided quantile of Student's t distribution with `degrees` degrees of freedom."""
    return float(scipy.stats.t.ppf(1 - error_rate / 2, degrees))


def mean_interval(
    values: Float[np.ndarray, "example"], ends: Interval, terms: Sequence[MethodTerm], seed: int, error_rate: float
) -> Interval:
    """Return the interval of the mean at an error rate. `ends`: range of each value.

    One overlap that is 0 or 1 in every example: Clopper and Pearson (1934). Means and differences of overlaps: a normal
    interval with pseudo-examples, half at each end of the range, four for a mean (Agresti and Coull, 1998) and two for
    a difference (Bonett and Price, 2012). Other metrics: the bootstrap of `engine.metrics.results`, widened by
    `with_room` for values too rare to be seen.
    """
    if any(term.metric != OVERLAP for term in terms):
        return with_room(values, widened_interval(values, seed, error_rate), ends, error_rate)
    if len(terms) == 1 and np.isin(values, (0.0, 1.0)).all() and ends == (0.0, 1.0):
        return share_interval(int(values.sum()), len(values), error_rate)
    more = np.concatenate([values, np.repeat(ends, 2 if len(terms) == 1 else 1)])
    half = normal_quantile(error_rate) * math.sqrt(more.var() / len(more))
    low, high = max(more.mean() - half, ends[0]), min(more.mean() + half, ends[1])
    return float(min(low, values.mean())), float(max(high, values.mean()))


def widened_interval(values: Float[np.ndarray, "example"], seed: int, error_rate: float) -> Interval:
    """Return the 95% bootstrap interval, with both sides scaled by the ratio of Student's t quantiles.

    A bootstrap of 2,000 draws cannot estimate the extreme quantiles that a claim of 48 numbers needs.
    """
    plain = interval(values, seed)
    assert plain is not None
    mean = float(values.mean())
    times = student_quantile(error_rate, len(values) - 1) / student_quantile(ERROR_RATE, len(values) - 1)
    return mean - (mean - plain[0]) * times, mean + (plain[1] - mean) * times


def with_room(values: Float[np.ndarray, "example *_"], plain: Interval, ends: Interval, error_rate: float) -> Interval:
    """Widen an interval if fewer than `FEW` examples differ from the most common value.

    The share of examples that may differ is the upper end of Clopper and Pearson's interval; each may lie at an end of
    the range.
    """
    kinds, counts = np.unique(values.round(9), axis=0, return_counts=True)
    others = len(values) - int(counts.max())
    if others >= FEW:
        return plain
    unseen = share_interval(others, len(values), error_rate)[1]
    center = float(kinds[counts.argmax()]) if values.ndim == 1 else sum(plain) / 2
    low, high = center - unseen * (center - ends[0]), center + unseen * (ends[1] - center)
    return min(plain[0], low), max(plain[1], high)


def seed_interval(values: Float[np.ndarray, "seed"], ends: Interval, error_rate: float) -> Interval:
    """Return Student's t interval of a mean over seeds at an error rate. `ends`: range of each value.

    Equal values have no variance; their interval covers what this number of seeds may have missed (`with_room`).
    """
    mean = float(values.mean())
    if np.ptp(values) <= ROUNDING:
        return with_room(values, (mean, mean), ends, error_rate)
    half = student_quantile(error_rate, len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return max(mean - half, ends[0]), min(mean + half, ends[1])


def range_of_sum(terms: Sequence[MethodTerm], weights: Weights) -> Interval:
    """Return the range of the weighted sum of the terms for any example.

    A drop in probability ranges from -1 to 1. If the weights on the same models cancel, the drops start from the same
    probability and only the remaining probabilities, 0 to 1, are compared.
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
    """Return the interval of a sum of independent parts, by adding squared half widths (Zou and Donner, 2008)."""
    below = math.sqrt(sum((one - low) ** 2 for one, (low, _) in zip(parts, intervals, strict=True)))
    above = math.sqrt(sum((high - one) ** 2 for one, (_, high) in zip(parts, intervals, strict=True)))
    return value - below, value + above


def variance_intervals(
    columns: Columns, weights: Weights, error_rates: Sequence[float]
) -> tuple[float, tuple[Interval, ...]]:
    """Return the weighted sum of variances between the models' means, with an interval per error rate.

    The estimate is unbiased: 0 on average if the models are equal. The plain variance of the means is too large,
    because the product of each example with itself adds its noise; averaging over pairs of different examples avoids
    this (Hoeffding's U-statistic, 1948).
    """
    products = [weight * _products(own) for own, weight in zip(columns, weights, strict=True)]
    value, error = _mean_of_pairs(np.sum(products, axis=0))
    reach = LARGEST_VARIANCE * sum(map(abs, weights))
    rows = np.concatenate(columns, axis=1)
    plain = [(value - normal_quantile(rate) * error, value + normal_quantile(rate) * error) for rate in error_rates]
    ends = (value - reach, value + reach)
    return value, tuple(with_room(rows, one, ends, rate) for one, rate in zip(plain, error_rates, strict=True))


def _products(column: Float[np.ndarray, "example model"]) -> Float[np.ndarray, "example example"]:
    """Return each pair's contribution to the variance between the models; 0 on the diagonal."""
    centered = column - column.mean(axis=1, keepdims=True)
    products = centered @ centered.T / (column.shape[1] - 1)
    np.fill_diagonal(products, 0.0)
    return products


def _mean_of_pairs(products: Float[np.ndarray, "example example"]) -> tuple[float, float]:
    """Return the mean over pairs of different examples and its standard error.

    The jackknife (Arvesen, 1969) covers the contribution of single examples, which vanishes if the models are equal.
    Hoeffding's second term, the contribution of pairs, is added; it makes the error too large rather than too small.
    """
    n, total, own = len(products), products.sum(), products.sum(axis=1)
    value = float(total / (n * (n - 1)))
    if n < 3:
        return value, 0.0  # leaving one out leaves no pair; `with_room` then sets the interval
    without = (total - 2 * own) / ((n - 1) * (n - 2))
    single = (n - 1) / n * ((without - without.mean()) ** 2).sum()
    pairs = 2 * (products**2).sum() / (n * (n - 1)) ** 2
    return value, float(np.sqrt(single + pairs))
