"""Scores of an evaluation, and the leaderboard of its methods.

Each score is a mean with its interval and the number of examples behind it. Scores that compare two metrics are paired.
The leaderboard marks the best methods by each metric, and those not significantly different from them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.errors import unknown
from engine.evaluation.result import Evaluation
from engine.experiments.options import RANDOM
from engine.lazy import scipy
from engine.metrics.catalog import METRICS, metric
from engine.metrics.results import (
    Interval,
    MetricKey,
    MetricRow,
    MetricScore,
    MetricSkip,
    mean_difference,
    mean_scores,
    resample,
)

COSTS = ("evaluations", "seconds")
NOT_MEASURED = "it was not measured"
LEAST_METHODS, LEAST_EXAMPLES = 3, 2
"""Smallest numbers of methods and examples for a correlation over methods."""


@dataclass(frozen=True)
class ScoreFilter:
    """A selection of models and methods by name; None selects all."""

    models: Collection[str] | None = None
    methods: Collection[str] | None = None

    def has(self, key: MetricKey) -> bool:
        """Whether the key is in the selection."""
        return (self.models is None or key.model in self.models) and (
            self.methods is None or key.method in self.methods
        )


EVERYTHING = ScoreFilter()


def scalar_metrics(evaluation: Evaluation) -> list[str]:
    """The metrics with one value per method and example, in the order of the plan.

    Agreement is not among them, because it compares pairs of methods.
    """
    return [id for id in evaluation.plan.metrics if not METRICS[id].by_percent and METRICS[id].needs != "others"]


def curve_metrics(evaluation: Evaluation) -> list[str]:
    """The metrics with one curve per method and example."""
    return [id for id in evaluation.plan.metrics if METRICS[id].by_percent]


def predicts_scores(evaluation: Evaluation) -> bool:
    """Whether the models predict a score instead of a class, so their outputs are not probabilities."""
    labels = {one.label for one in evaluation.facts if one.label is not None}
    return bool(labels) and all(one.right is None for one in evaluation.facts) and all(map(_is_number, labels))


def compute_scores(evaluation: Evaluation, metric: str, of: ScoreFilter = EVERYTHING) -> list[MetricScore]:
    """A score for each model and method with its 95% interval over examples; for a curve, one for each share of units.

    The scores are in the order of the plan. Only the requested metric is resampled, so one chart costs little. A method
    without any value has a score too: its value is None, with the reasons. Errors: an unknown metric.
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
    """Restrict the evaluation to one metric and these models and methods, so that slicing it costs little."""
    models = tuple(one for one in evaluation.models if of.models is None or one.model in of.models)
    return dataclasses.replace(evaluation, models=models).narrow(lambda key: key.metric == metric and of.has(key))


def _at_each(skips: Iterable[MetricSkip], percents: Collection[int]) -> Iterator[MetricSkip]:
    """Repeat each skip at every percentage, since an example without a curve lacks all of its points."""
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
    """The scores of a method by two metrics over the same examples. Without such examples, neither has a value."""

    x: MetricScore
    y: MetricScore


def pair_scores(evaluation: Evaluation, x: str, y: str, of: ScoreFilter = EVERYTHING) -> list[ScorePair]:
    """A pair for each model and method, in the order of the plan; each mean has a 95% interval over examples.

    Only examples with both values count, so that both metrics cover the same examples. The means may therefore differ
    from those of all examples. Missing examples are counted by reason.
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
    """Rows and skips by model and method, then by example."""
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
    """The reason why an example lacks one of the two values; empty if it has both."""
    reasons = (NOT_MEASURED if one is None else one.reason for one in both if not isinstance(one, MetricRow))
    return next(reasons, "")


def _mean(one: Mapping[int, MetricRow | MetricSkip], why: Mapping[int, str], seed: int) -> MetricScore:
    of = next(iter(one.values())).of
    rows = [row for example, row in one.items() if isinstance(row, MetricRow) and not why[example]]
    skips = [MetricSkip(of, example, reason) for example, reason in why.items() if reason]
    return mean_scores(rows, skips, seed)[0]


@dataclass(frozen=True)
class MetricCorrelation:
    """Spearman's rho of two metrics over `methods`, positive if methods that are better by one are better by the other.

    `interval`: 95%, by resampling the `examples` on which every method has both values.
    """

    rho: float
    interval: Interval
    methods: int
    examples: int


def correlate_metrics(evaluation: Evaluation, x: str, y: str, of: ScoreFilter = EVERYTHING) -> MetricCorrelation | None:
    """Correlate two metrics over the methods of one model, by their means over the examples that all methods share.

    Metrics for which lower is better are negated. None below three methods or two shared examples.
    """
    return correlate_means((evaluation, x), (evaluation, y), of)


def correlate_means(
    x: tuple[Evaluation, str], y: tuple[Evaluation, str], of: ScoreFilter = EVERYTHING
) -> MetricCorrelation | None:
    """As `correlate_metrics`, but each metric has its own evaluation, of the same models and examples."""
    rows = [
        {key: {at: one.value for at, one in own.items() if isinstance(one, MetricRow)} for key, own in table.items()}
        for table in (_by_method(evaluation, metric, of) for evaluation, metric in (x, y))
    ]
    keys = [key for key in rows[0] if rows[0][key] and rows[1].get(key)]
    common = sorted(set.intersection(*(set(table[key]) for table in rows for key in keys))) if keys else []
    if len(keys) < LEAST_METHODS or len(common) < LEAST_EXAMPLES:
        return None
    signs = [-1 if METRICS[metric].better == "low" else 1 for _, metric in (x, y)]
    values = np.array([[sign * table[key][at] for sign, table in zip(signs, rows, strict=True) for key in keys]
                       for at in common])  # fmt: skip
    [rho] = _rank_correlations(values.mean(0, keepdims=True))
    spread = _rank_correlations(resample(values, x[0].plan.seed))
    if np.isnan(rho):
        return None
    low, high = np.nanquantile(spread, [0.025, 0.975])
    return MetricCorrelation(float(rho), (float(low), float(high)), len(keys), len(common))


def _rank_correlations(means: Float[np.ndarray, "draw cell"]) -> Float[np.ndarray, "draw"]:
    """Spearman's rho between the two halves of each row; NaN if all values of a half are equal."""
    ranks = scipy.stats.rankdata(means.reshape(len(means), 2, -1), axis=-1)
    ranks -= ranks.mean(-1, keepdims=True)
    spread = np.sqrt((ranks**2).sum(-1)).prod(-1)
    return np.divide(ranks.prod(1).sum(-1), spread, out=np.full(len(means), np.nan), where=spread > 0)


ROUNDING = 1e-12
"""Mean differences below it count as ties."""


@dataclass(frozen=True)
class Standing:
    """The place of a score on the leaderboard.

    `best`: whether it is the best by its metric on its model, alone or tied. `level`: whether it is not the best but
    not significantly worse than any of the best either.
    """

    score: MetricScore
    best: bool = False
    level: bool = False


Group = tuple[str, str, int | None]
"""Model, metric and percentage. Methods are compared within such a group."""


def leaderboard(evaluation: Evaluation) -> list[Standing]:
    """A standing for each score, grouped by model and metric, best first.

    Two methods are compared on the examples that both have, since other examples may be easier or harder. The best
    methods are those that lose to the fewest others in these comparisons (to none if all methods have all examples);
    ties share the place. A method that shares examples with fewer than half of the others cannot be the best, because
    too little was compared. A method is worse than the best if the 95% interval of their paired difference lies
    entirely on the worse side of 0. The intervals are not corrected for multiple comparisons. Metrics measured once per
    batch have neither an interval nor a best method.
    """
    rows: dict[Group, list[MetricRow]] = {}
    for row in evaluation.rows:
        rows.setdefault((row.of.model, row.of.metric, row.of.percent), []).append(row)
    groups: dict[Group, list[MetricScore]] = {}
    for score in evaluation.scores:
        groups.setdefault((score.model, score.metric, score.percent), []).append(score)
    return [one for group, own in groups.items() for one in _standings(own, rows.get(group, []), evaluation.plan.seed)]


def _standings(scores: Sequence[MetricScore], rows: Sequence[MetricRow], seed: int) -> list[Standing]:
    if scores[0].better == "neither":
        return [Standing(score) for score in scores]
    ordered = sorted(scores, key=badness)
    if ordered[0].value is None or metric(ordered[0].metric).by_batch:
        return [Standing(score) for score in ordered]
    best = _best([one for one in ordered if one.value is not None], rows)
    if not best:
        return [Standing(score) for score in ordered]
    others = [one for one in ordered if one not in best]
    return [
        *(Standing(one, best=True) for one in best),
        *(Standing(one, level=_is_level(one, best, rows, seed)) for one in others),
    ]


def _best(scores: Sequence[MetricScore], rows: Sequence[MetricRow]) -> list[MetricScore]:
    """The methods that lose to the fewest others, by the mean difference over the examples that both have.

    Empty if no method shares examples with half of the others.
    """
    values = _by_example(scores, rows)
    gaps = values[:, None] - values[None]
    shared = np.isfinite(gaps)
    ahead = np.where(shared, gaps, 0).sum(-1) / np.maximum(shared.sum(-1), 1)
    losses = ((ahead if scores[0].better == "low" else -ahead) > ROUNDING).sum(-1)
    compared = 2 * (shared.any(-1).sum(-1) - 1) >= len(scores) - 1
    fewest = losses[compared].min(initial=len(scores))
    return [one for one, lost, enough in zip(scores, losses, compared, strict=True) if enough and lost == fewest]


def _by_example(scores: Sequence[MetricScore], rows: Sequence[MetricRow]) -> Float[np.ndarray, "method example"]:
    """The value of each method on each example; NaN if it has none."""
    methods = {_key(one): place for place, one in enumerate(scores)}
    examples = {example: place for place, example in enumerate(dict.fromkeys(row.example for row in rows))}
    values = np.full((len(methods), len(examples)), np.nan)
    for row in rows:
        if row.of in methods:
            values[methods[row.of], examples[row.example]] = row.value
    return values


def badness(score: MetricScore) -> tuple[bool, float]:
    """Sort key of scores by one metric, best first; scores without a value come last."""
    value = score.value or 0.0
    return score.value is None, -value if score.better == "high" else value


def _is_level(score: MetricScore, best: Sequence[MetricScore], rows: Sequence[MetricRow], seed: int) -> bool:
    """Whether the score is not significantly worse than any of the best.

    A comparison over fewer than two shared examples has no interval and never counts as worse.
    """
    if score.value is None:
        return False
    gaps = (mean_difference(rows, _key(score), _key(one), seed).interval for one in best)
    return all(gap[1] >= 0 if score.better == "high" else gap[0] <= 0 for gap in gaps if gap is not None)


def compare_with_random(evaluation: Evaluation, model: str, metric_id: str) -> dict[str, bool]:
    """Whether each method is significantly better than Random, by the 95% interval of their paired difference.

    Methods that share fewer than two examples with Random are left out, as are metrics without a better direction and
    those measured once per batch.
    """
    better = metric(metric_id).better
    rows = [row for row in evaluation.rows if (row.of.model, row.of.metric) == (model, metric_id)]
    if better == "neither" or metric(metric_id).by_batch:
        return {}
    keys = {row.of.method: row.of for row in rows}
    if RANDOM not in keys:
        return {}
    sign, seed = 1 if better == "high" else -1, evaluation.plan.seed
    compared = {
        method: mean_difference(rows, key, keys[RANDOM], seed).interval
        for method, key in keys.items()
        if method != RANDOM
    }
    return {method: min(sign * end for end in gap) > 0 for method, gap in compared.items() if gap is not None}


def _key(score: MetricScore) -> MetricKey:
    return MetricKey(score.model, score.dataset, score.method, score.metric, score.against, score.percent)


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """The output of `exegesis evaluate --json`; per-example rows go to `--out`.

    The plan with baselines and metrics filled in, and a score for each model, metric and method. `second_scores`: those
    with the second operator. `operators`: whether the best method depends on the operator. Both are empty if it is off.
    `notes`: warnings about the scores.
    """
    second = evaluation.second
    return {
        "plan": {**evaluation.plan.as_plain(), "company": list(evaluation.plan.methods_with_baselines)},
        "scores": [_standing_json(standing, evaluation) for standing in leaderboard(evaluation)],
        "second_scores": [] if second is None else [_standing_json(one, second) for one in leaderboard(second)],
        "operators": [one.as_plain() for one in evaluation.operator_comparisons],
        "classes": list(evaluation.class_notes),
        "notes": list(evaluation.notes),
        "removal_rows": {"asked": evaluation.requested_rows, "run": evaluation.evaluated_rows},
    }


def _standing_json(standing: Standing, evaluation: Evaluation) -> dict[str, Any]:
    """Plain values of a standing. `low`, `high`: ends of the 95% interval. `doubt`: why it is missing or uninformative.

    `level`: not significantly worse than the best. `removal`: the operator by which units were removed, if any.
    """
    score = standing.score
    low, high = score.interval or (None, None)
    return {
        "model": score.model,
        "dataset": score.dataset,
        "metric": score.metric,
        "percent": score.percent,
        "method": score.method,
        "against": score.against or None,
        "removal": evaluation.models[0].removal if METRICS[score.metric].needs == "removal" else None,
        "value": score.value,
        "low": low,
        "high": high,
        "doubt": score.doubt or None,
        "n": score.n,
        "skipped": dict(score.skipped),
        "better": score.better,
        "best": standing.best,
        "level": standing.level,
    }
