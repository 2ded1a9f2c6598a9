"""What is found while a model is evaluated: values and the reasons why there are none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

from engine.metrics.results import MetricKey, MetricRow, MetricSkip


@dataclass
class Notes:
    """Of one model on one data set."""

    model: str
    dataset: str
    rows: list[MetricRow] = field(default_factory=list)
    skips: list[MetricSkip] = field(default_factory=list)

    def note(
        self, example: int, method: str, metric: str, found: float | str, against: str = "", percent: int | None = None
    ) -> None:
        """A value, or in its place the reason why there is none."""
        of = _of(self.model, self.dataset, method, metric, against, percent)
        if isinstance(found, str):
            self.skips.append(MetricSkip(of, example, found))
        else:
            self.rows.append(MetricRow(of, example, float(found)))

    def withdraw(self, method: str, metrics: Collection[str], why: str) -> None:
        """Takes the method's values by these metrics back: in their places stands why there are none."""
        taken = [row for row in self.rows if row.of.method == method and row.of.metric in metrics]
        self.rows = [row for row in self.rows if row.of.method != method or row.of.metric not in metrics]
        for metric, example in dict.fromkeys((row.of.metric, row.example) for row in taken):
            self.note(example, method, metric, why)


@lru_cache(maxsize=4096)
def _of(model: str, dataset: str, method: str, metric: str, against: str, percent: int | None) -> MetricKey:
    """One object for the rows of all examples: there may be hundreds of thousands."""
    return MetricKey(model, dataset, method, metric, against, percent)
