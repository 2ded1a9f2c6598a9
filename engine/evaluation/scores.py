"""Scores of an evaluation for its charts: each mean with its interval and how many examples it rests on; in pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.errors import unknown
from engine.evaluation.result import Evaluation
from engine.lazy import scipy
from engine.metrics.catalog import METRICS
from engine.metrics.results import Interval, MetricKey, MetricRow, MetricScore, MetricSkip, mean_scores, resample

COSTS = ("evaluations", "seconds")
NOT_MEASURED = "it was not measured"
LEAST_METHODS, LEAST_EXAMPLES = 3, 2
"""A correlation over methods needs as many."""


@dataclass(frozen=True)
class ScoreFilter:
    """A selection of models and methods by their names; None for all."""

    models: Collection[str] | None = None
    methods: Collection[str] | None = None

    def has(self, key: MetricKey) -> bool:
        """Whether it is of one of them."""
        return (self.models is None or key.model in self.models) and (
            self.methods is None or key.method in self.methods
        )


EVERYTHING = ScoreFilter()


def scalar_metrics(evaluation: Evaluation) -> list[str]:
    """The metrics that give each method one number on each example, in the order of the plan."""
    return [id for id in evaluation.plan.metrics if not METRICS[id].by_percent and METRICS[id].needs != "others"]


def curve_metrics(evaluation: Evaluation) -> list[str]:
    """The metrics that give each method a curve."""
    return [id for id in evaluation.plan.metrics if METRICS[id].by_percent]


def predicts_scores(evaluation: Evaluation) -> bool:
    """Whether the model gives a number and no class: then what is drawn is no probability."""
    labels = {one.label for one in evaluation.facts if one.label is not None}
    return bool(labels) and all(one.right is None for one in evaluation.facts) and all(map(_is_number, labels))


def compute_scores(evaluation: Evaluation, metric: str, of: ScoreFilter = EVERYTHING) -> list[MetricScore]:
    """A score for each model and method, along a curve for each share of units, with its 95% interval over examples.

    In the order of the plan. Only what is asked for is resampled, so that one chart costs little. A method that has no
    value on any example has a score too: without a value, and with the reasons why.
    """
    if metric not in (drawn := (*scalar_metrics(evaluation), *curve_metrics(evaluation))):
        raise unknown("metric", metric, drawn)
    own = narrow(evaluation, metric, of)
    skips: Iterable[MetricSkip] = own.skips
    if METRICS[metric].by_percent:
        skips = _at_each(skips, sorted({one.of.percent for one in own.rows if one.of.percent is not None}))
    order = {
        name: place for place, name in enumerate((*evaluation.plan.models, *evaluation.plan.methods_with_baselines))
    }
    scores = mean_scores(own.rows, skips, evaluation.plan.seed)
    return sorted(scores, key=lambda one: (order[one.model], order[one.method], one.percent or 0))


def narrow(evaluation: Evaluation, metric: str, of: ScoreFilter = EVERYTHING) -> Evaluation:
    """The values of one metric alone, of these models and methods, so that cutting it in slices costs little."""
    models = tuple(one for one in evaluation.models if of.models is None or one.model in of.models)
    return dataclasses.replace(evaluation, models=models).narrow(lambda key: key.metric == metric and of.has(key))


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


@dataclass(frozen=True)
class ScorePair:
    """The scores of a method by two metrics over the same examples; both without a value where there are none."""

    x: MetricScore
    y: MetricScore


def pair_scores(evaluation: Evaluation, x: str, y: str, of: ScoreFilter = EVERYTHING) -> list[ScorePair]:
    """A pair for each model and method, in the order of the plan, each mean with its 95% interval over examples.

    Only examples that have both values count, so that no method is judged by one metric on some examples and by the
    other on others. The means may thus differ from those of all examples; what is missing is counted with its reason.
    """
    across, up = _by_method(evaluation, x, of), _by_method(evaluation, y, of)
    order = [(model, method) for model in evaluation.plan.models for method in evaluation.plan.methods_with_baselines]
    return [
        _pair(across.get(one, {}), up.get(one, {}), evaluation.plan.seed)
        for one in order
        if one in across and one in up
    ]


def _by_method(
    evaluation: Evaluation, metric: str, of: ScoreFilter
) -> Mapping[tuple[str, str], dict[int, MetricRow | MetricSkip]]:
    """The rows and skips of each model and method by example."""
    by: dict[tuple[str, str], dict[int, MetricRow | MetricSkip]] = {}
    either: tuple[MetricRow | MetricSkip, ...] = (*evaluation.skips, *evaluation.rows)
    for one in either:
        if one.of.metric == metric and of.has(one.of):
            by.setdefault((one.of.model, one.of.method), {})[one.example] = one
    return by


def _pair(
    across: Mapping[int, MetricRow | MetricSkip], up: Mapping[int, MetricRow | MetricSkip], seed: int
) -> ScorePair:
    why = {example: _missing_reason(across.get(example), up.get(example)) for example in {**across, **up}}
    return ScorePair(_mean(across, why, seed), _mean(up, why, seed))


def _missing_reason(*both: MetricRow | MetricSkip | None) -> str:
    """The reason why an example lacks one of both values; empty where it has both."""
    reasons = (NOT_MEASURED if one is None else one.reason for one in both if not isinstance(one, MetricRow))
    return next(reasons, "")


def _mean(one: Mapping[int, MetricRow | MetricSkip], why: Mapping[int, str], seed: int) -> MetricScore:
    of = next(iter(one.values())).of
    rows = [row for example, row in one.items() if isinstance(row, MetricRow) and not why[example]]
    skips = [MetricSkip(of, example, reason) for example, reason in why.items() if reason]
    return mean_scores(rows, skips, seed)[0]


@dataclass(frozen=True)
class MetricCorrelation:
    """Spearman's rho of two metrics over `methods`, positive where the better by one are the better by the other.

    `interval`: 95%, by resampling the `examples` on which every method has both values.
    """

    rho: float
    interval: Interval
    methods: int
    examples: int


def correlate_metrics(evaluation: Evaluation, x: str, y: str, of: ScoreFilter = EVERYTHING) -> MetricCorrelation | None:
    """How two metrics rank the methods of one model alike, by the means over the examples that all have in common.

    Metrics of which less is better are negated. None below three methods or two common examples.
    """
    tables = [_by_method(evaluation, metric, of) for metric in (x, y)]
    rows = [
        {key: {at: one.value for at, one in own.items() if isinstance(one, MetricRow)} for key, own in table.items()}
        for table in tables
    ]
    keys = [key for key in rows[0] if rows[0][key] and rows[1].get(key)]
    common = sorted(set.intersection(*(set(table[key]) for table in rows for key in keys))) if keys else []
    if len(keys) < LEAST_METHODS or len(common) < LEAST_EXAMPLES:
        return None
    signs = [-1 if METRICS[metric].better == "low" else 1 for metric in (x, y)]
    values = np.array([[sign * table[key][at] for sign, table in zip(signs, rows, strict=True) for key in keys]
                       for at in common])  # fmt: skip
    [rho] = _rank_correlations(values.mean(0, keepdims=True))
    spread = _rank_correlations(resample(values, evaluation.plan.seed))
    if np.isnan(rho):
        return None
    low, high = np.nanquantile(spread, [0.025, 0.975])
    return MetricCorrelation(float(rho), (float(low), float(high)), len(keys), len(common))


def _rank_correlations(means: Float[np.ndarray, "draw cell"]) -> Float[np.ndarray, "draw"]:
    """Spearman's rho of the first half of each row with the second; NaN where all of a half are equal."""
    ranks = scipy.stats.rankdata(means.reshape(len(means), 2, -1), axis=-1)
    ranks -= ranks.mean(-1, keepdims=True)
    spread = np.sqrt((ranks**2).sum(-1)).prod(-1)
    return np.divide(ranks.prod(1).sum(-1), spread, out=np.full(len(means), np.nan), where=spread > 0)
