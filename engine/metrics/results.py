"""Metric values and their means: one row per example, mean scores with 95% intervals, and paired differences."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from engine.errors import ExegesisError
from engine.lazy import scipy
from engine.metrics.catalog import Better, metric

Interval = tuple[float, float]

LEVEL = 0.95
RESAMPLES = 2000
ROUNDING = 1e-12
"""Difference, relative to the largest value, below which sums count as equal."""
ONE = "no interval: only one example"
EQUAL = "no interval: all examples have the same value, so resampling shows no spread"
BY_BATCH = "no interval and no rank: examples that were explained together share one measurement"


@dataclass(frozen=True)
class MetricKey:
    """The method, data and metric of a value, apart from the example.

    `against`: the other method, if two are compared. `percent`: the share of units, along a removal curve.
    """

    model: str
    dataset: str
    method: str
    metric: str
    against: str = ""
    percent: int | None = None


@dataclass(frozen=True)
class MetricRow:
    """One observation: a metric of one method's map. `example`: the index in the data set."""

    of: MetricKey
    example: int
    value: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.value):
            raise ExegesisError(
                f"{self.of.metric} of {self.of.method}, example {self.example}: must be a finite number, "
                f"got {self.value}."
            )

    def as_plain(self) -> dict[str, str | int | float | None]:
        """Return the columns of a tidy table."""
        of = self.of
        return {
            "model": of.model,
            "dataset": of.dataset,
            "example": self.example,
            "method": of.method,
            "metric": of.metric,
            "value": self.value,
            "against": of.against,
            "percent": of.percent,
        }


@dataclass(frozen=True)
class MetricSkip:
    """An example without a value of a metric for a method, and the reason."""

    of: MetricKey
    example: int
    reason: str


@dataclass(frozen=True)
class MetricScore:
    """The mean of a metric over `n` examples with its 95% interval (None: see `doubt`).

    `value`: None if no example has one. `skipped`: number of examples without a value, by reason.
    """

    metric: str
    method: str
    value: float | None
    interval: Interval | None
    n: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    better: Better = "high"
    model: str = ""
    dataset: str = ""
    against: str = ""
    percent: int | None = None

    def __post_init__(self) -> None:
        if (self.value is None) != (self.n == 0):
            raise ValueError(f"value: one exactly where there are examples, got {self.value} of {self.n}")

    @property
    def doubt(self) -> str:
        """The reason for a missing or uninformative interval, or an empty string."""
        if self.n == 0:
            return ""
        if metric(self.metric).by_batch:
            return BY_BATCH
        if self.interval is None:
            return ONE
        return EQUAL if self.interval[0] == self.interval[1] else ""


def mean_scores(rows: Iterable[MetricRow], skips: Iterable[MetricSkip] = (), seed: int = 0) -> list[MetricScore]:
    """Return a score for each key of the rows and skips, in order of first occurrence.

    Rows of a slice of the examples give the scores of that slice.
    """
    values: dict[MetricKey, list[float]] = {}
    reasons: dict[MetricKey, Counter[str]] = {}
    for row in rows:
        values.setdefault(row.of, []).append(row.value)
    for skip in skips:
        reasons.setdefault(skip.of, Counter())[skip.reason] += 1
    return [_score(of, values.get(of, []), reasons.get(of, {}), seed) for of in {**values, **reasons}]


@dataclass(frozen=True)
class MeanDifference:
    """Difference of two means over the same `n` examples with a 95% interval; None if undefined."""

    value: float | None
    interval: Interval | None
    n: int


def mean_difference(rows: Iterable[MetricRow], one: MetricKey, other: MetricKey, seed: int = 0) -> MeanDifference:
    """Return the mean of paired differences, in which the difficulty of examples cancels out."""
    by_example: dict[MetricKey, dict[int, float]] = {one: {}, other: {}}
    for row in rows:
        if row.of in by_example:
            by_example[row.of][row.example] = row.value
    a, b = by_example[one], by_example[other]
    gaps = np.array([a[example] - b[example] for example in a if example in b], dtype=np.float64)
    return MeanDifference(float(gaps.mean()) if len(gaps) else None, interval(gaps, seed), len(gaps))


def _score(of: MetricKey, values: Sequence[float], skipped: Mapping[str, int], seed: int) -> MetricScore:
    array, about = np.array(values, dtype=np.float64), metric(of.metric)
    return MetricScore(
        metric=of.metric,
        method=of.method,
        value=float(array.mean()) if values else None,
        interval=None if about.by_batch else interval(array, seed, about.is_share),
        n=len(values),
        skipped=dict(skipped),
        better=about.better,
        model=of.model,
        dataset=of.dataset,
        against=of.against,
        percent=of.percent,
    )


def interval(values: Float[np.ndarray, "example"], seed: int = 0, share: bool = False) -> Interval | None:
    """Return the 95% interval of the mean over examples, in its unit; None for fewer than two examples.

    `share`: each example counts as 1 or 0, so the mean is a share of the examples. The interval is then the exact one
    of Clopper and Pearson (1934), which has a width even if all values are 1 or all are 0. Values in between, such as
    means over several models, are resampled like any others.

    Resampling uses the bias-corrected and accelerated bootstrap (Efron, 1987; DiCiccio and Efron, 1996, section 2),
    since values such as drops in probability are skewed. For few examples it is too narrow, so the normal quantile is
    replaced by sqrt(n / (n - 1)) times Student's t, as Hesterberg (2015, The American Statistician 69) expands
    percentiles. The draws depend only on the seed and the number of examples, so methods are resampled alike. For equal
    values the interval has no width, as resampling shows no spread; `MetricScore.doubt` then says so.
    """
    if len(values) < 2:
        return None
    if share and np.isin(values, (0.0, 1.0)).all():
        return share_interval(int(values.sum()), len(values))
    if (values == values[0]).all():
        return float(values[0]), float(values[0])
    means = np.sort(_resample_counts(len(values), seed) @ values / len(values))
    low, high = np.quantile(means, _quantile_levels(values, means)).clip(values.min(), values.max())
    return float(low), float(high)


def resample(values: Float[np.ndarray, "example cell"], seed: int = 0) -> Float[np.ndarray, "resample cell"]:
    """Return the means over examples in each resample, for intervals of statistics other than means."""
    return _resample_counts(len(values), seed) @ values / len(values)


def share_interval(hits: int, n: int, chance: float = 1 - LEVEL) -> Interval:
    """Return Clopper and Pearson's interval of a share. `chance`: largest probability of an error, half at each end."""
    betaincinv = scipy.special.betaincinv
    low = float(betaincinv(hits, n - hits + 1, chance / 2)) if hits else 0.0
    return low, float(betaincinv(hits + 1, n - hits, 1 - chance / 2)) if hits < n else 1.0


def wilson_interval(share: float, count: int | float, quantile: float) -> Interval:
    """Return the score interval of a share of `count` answers; `count` may be an effective sample size, not an integer.

    Source: Wilson (1927); Brown, Cai and DasGupta (2001), equation 4.
    """
    push = quantile**2 / count
    center = (share + push / 2) / (1 + push)
    reach = quantile / (1 + push) * float(np.sqrt(share * (1 - share) / count + push / (4 * count)))
    return max(0.0, center - reach), min(1.0, center + reach)


def _quantile_levels(
    values: Float[np.ndarray, "example"], means: Float[np.ndarray, "resample"]
) -> Float[np.ndarray, "2"]:
    """Return the quantile levels of the resampled means that bound the interval."""
    mean, gaps = values.mean(), values - values.mean()
    # Resamples that hold each example once have the same mean except for rounding, which differs between processors.
    same = ROUNDING * np.abs(values).max()
    below = ((means < mean - same).mean() + (means <= mean + same).mean()) / 2
    bias = scipy.special.ndtri(np.clip(below, 1 / len(means), 1 - 1 / len(means)))
    acceleration = (gaps**3).sum() / (6 * (gaps**2).sum() ** 1.5)
    pushed = bias + np.array([-1, 1]) * _expansion(len(values))
    return scipy.special.ndtr(bias + pushed / (1 - acceleration * pushed))


@functools.cache
def _expansion(n: int) -> float:
    return float(np.sqrt(n / (n - 1)) * scipy.stats.t.ppf((1 + LEVEL) / 2, n - 1))


@functools.lru_cache(maxsize=4)
def _resample_counts(n: int, seed: int) -> Float[np.ndarray, "resample example"]:
    """Return the multiplicity of each example in each resample."""
    return np.random.default_rng([seed, n]).multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(np.float64)
