"""The metrics of explained examples: from their maps and marks alone, and those that run the model again."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from engine.errors import ExegesisError
from engine.evaluation.explanations import ExplainedExample, UnitScores, requests_for
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import CONSTANT_MAPS
from engine.experiments.sample import bisect_failures, error_line
from engine.metrics.agreement import agreement
from engine.metrics.catalog import METRICS, SIDES, Metric, Needs
from engine.metrics.faithfulness import Faithfulness, RowCounts, faithfulness
from engine.metrics.plausibility import (
    Marks,
    average_precision,
    recall_at_k,
    roc_auc,
    skip_reason,
    token_f1,
    truth_mass,
    truth_scores,
)
from engine.metrics.ranking import is_constant
from engine.metrics.results import MetricKey, MetricRow, MetricSkip
from engine.metrics.sensitivity import FLAT, Sensitivity, complexity, sensitivities
from engine.params import PROBABILITY
from engine.request import Request

NO_ORDER = "one of the two maps has no order: its scores are all equal"
TRUTH = {"gt_overlap": "exact", "gt_share": "overlap", "mean_rank": "mean_rank", "mean_rank_pct": "mean_rank_pct"}
"""The metrics by truth, and what they are called in `engine.metrics.plausibility`."""
ORDERED: tuple[Needs, ...] = ("removal", "marks", "pair")
"""What metrics need that look at the order of the units,"""
UNORDERED = ("truth_mass",)
"""and those of them that do not."""
AGREEMENT = {"rank_spearman": "spearman", "rank_top_k": "top_k"}


@dataclass
class Measurements:
    """The values of one model on one data set, and the reasons where there are none."""

    model: str
    dataset: str
    rows: list[MetricRow] = field(default_factory=list)
    skips: list[MetricSkip] = field(default_factory=list)

    def add(
        self, example: int, method: str, metric: str, value: float | str, against: str = "", percent: int | None = None
    ) -> None:
        """A value, or in its place the reason why there is none."""
        key = _key(self.model, self.dataset, method, metric, against, percent)
        if isinstance(value, str):
            self.skips.append(MetricSkip(key, example, value))
        else:
            self.rows.append(MetricRow(key, example, float(value)))

    def withdraw(self, method: str, metrics: Collection[str], reason: str) -> None:
        """Replace the method's values by these metrics by the reason why there are none."""
        withdrawn = [row for row in self.rows if row.of.method == method and row.of.metric in metrics]
        self.rows = [row for row in self.rows if row.of.method != method or row.of.metric not in metrics]
        for metric, example in dict.fromkeys((row.of.metric, row.example) for row in withdrawn):
            self.add(example, method, metric, reason)


@lru_cache(maxsize=4096)
def _key(model: str, dataset: str, method: str, metric: str, against: str, percent: int | None) -> MetricKey:
    """A shared key object for the rows of all examples: there may be hundreds of thousands."""
    return MetricKey(model, dataset, method, metric, against, percent)


def measure_maps(plan: EvaluationPlan, examples: Sequence[UnitScores], measurements: Measurements) -> None:
    """The metrics that need nothing but maps and marks, of all examples of one model at once: F1 takes as many units
    as are usually marked.
    """
    shares = {side: _usual_share(examples, side) for side in ("", *SIDES)}
    for one in examples:
        for id in (*plan.needs("nothing"), *plan.needs("marks"), *plan.needs("pair")):
            for method in plan.methods_with_baselines:
                measurements.add(one.index, method, id, _value(plan, one, method, METRICS[id], shares))
        for id in plan.needs("others"):
            for (a, b), value in _agreements(one, AGREEMENT[id], plan.methods_with_baselines):
                measurements.add(one.index, a, id, value, against=b)


def withdraw_constant_maps(plan: EvaluationPlan, examples: Sequence[UnitScores], measurements: Measurements) -> None:
    """Take back what was measured of an order where a method gives none on any example, as `gradient` where LayerNorm
    follows the embeddings: it would be that of chance, which may be the best by luck.

    A single map without an order is judged by a random one, as its method told its reader nothing there.
    """
    ordered = [id for what in ORDERED for id in plan.needs(what) if id not in UNORDERED]
    for method in plan.methods_with_baselines:
        maps = [one.scores[method] for one in examples if len(one.scores.get(method, ())) > 1]
        if maps and all(map(is_constant, maps)):
            measurements.withdraw(method, ordered, CONSTANT_MAPS)


def _value(
    plan: EvaluationPlan, one: UnitScores, method: str, metric: Metric, shares: Mapping[str, float]
) -> float | str:  # fmt: skip
    """The metric's value, or why it has none."""
    if method in one.failed:
        return one.failed[method]
    if metric.needs == "nothing":
        evaluations, seconds = one.cost[method]
        if metric.id != "complexity":
            return {"evaluations": float(evaluations), "seconds": seconds}[metric.id]
        value = complexity(one.scores[method])
        return FLAT if value is None else value
    chosen = marks_of_side(one, metric.side)
    if isinstance(chosen, str):
        return chosen
    marks, inside = chosen
    scores = one.scores[method][inside]
    if metric.id == "truth_mass":
        mass = truth_mass(scores, marks)
        return FLAT if mass is None else mass
    if metric.id in TRUTH:
        truth: Any = truth_scores(scores, marks, one.ties)
        return float(getattr(truth, TRUTH[metric.id]))
    id = metric.id.removesuffix(f"_{metric.side}")
    if id == "plausibility_auc":
        return roc_auc(scores, marks)
    if id == "plausibility_ap":
        return average_precision(scores, marks)
    if id == "token_f1":
        return token_f1(scores, marks, shares[metric.side], one.ties)
    return recall_at_k(scores, marks, plan.k, one.ties)


def marks_of_side(one: UnitScores, side: str = "") -> tuple[Marks, np.ndarray] | str:
    """The marks of both texts or of one, and which units those are; or why nothing can be judged by them.

    An example in which nothing is marked at all is no example of a mistake, in neither text; that is said as such.
    """
    if isinstance(one.marks, str):
        return one.marks
    inside = np.ones(len(one.marks), dtype=bool) if not side else one.segments == SIDES[side]
    marks = one.marks[inside]
    why = skip_reason(marks)
    return (marks, inside) if why is None else why if not side or not one.marks.any() else f"{why} in the {side} text"


def _usual_share(examples: Sequence[UnitScores], side: str) -> float:
    """The mean over examples of the share of units that are marked, of those that can be judged."""
    shares = [chosen[0].mean() for one in examples if not isinstance(chosen := marks_of_side(one, side), str)]
    return float(np.mean(shares)) if shares else 1.0


def _agreements(
    one: UnitScores, measure: str, methods: Sequence[str]
) -> Iterator[tuple[tuple[str, str], float | str]]:  # fmt: skip
    maps = {method: one.scores[method] for method in methods if method in one.scores}
    matrix = agreement(maps, measure) if maps else None
    for a, b in itertools.combinations(methods, 2):
        failed = one.failed.get(a) or one.failed.get(b)
        if failed or matrix is None:
            yield (a, b), failed or NO_ORDER
            continue
        value = float(matrix.values[matrix.methods.index(a), matrix.methods.index(b)])
        yield (a, b), NO_ORDER if np.isnan(value) else value


def compute_removal(
    plan: EvaluationPlan, model: str, examples: Sequence[ExplainedExample], counts: RowCounts | None = None
) -> list[dict[str, Faithfulness]]:
    """All removal curves of these examples by method, planned together so that what they share is run once."""
    requests = [request for one in examples for request in requests_for(plan, model, one).values()]
    curves = iter(faithfulness(requests, plan.percents, plan.removal, plan.unit, tally=counts, logits=plan.logits))
    return [{method: next(curves) for method in one.explanations} for one in examples]


def measure_removal(
    plan: EvaluationPlan, measurements: Measurements, examples: Sequence[ExplainedExample], counts: RowCounts
) -> None:
    """Comprehensiveness, sufficiency and the curves of each example, as far as they are asked for."""
    ids = plan.needs("removal")
    if not ids:
        return
    answers = bisect_failures(lambda group: compute_removal(plan, measurements.model, group, counts), list(examples))
    for one, curves in zip(examples, answers, strict=True):
        for id in ids:
            for method in plan.methods_with_baselines:
                if isinstance(curves, ExegesisError) or method in one.failed:
                    why = one.failed.get(method) or error_line(curves)  # type: ignore[arg-type]
                    measurements.add(one.index, method, id, why)
                else:
                    _add_curves(plan, measurements, one.index, method, id, curves[method])


def _add_curves(
    plan: EvaluationPlan, measurements: Measurements, example: int, method: str, id: str, removal: Faithfulness
) -> None:
    if not METRICS[id].by_percent:
        name, _, of_logit = id.partition("_")
        fall = removal.comprehensiveness if name == "comprehensiveness" else removal.sufficiency
        measurements.add(example, method, id, fall(plan.shares, of_logit or PROBABILITY))
    else:
        curve = removal.deletion if id == "without_top" else removal.insertion
        for percent in curve.percents:
            measurements.add(example, method, id, curve.at(percent), percent=percent)


def measure_sensitivity(
    plan: EvaluationPlan, measurements: Measurements, examples: Sequence[ExplainedExample]
) -> None:  # fmt: skip
    """The sensitivity of each example to each method, where it is asked for."""
    if not plan.needs("perturbation"):
        return

    def work(requests: list[Request]) -> list[Sensitivity]:
        return sensitivities(requests, samples=plan.samples)

    requests = [requests_for(plan, measurements.model, one) for one in examples]
    for method in plan.methods_with_baselines:
        own = {one.index: each[method] for one, each in zip(examples, requests, strict=True) if method in each}
        answers = dict(zip(own, bisect_failures(work, list(own.values())), strict=True))
        for one in examples:
            value = one.failed.get(method) or _sensitivity(answers[one.index])
            measurements.add(one.index, method, "sensitivity", value)


def _sensitivity(answer: Sensitivity | ExegesisError) -> float | str:
    if isinstance(answer, ExegesisError):
        return error_line(answer)
    return answer.reason if answer.value is None else answer.value
