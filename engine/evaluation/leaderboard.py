"""The leaderboard: the best methods by each metric, those not significantly different from them, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.evaluation.result import Evaluation
from engine.experiments.options import RANDOM
from engine.metrics.catalog import metric
from engine.metrics.results import MetricKey, MetricRow, MetricScore, mean_difference

ROUNDING = 1e-12
"""Means of differences below it are taken for ties."""


@dataclass(frozen=True)
class Standing:
    """`best`: of the methods on its model by its metric, alone or tied. `level`: not shown to be worse than any of the
    best."""

    score: MetricScore
    best: bool = False
    level: bool = False


Group = tuple[str, str, int | None]
"""Model, metric and percent: what methods are compared within."""


def leaderboard(evaluation: Evaluation) -> list[Standing]:
    """A standing for each score, model by model and metric by metric, the best first.

    Two methods are compared on the examples that both have, for the others may be easier or harder. The best lose to
    the fewest others by that, so to none where all methods have all examples; methods that tie are the best together.
    Who shares examples with fewer than half of the others is not among them: too little was compared.
    A method is worse than the best where the 95% interval of their difference, by pairs of examples, lies wholly on
    the worse side of 0. The intervals are not widened for the number of methods. What is measured once a batch has no
    interval, and no best.
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
    """The methods that lose to the fewest others, by the mean difference on the examples that both have.

    None where nobody shares examples with half of the others.
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
    """NaN where a method has no value."""
    methods = {_key(one): place for place, one in enumerate(scores)}
    examples = {example: place for place, example in enumerate(dict.fromkeys(row.example for row in rows))}
    values = np.full((len(methods), len(examples)), np.nan)
    for row in rows:
        if row.of in methods:
            values[methods[row.of], examples[row.example]] = row.value
    return values


def badness(score: MetricScore) -> tuple[bool, float]:
    """The sort key of scores by one metric, the best first; scores without a value last."""
    value = score.value or 0.0
    return score.value is None, -value if score.better == "high" else value


def _is_level(score: MetricScore, best: Sequence[MetricScore], rows: Sequence[MetricRow], seed: int) -> bool:
    """Whether no difference from one of the best is significant; undefined, and so level, below two shared examples."""
    if score.value is None:
        return False
    gaps = (mean_difference(rows, _key(score), _key(one), seed).interval for one in best)
    return all(gap[1] >= 0 if score.better == "high" else gap[0] <= 0 for gap in gaps if gap is not None)


def compare_with_random(evaluation: Evaluation, model: str, metric_id: str) -> dict[str, bool]:
    """Whether each method is significantly better than Random, by the 95% interval of their paired difference.

    Methods that share fewer than two examples with Random are left out, as are metrics without a better direction and
    those measured once per batch.
    """
    better, rows = metric(metric_id).better, [row for row in evaluation.rows if _is_of(row.of, model, metric_id)]
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


def _is_of(key: MetricKey, model: str, metric_id: str) -> bool:
    return key.model == model and key.metric == metric_id


def _key(score: MetricScore) -> MetricKey:
    return MetricKey(score.model, score.dataset, score.method, score.metric, score.against, score.percent)


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """The contract of `exegesis evaluate --json`: the plan, with company and metrics filled in, and a score for each
    model, metric and method. Rows of examples go to `--out`.

    `notes`: sentences on what the numbers do not say of themselves.
    """
    return {
        "plan": {**evaluation.plan.as_plain(), "company": list(evaluation.plan.methods_with_baselines)},
        "scores": [_standing_json(standing) for standing in leaderboard(evaluation)],
        "classes": list(evaluation.class_notes),
        "notes": list(evaluation.notes),
        "removal_rows": {"asked": evaluation.requested_rows, "run": evaluation.evaluated_rows},
    }


def _standing_json(standing: Standing) -> dict[str, Any]:
    """`low`, `high`: ends of the 95% interval. `doubt`: why there is none, or one that tells nothing.

    `level`: not shown to be worse than the best.
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
