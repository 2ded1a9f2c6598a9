"""Numbers of claims: from values by example, or by seed, to a contrast with its intervals.

Intervals are at any error rate, and never without width, so that no claim is settled by a few equal examples.
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
"""Key of the data set (or task), part that a model plays, method, metric."""
ExampleValues = Mapping[int, float]
"""Values by example."""
FEW = 5
"""With as many examples that differ from all others a bootstrap is enough."""
LARGEST_VARIANCE = 4 / 3
"""How far a variance of four means from 0 to 1 can be moved at most, as a multiple of the share of examples moved."""

Weights = Sequence[int | float]
Columns = Sequence[Float[np.ndarray, "example model"]]


@dataclass(frozen=True)
class ExampleFindings:
    """`values`: by data set, part, method and metric. `absent`: why the model of a part has none of a source."""

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
        """Whether each method on each model has the best mean that its score can have, or one that is hardly below."""
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
    """The claim's entries with the data sets that stand in for its tasks, each once; two tasks may have the same."""
    keys = {task: data.key for task, data in scale.tasks.items()}

    def place(contrast: Contrast) -> Contrast:
        terms = tuple(replace(term, task=keys[term.task]) for term in contrast.terms)
        name = ", ".join(keys.get(word, word) for word in contrast.name.split(", "))
        return replace(contrast, name=name, terms=terms)

    return list(dict.fromkeys(tuple(place(contrast) for contrast in choices) for choices in claim.entries))


@dataclass(frozen=True)
class Estimate:
    """`intervals`: one for each error rate. `n`: examples that have all the values; of two data sets the smaller n."""

    value: float
    intervals: tuple[Interval, ...]
    n: int


def estimate(
    contrast: Contrast,
    values: Mapping[ValueKey, ExampleValues],
    seed: int,
    error_rates: Sequence[float] = (ERROR_RATE,),
) -> Estimate:
    """Estimate a contrast by pairs: only examples count that have a value in every cell of their task.

    Means over methods and models are taken within an example (`mean_interval`); of variances between models
    see `variance_intervals`. Tasks have examples of their own, and their intervals are summed.
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
    """The two-sided quantile of the normal distribution."""
    return NormalDist().inv_cdf(1 - error_rate / 2)


@functools.cache
def student_quantile(error_rate: float, degrees: int) -> float:
    """The two-sided quantile of Student's t distribution with so many degrees of freedom."""
    return float(scipy.stats.t.ppf(1 - error_rate / 2, degrees))


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


def widened_interval(values: Float[np.ndarray, "example"], seed: int, error_rate: float) -> Interval:
    """The 95% bootstrap interval, each side as much longer as Student's t is at that rate.

    A bootstrap of 2,000 draws has no quantiles as far out as a claim of 48 numbers needs them.
    """
    plain = interval(values, seed)
    assert plain is not None
    mean = float(values.mean())
    times = student_quantile(error_rate, len(values) - 1) / student_quantile(ERROR_RATE, len(values) - 1)
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


def seed_interval(values: Float[np.ndarray, "seed"], ends: Interval, error_rate: float) -> Interval:
    """Student's t interval of a mean over seeds, wrong at that rate. `ends`: range of each value.

    Of equal values, which have no spread to go by, as much as one seed of so many can hide (`with_room`).
    """
    mean = float(values.mean())
    if np.ptp(values) <= ROUNDING:
        return with_room(values, (mean, mean), ends, error_rate)
    half = student_quantile(error_rate, len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return max(mean - half, ends[0]), min(mean + half, ends[1])


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
