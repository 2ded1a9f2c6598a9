"""What metrics find: a row an example, and what the rows of all examples come to, with an interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.errors import ExegesisError
from engine.metrics.bootstrap import Interval, interval
from engine.metrics.catalog import Better, metric

ONE = "no interval: it is of one example"
EQUAL = "no interval: all examples have this value, so that resampling them cannot tell how far others lie"
BY_BATCH = "no interval and no rank: examples that were explained together share one measurement"


@dataclass(frozen=True)
class Of:
    """What a number is of, apart from the example.

    `against`: the other method, where two are compared. `percent`: the share of units, along a removal curve.
    """

    model: str
    dataset: str
    method: str
    metric: str
    against: str = ""
    percent: int | None = None


@dataclass(frozen=True)
class Row:
    """One observation: a metric of one method's map of one example, by its place in the data set."""

    of: Of
    example: int
    value: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.value):
            raise ExegesisError(
                f"{self.of.metric} of {self.of.method}, example {self.example}: must be a finite number, "
                f"got {self.value}."
            )

    def as_plain(self) -> dict[str, str | int | float | None]:
        """The columns of a tidy table."""
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
class Skip:
    """An example of which a metric has no value for a method, and why."""

    of: Of
    example: int
    reason: str


@dataclass(frozen=True)
class Score:
    """The mean of a metric over `n` examples with its 95 % interval; None where no example has one (see `doubt`).

    `skipped`: how many examples have no value, by reason.
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
        """Why it has no interval, or one that tells nothing, in words; empty where it has one."""
        if self.n == 0:
            return ""
        if metric(self.metric).by_batch:
            return BY_BATCH
        if self.interval is None:
            return ONE
        return EQUAL if self.interval[0] == self.interval[1] else ""


def scores(rows: Iterable[Row], skips: Iterable[Skip] = (), seed: int = 0) -> list[Score]:
    """A score for all that the rows and skips are of, in the order in which they first come.

    Give the rows of some examples only, and they are scores of that slice.
    """
    values: dict[Of, list[float]] = {}
    reasons: dict[Of, Counter[str]] = {}
    for row in rows:
        values.setdefault(row.of, []).append(row.value)
    for skip in skips:
        reasons.setdefault(skip.of, Counter())[skip.reason] += 1
    return [_score(of, values.get(of, []), reasons.get(of, {}), seed) for of in {**values, **reasons}]


@dataclass(frozen=True)
class Difference:
    """How much higher one mean is than another over the same `n` examples, with a 95 % interval; None of none."""

    value: float | None
    interval: Interval | None
    n: int


def difference(rows: Iterable[Row], one: Of, other: Of, seed: int = 0) -> Difference:
    """By pairs: what makes an example hard makes it hard for both, and does not count."""
    by_example: dict[Of, dict[int, float]] = {one: {}, other: {}}
    for row in rows:
        if row.of in by_example:
            by_example[row.of][row.example] = row.value
    a, b = by_example[one], by_example[other]
    gaps = np.array([a[example] - b[example] for example in a if example in b], dtype=np.float64)
    return Difference(float(gaps.mean()) if len(gaps) else None, interval(gaps, seed), len(gaps))


def _score(of: Of, values: Sequence[float], skipped: Mapping[str, int], seed: int) -> Score:
    found, known = np.array(values, dtype=np.float64), metric(of.metric)
    return Score(
        metric=of.metric,
        method=of.method,
        value=float(found.mean()) if values else None,
        interval=None if known.by_batch else interval(found, seed, known.is_share),
        n=len(values),
        skipped=dict(skipped),
        better=known.better,
        model=of.model,
        dataset=of.dataset,
        against=of.against,
        percent=of.percent,
    )
