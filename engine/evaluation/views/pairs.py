"""Two metrics against each other over the same examples: plausibility or cost against another metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.evaluation.result import Evaluation
from engine.evaluation.views.points import ALL, Wanted
from engine.metrics.results import MetricRow, MetricScore, MetricSkip, mean_scores

COSTS = ("evaluations", "seconds")
NOT_MEASURED = "it was not measured"


@dataclass(frozen=True)
class Pair:
    """What a method comes to by two metrics over the same examples; both without a value where there are none."""

    x: MetricScore
    y: MetricScore


def pairs(found: Evaluation, x: str, y: str, of: Wanted = ALL) -> list[Pair]:
    """A pair for each model and method, in the order of the plan, each mean with its 95 % interval over examples.

    Only examples that have both values count, so that no method is judged by one metric on some examples and by the
    other on others. The means may thus differ from those of all examples; what is missing is counted with its reason.
    """
    across, up = _by_method(found, x, of), _by_method(found, y, of)
    order = [(model, method) for model in found.plan.models for method in found.plan.company]
    return [
        _pair(across.get(one, {}), up.get(one, {}), found.plan.seed) for one in order if one in across and one in up
    ]


def _by_method(
    found: Evaluation, metric: str, of: Wanted
) -> Mapping[tuple[str, str], dict[int, MetricRow | MetricSkip]]:
    """What there is of each model and method, by example."""
    by: dict[tuple[str, str], dict[int, MetricRow | MetricSkip]] = {}
    either: tuple[MetricRow | MetricSkip, ...] = (*found.skips, *found.rows)
    for one in either:
        if one.of.metric == metric and of.has(one):
            by.setdefault((one.of.model, one.of.method), {})[one.example] = one
    return by


def _pair(across: Mapping[int, MetricRow | MetricSkip], up: Mapping[int, MetricRow | MetricSkip], seed: int) -> Pair:
    why = {example: _why(across.get(example), up.get(example)) for example in {**across, **up}}
    return Pair(_score(across, why, seed), _score(up, why, seed))


def _why(*both: MetricRow | MetricSkip | None) -> str:
    """Why an example does not have both values; empty where it has."""
    reasons = (NOT_MEASURED if one is None else one.reason for one in both if not isinstance(one, MetricRow))
    return next(reasons, "")


def _score(one: Mapping[int, MetricRow | MetricSkip], why: Mapping[int, str], seed: int) -> MetricScore:
    of = next(iter(one.values())).of
    rows = [found for example, found in one.items() if isinstance(found, MetricRow) and not why[example]]
    skips = [MetricSkip(of, example, reason) for example, reason in why.items() if reason]
    return mean_scores(rows, skips, seed)[0]
