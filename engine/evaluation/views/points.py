"""The points of one metric: what each method comes to on each model, and on how many examples."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from engine.errors import unknown
from engine.evaluation.result import Evaluation
from engine.metrics.catalog import METRICS
from engine.metrics.results import MetricRow, MetricScore, MetricSkip, mean_scores


@dataclass(frozen=True)
class Wanted:
    """Which models and methods, by their names; None for all."""

    models: Collection[str] | None = None
    methods: Collection[str] | None = None

    def has(self, one: MetricRow | MetricSkip) -> bool:
        """Whether it is of one of them."""
        return (self.models is None or one.of.model in self.models) and (
            self.methods is None or one.of.method in self.methods
        )


ALL = Wanted()


def metrics_of(found: Evaluation) -> list[str]:
    """The metrics that give each method one number on each example, in the order of the plan."""
    return [id for id in found.plan.metrics if not METRICS[id].by_percent and METRICS[id].needs != "others"]


def curves_of(found: Evaluation) -> list[str]:
    """The metrics that give each method a curve."""
    return [id for id in found.plan.metrics if METRICS[id].by_percent]


def is_score(found: Evaluation) -> bool:
    """Whether the model gives a number and no class: then what is drawn is no probability."""
    labels = {one.label for one in found.facts if one.label is not None}
    return bool(labels) and all(one.right is None for one in found.facts) and all(map(_is_number, labels))


def points(found: Evaluation, metric: str, of: Wanted = ALL) -> list[MetricScore]:
    """A score for each model and method, along a curve for each share of units, with its 95 % interval over examples.

    In the order of the plan. Only what is asked for is resampled, so that one chart costs little. A method that has no
    value on any example has a score too: without a value, and with the reasons why.
    """
    if metric not in (drawn := (*metrics_of(found), *curves_of(found))):
        raise unknown("metric", metric, drawn)
    own = narrowed(found, metric, of)
    skips: Iterable[MetricSkip] = own.skips
    if METRICS[metric].by_percent:
        skips = _at_each(skips, sorted({one.of.percent for one in own.rows if one.of.percent is not None}))
    order = {name: place for place, name in enumerate((*found.plan.models, *found.plan.company))}
    made = mean_scores(own.rows, skips, found.plan.seed)
    return sorted(made, key=lambda one: (order[one.model], order[one.method], one.percent or 0))


def narrowed(found: Evaluation, metric: str, of: Wanted = ALL) -> Evaluation:
    """The rows and skips of one metric alone, so that cutting it in slices costs little; facts of those models."""
    rows = tuple(one for one in found.rows if one.of.metric == metric and of.has(one))
    skips = tuple(one for one in found.skips if one.of.metric == metric and of.has(one))
    facts = tuple(one for one in found.facts if of.models is None or one.model in of.models)
    return dataclasses.replace(found, rows=rows, skips=skips, facts=facts)


def missing(found: Iterable[MetricScore]) -> list[MetricScore]:
    """Those without a value on any example: they have no place in a chart, and are to be told in words."""
    return [one for one in found if one.value is None]


def _at_each(skips: Iterable[MetricSkip], percents: Collection[int]) -> Iterator[MetricSkip]:
    """An example without a curve is missing at each of its points."""
    for one in skips:
        for percent in percents or (None,):
            yield dataclasses.replace(one, of=dataclasses.replace(one.of, percent=percent))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
