"""Comparison of removal operators: whether the best method depends on how units are removed.

LIME, SHAP and occlusion perturb inputs with a removal operator. Metrics that remove units with the same operator may
favor them. The maps stay the same; only the operator of the metrics changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.evaluation.result import Evaluation
from engine.evaluation.scores import (
    MetricCorrelation,
    ScoreFilter,
    Standing,
    correlate_means,
    scalar_metrics,
)
from engine.experiments.options import RANDOM
from engine.format import join_names, plural
from engine.metrics.catalog import METRICS, metric
from engine.metrics.results import MeanDifference, MetricKey, mean_difference
from engine.params import as_plain, from_mapping
from engine.registry import explainer
from engine.removal_operators import REMOVED_AS

DEPENDS = "The best method depends on the operator."
SAME = "The best method does not depend on the operator, as far as these examples can tell."


@dataclass(frozen=True)
class OperatorComparison:
    """The methods of one model ranked by a metric under two removal operators.

    `leaders`: the best methods under each operator, as on the leaderboard; several if they tie. `gaps`: for each
    operator, how much better the first operator's leader is than the second's, in the metric's unit, positive if it is
    better, paired over the same examples; None if a method leads under both. `agreement`: Spearman's rho of the
    methods' means under both operators, without Random; None below three methods. `behind`: methods that use the first
    operator themselves, and that are best or level under it but significantly worse than the best under the second.
    """

    model: str
    metric: str
    operators: tuple[str, str]
    leaders: tuple[tuple[str, ...], tuple[str, ...]]
    gaps: tuple[MeanDifference, MeanDifference] | None
    agreement: MetricCorrelation | None
    behind: tuple[str, ...]

    @property
    def depends(self) -> bool:
        """Whether the leaders swap: each is significantly better than the other under its own operator.

        That is, the 95% intervals of both paired differences exclude 0, on opposite sides. A swap within either
        interval can be due to the choice of examples.
        """
        if self.gaps is None or any(gap.interval is None for gap in self.gaps):
            return False
        (low, _), (_, high) = (gap.interval or (0.0, 0.0) for gap in self.gaps)
        return low > 0 > high

    def as_plain(self) -> dict[str, Any]:
        """Return plain values for `exegesis evaluate --json`. `low`, `high`: ends of the 95% interval."""
        rho = self.agreement
        gaps = None if self.gaps is None else [_gap_json(one) for one in self.gaps]
        return {
            "model": self.model,
            "metric": self.metric,
            "operators": list(self.operators),
            "leaders": [list(one) for one in self.leaders],
            "gaps": gaps,
            "depends": self.depends,
            "rho": None if rho is None else rho.rho,
            "low": None if rho is None else rho.interval[0],
            "high": None if rho is None else rho.interval[1],
            "behind": list(self.behind),
        }


def _gap_json(gap: MeanDifference) -> dict[str, float | int | None]:
    low, high = gap.interval or (None, None)
    return {"value": gap.value, "low": low, "high": high, "n": gap.n}


def compare_operators(evaluation: Evaluation) -> list[OperatorComparison]:
    """Compare the operators for each model and each metric that removes units and has one value per example.

    Empty without second scores. A metric is left out for a model if no method leads under one of the operators, because
    methods have no values or share too few examples.
    """
    second = evaluation.second
    if second is None:
        return []
    pairs = ((model, id) for model in evaluation.plan.models for id in scalar_metrics(second))
    compared = (_compare(evaluation, second, model, id) for model, id in pairs)
    return [one for one in compared if one is not None]


def _compare(evaluation: Evaluation, second: Evaluation, model: str, metric_id: str) -> OperatorComparison | None:
    both = evaluation, second
    standings = [
        {one.score.method: one for one in each.standings if (one.score.model, one.score.metric) == (model, metric_id)}
        for each in both
    ]
    first_leaders, second_leaders = (
        tuple(method for method, one in each.items() if one.best and one.score.n > 1) for each in standings
    )
    if not first_leaders or not second_leaders:
        return None
    operators = evaluation.plan.operator, second.plan.operator
    methods = [method for method in standings[0] if method != RANDOM]
    return OperatorComparison(
        model,
        metric_id,
        operators,
        (first_leaders, second_leaders),
        None
        if set(first_leaders) & set(second_leaders)
        else _gaps(both, model, metric_id, first_leaders, second_leaders),
        correlate_means((evaluation, metric_id), (second, metric_id), ScoreFilter([model], methods)),
        tuple(
            one for one in methods if _falls_behind(one, *standings) and operator_of(evaluation, one) == operators[0]
        ),
    )


def _gaps(
    both: tuple[Evaluation, Evaluation], model: str, metric_id: str, first: Sequence[str], second: Sequence[str]
) -> tuple[MeanDifference, MeanDifference]:
    """The advantage of the first operator's leader over the second's, under each operator.

    If leaders tie, the first one counts.
    """
    flip = metric(metric_id).better == "low"
    one, other = (second[0], first[0]) if flip else (first[0], second[0])
    keys = [MetricKey(model, both[0].plan.dataset, method, metric_id) for method in (one, other)]
    by_first, by_second = (mean_difference(each.rows, keys[0], keys[1], each.plan.seed) for each in both)
    return by_first, by_second


def _falls_behind(method: str, first: Mapping[str, Standing], second: Mapping[str, Standing]) -> bool:
    """Whether the method is best or level under the first operator, but significantly behind the best by the second."""
    one, other = first[method], second.get(method)
    worse = other is not None and other.score.value is not None and not (other.best or other.level)
    return worse and (one.best or one.level)


def operator_of(evaluation: Evaluation, method: str) -> str | None:
    """The operator with which a method removes units to compute its map; None if it removes none."""
    plan = evaluation.plan
    params = from_mapping(explainer(method, plan.kind).params, plan.params_of(method), method)
    removal = as_plain(params).get("removal")
    return None if removal is None else str(removal)


def comparison_head(first: OperatorComparison, unit: str) -> str:
    """The start of a line about the comparison: "Words deleted instead of masked". `unit`: the unit that is removed."""
    one, other = (REMOVED_AS[operator] for operator in first.operators)
    return f"{plural(unit).capitalize()} {other} instead of {one}"


def comparison_texts(comparisons: Sequence[OperatorComparison], titles: Mapping[str, str]) -> list[str]:
    """Describe the comparisons of one model: whether the best method depends on the operator, then one line per metric.

    `titles`: titles of the methods; a method without one is named by its id.
    """
    verdict = DEPENDS if any(one.depends for one in comparisons) else SAME
    return [verdict, *(_metric_text(one, titles) for one in comparisons)]


def _metric_text(one: OperatorComparison, titles: Mapping[str, str]) -> str:
    first, second = one.operators
    named = [join_names([titles.get(method, method) for method in leaders]) for leaders in one.leaders]
    common = [titles.get(method, method) for method in one.leaders[0] if method in one.leaders[1]]
    if common:
        lead = f"{join_names(common)} {'leads' if len(common) == 1 else 'lead'} with both"
    elif one.depends:
        lead = f"{named[0]} is significantly better with {first}, {named[1]} with {second}"
    else:
        lead = f"{named[0]} leads with {first} and {named[1]} with {second}, but the swap is not significant"
    text = f"{METRICS[one.metric].title}: {lead}{_agreement_text(one.agreement)}."
    if not one.behind:
        return text
    behind, single = join_names([titles.get(method, method) for method in one.behind]), len(one.behind) == 1
    return (
        f"{text} {behind}, which {'uses' if single else 'use'} {first} {'itself' if single else 'themselves'}, "
        f"{'falls' if single else 'fall'} significantly behind the best with {second}."
    )


def _agreement_text(agreement: MetricCorrelation | None) -> str:
    if agreement is None:
        return ""
    rho, low, high = (
        f"{round(value, 2) + 0.0:.2f}".replace("-", "−") for value in (agreement.rho, *agreement.interval)
    )
    return f" (Spearman's ρ {rho}, 95% interval {low} to {high})"
