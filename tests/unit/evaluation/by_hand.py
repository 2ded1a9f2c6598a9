"""Evaluations of a few numbers, written by hand: what views and charts of them show can be told beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.evaluation.plan import Plan
from engine.evaluation.result import Evaluation, Facts
from engine.metrics.results import MetricKey, MetricRow, MetricSkip

Key = tuple[str, str, str] | tuple[str, str, str, int]
"""Model, method and metric, along a curve the percent."""
Found = Sequence[int | float | str]
"""Of examples 0, 1, ...: the value, or why there is none."""


def by_hand(
    found: Mapping[Key, Found], facts: Sequence[Facts] = (), dataset: str = "reviews", metrics: Sequence[str] = ()
) -> Evaluation:
    """Models, methods and metrics are those that the keys name, in their order, and `metrics` besides."""
    models, methods, named = (tuple(dict.fromkeys(key[place] for key in found)) for place in range(3))
    plan = Plan(models, dataset, methods, (*named, *metrics), unit="token")  # type: ignore[arg-type]
    rows, skips = list[MetricRow](), list[MetricSkip]()
    for (model, method, metric, *percent), values in found.items():
        of = MetricKey(model, dataset, method, metric, "", *percent)
        for example, value in enumerate(values):
            if isinstance(value, str):
                skips.append(MetricSkip(of, example, value))
            else:
                rows.append(MetricRow(of, example, float(value)))
    return Evaluation(plan, tuple(rows), tuple(skips), tuple(facts), 0, 0)


def fact(
    example: int, label: str | None = "good", right: bool | None = True, length: int = 5, model: str = "m",
    marked: bool | None = None,
) -> Facts:  # fmt: skip
    """One example as a model sees it."""
    extra = {} if marked is None else {"marked": marked}
    return Facts(model, example, label, "good", 0.9, right, length, extra)
