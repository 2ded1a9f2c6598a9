"""Explain examples with all methods, and measure the explanations.

Some metrics need only the maps and marks; others run the model again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from cache import canonical, key_for
from engine.data.examples import LabeledExample
from engine.data.sources import SourceExample
from engine.errors import ExegesisError, excerpt, one_line
from engine.evaluation.plan import READ, EvaluationPlan
from engine.evaluation.result import CONSTANT_MAPS, ExampleFacts
from engine.experiments.options import RANDOM
from engine.experiments.sample import UnreadableExample, bisect_failures
from engine.explain import explain_many
from engine.metrics.agreement import agreement
from engine.metrics.catalog import METRICS, SIDES, Metric, Needs
from engine.metrics.faithfulness import Faithfulness, RowCounts, faithfulness, ranked_units
from engine.metrics.plausibility import (
    CUT_OFF,
    NOTHING,
    UNMARKED_TRUTH,
    UNREAD,
    Marks,
    average_precision,
    is_cut_off,
    marks_of_picture,
    marks_of_text,
    recall_at_k,
    roc_auc,
    segments,
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
from engine.result import Explanation


@dataclass(frozen=True)
class ExplainedExample:
    """One example with the explanations that succeeded, by method. `example`: None if it cannot be read.

    `failed`: why the other methods have none, by method.
    """

    index: int
    example: SourceExample | None
    explanations: Mapping[str, Explanation]
    failed: Mapping[str, str]

    @property
    def first(self) -> Explanation | None:
        """The first explanation, or None. All explanations share its tokens and prediction."""
        return next(iter(self.explanations.values()), None)


@dataclass(frozen=True)
class UnitScores:
    """The scores of one example by method, one per unit.

    `failed`: why a method has none. `cost`: evaluations and seconds by method. `marks`: whether each unit is marked, or
    why that is unknown. `segments`: the index of the text that each unit is in. `ties`: a seed of this example, which
    breaks ties of equal scores.
    """

    index: int
    scores: Mapping[str, Float[np.ndarray, "unit"]]
    failed: Mapping[str, str]
    cost: Mapping[str, tuple[int, float]]
    marks: Marks | str
    segments: Int[np.ndarray, "unit"]
    ties: tuple[int, ...]


def explain_examples(
    plan: EvaluationPlan, model: str, examples: Sequence[SourceExample | UnreadableExample]
) -> list[ExplainedExample]:
    """Explain every example with every method. Failures are recorded with their reason, and the rest continues.

    The random order needs only the prediction; if that fails, no other method is tried.
    """
    methods = plan.methods_with_baselines
    readable = [one for one in examples if isinstance(one, SourceExample)]
    probes = _explain(plan, model, RANDOM, readable)
    predicted = [one for one in readable if isinstance(probes[one.index], Explanation)]
    answers = {method: _explain(plan, model, method, predicted) for method in methods if method != RANDOM}
    explained = []
    for one in examples:
        if isinstance(one, UnreadableExample):
            explained.append(ExplainedExample(one.index, None, {}, dict.fromkeys(methods, one.why)))
            continue
        probe = probes[one.index]
        own = {method: answers.get(method, probes).get(one.index, probe) for method in methods}
        good = {method: answer for method, answer in own.items() if isinstance(answer, Explanation)}
        failed = {method: one_line(answer) for method, answer in own.items() if isinstance(answer, ExegesisError)}
        explained.append(ExplainedExample(one.index, one, good, failed))
    return explained


def _explain(
    plan: EvaluationPlan, model: str, method: str, examples: Sequence[SourceExample]
) -> dict[int, Explanation | ExegesisError]:
    """Explanations or errors, by index of the example."""
    answers = bisect_failures(explain_many, [request_for(plan, model, method, one) for one in examples])
    return {one.index: answer for one, answer in zip(examples, answers, strict=True)}


def request_for(plan: EvaluationPlan, model: str, method: str, example: SourceExample) -> Request:
    """The request for one explanation of the predicted class."""
    return Request(model, method, example.input, plan.params_of(method), seed=plan.seed, dtype=plan.dtype)


def requests_for(plan: EvaluationPlan, model: str, one: ExplainedExample) -> dict[str, Request]:
    """The requests of the methods that have an explanation, by method."""
    if one.example is None:
        return {}
    return {method: request_for(plan, model, method, one.example) for method in one.explanations}


def unit_scores_of(plan: EvaluationPlan, one: ExplainedExample) -> UnitScores:
    """The scores and marks of the units: the input of all metrics that do not run the model."""
    example, first = one.example, one.first
    if example is None or first is None:
        return UnitScores(one.index, {}, one.failed, {}, UNMARKED_TRUTH, np.zeros(0, dtype=int), ())
    scores = {method: ranked_units(own, example.input, plan.units)[0] for method, own in one.explanations.items()}
    cost = {method: (own.evaluations, own.seconds) for method, own in one.explanations.items()}
    ties = plan.seed, int(key_for(example.input.as_plain())[:16], 16)
    return UnitScores(one.index, scores, one.failed, cost, *_marks(plan, example, first), ties)


def _marks(
    plan: EvaluationPlan, one: SourceExample, explanation: Explanation
) -> tuple[Marks | str, Int[np.ndarray, "unit"]]:
    """The marks of the units, or why there are none, and the index of the text that each unit is in."""
    given = one.example
    if not isinstance(given, LabeledExample):
        marks = marks_of_picture(explanation.provenance.model, given)
        return (UNMARKED_TRUTH if marks is None else marks), np.zeros(len(explanation.features), dtype=int)
    places = np.array(segments(explanation, given, plan.units))
    if not given.rationale and not given.rationale_pair:
        return NOTHING, places
    cut_off, marks = is_cut_off(explanation, given), marks_of_text(explanation, given, plan.units)
    if cut_off and plan.marks != READ:
        return CUT_OFF, places
    return (UNREAD if cut_off and not marks.any() else marks), places


def example_facts(model: str, one: ExplainedExample, true: int | None, units: int) -> ExampleFacts | None:
    """The facts about an example; None if no method could explain it. `true`: the model's class index of its label."""
    first, example = one.first, one.example
    if first is None or example is None:
        return None
    prediction = first.prediction
    return ExampleFacts(
        model=model,
        example=example.index,
        label=example.label,
        predicted=prediction.label,
        confidence=prediction.confidence,
        right=None if true is None or prediction.regression else prediction.index == true,
        length=units,
        extra={name: value for name, value in example.example.extra.items() if _is_plain(value)},
    )


def _is_plain(value: object) -> bool:
    try:
        canonical(value)
    except (TypeError, ValueError):
        return False
    return True


NO_ORDER = "one of the two maps has no order: its scores are all equal"
NO_VALUE = "the metric has no value for this map"
TRUTH = {"gt_overlap": "exact", "gt_share": "overlap", "mean_rank": "mean_rank", "mean_rank_pct": "mean_rank_pct"}
"""Metrics by ground truth, and their names in `engine.metrics.plausibility`."""
ORDERED: tuple[Needs, ...] = ("removal", "marks", "pair")
"""Requirements of the metrics that depend on the order of the units."""
UNORDERED = ("truth_mass",)
"""Metrics with such a requirement that do not depend on the order."""
AGREEMENT = {"rank_spearman": "spearman", "rank_top_k": "top_k"}


@dataclass
class Measurements:
    """The values of one model on one data set, and the reasons for those that are missing."""

    model: str
    dataset: str
    rows: list[MetricRow] = field(default_factory=list)
    skips: list[MetricSkip] = field(default_factory=list)

    def add(
        self, example: int, method: str, metric: str, value: float | str, against: str = "", percent: int | None = None
    ) -> None:
        """Add a value, or the reason why there is none."""
        key = _key(self.model, self.dataset, method, metric, against, percent)
        if isinstance(value, str):
            self.skips.append(MetricSkip(key, example, value))
        else:
            self.rows.append(MetricRow(key, example, float(value)))

    def withdraw(self, method: str, metrics: Collection[str], reason: str) -> None:
        """Replace the method's values by these metrics with the reason why there are none."""
        withdrawn = [row for row in self.rows if row.of.method == method and row.of.metric in metrics]
        self.rows = [row for row in self.rows if row.of.method != method or row.of.metric not in metrics]
        for metric, example in dict.fromkeys((row.of.metric, row.example) for row in withdrawn):
            self.add(example, method, metric, reason)


@lru_cache(maxsize=4096)
def _key(model: str, dataset: str, method: str, metric: str, against: str, percent: int | None) -> MetricKey:
    """Return the key object shared by the rows of all examples, of which there may be hundreds of thousands."""
    return MetricKey(model, dataset, method, metric, against, percent)


def measure_maps(plan: EvaluationPlan, examples: Sequence[UnitScores], measurements: Measurements) -> None:
    """Measure the metrics that need only maps and marks.

    Takes all examples of a model at once, because F1 selects the mean share of units that are marked.
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
    """Withdraw values that depend on the order of units, for methods whose maps are constant on all examples.

    An example is `gradient` if LayerNorm follows the embeddings. Such a method would score like a random order, which
    may be the best by luck. A single constant map is kept and judged by a random order, because it gave its reader
    none.
    """
    ordered = [id for what in ORDERED for id in plan.needs(what) if id not in UNORDERED]
    for method in plan.methods_with_baselines:
        maps = [one.scores[method] for one in examples if len(one.scores.get(method, ())) > 1]
        if maps and all(map(is_constant, maps)):
            measurements.withdraw(method, ordered, CONSTANT_MAPS)


def _value(
    plan: EvaluationPlan, one: UnitScores, method: str, metric: Metric, shares: Mapping[str, float]
) -> float | str:  # fmt: skip
    """The value of the metric, or why it has none."""
    if method in one.failed:
        return one.failed[method]
    if metric.compute is not None:
        return _registered_value(metric, one, method)
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


def _registered_value(metric: Metric, one: UnitScores, method: str) -> float | str:
    """The value of a registered metric, or why it has none.

    The value is checked, because the function may be external code.
    """
    assert metric.compute is not None
    chosen = marks_of_side(one) if metric.needs == "marks" else None
    if isinstance(chosen, str):
        return chosen
    marks = None if chosen is None else chosen[0].copy()
    try:
        value: object = metric.compute(one.scores[method].copy(), marks)
    except ExegesisError as error:
        return one_line(error)
    if value is None:
        return NO_VALUE
    if not _is_finite(value):
        source = f" (from the package {metric.package})" if metric.package else ""
        return f"metric {metric.id}{source} gave {excerpt(value)}, which is not a finite number"
    assert isinstance(value, Real)
    return float(value)


def _is_finite(value: object) -> bool:
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def marks_of_side(one: UnitScores, side: str = "") -> tuple[Marks, np.ndarray] | str:
    """The marks of both texts or of one, and a mask of their units; or why they cannot be used to judge a map.

    If nothing is marked in the whole example, the reason names neither text, since neither text is at fault.
    """
    if isinstance(one.marks, str):
        return one.marks
    inside = np.ones(len(one.marks), dtype=bool) if not side else one.segments == SIDES[side]
    marks = one.marks[inside]
    why = skip_reason(marks)
    return (marks, inside) if why is None else why if not side or not one.marks.any() else f"{why} in the {side} text"


def _usual_share(examples: Sequence[UnitScores], side: str) -> float:
    """The mean share of marked units over the examples with usable marks; 1 if there are none."""
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
    """All removal curves of these examples by method. They are planned together, so shared rows are run once."""
    requests = [request for one in examples for request in requests_for(plan, model, one).values()]
    curves = iter(faithfulness(requests, plan.percents, plan.removal, plan.unit, tally=counts, logits=plan.logits))
    return [{method: next(curves) for method in one.explanations} for one in examples]


def measure_removal(
    plan: EvaluationPlan, measurements: Measurements, examples: Sequence[ExplainedExample], counts: RowCounts
) -> None:
    """Measure the requested removal metrics of each example: comprehensiveness, sufficiency and curves."""
    ids = plan.needs("removal")
    if not ids:
        return
    answers = bisect_failures(lambda group: compute_removal(plan, measurements.model, group, counts), list(examples))
    for one, curves in zip(examples, answers, strict=True):
        for id in ids:
            for method in plan.methods_with_baselines:
                if isinstance(curves, ExegesisError) or method in one.failed:
                    why = one.failed.get(method) or one_line(curves)  # type: ignore[arg-type]
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
    """Measure the sensitivity of each method on each example, if requested."""
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
        return one_line(answer)
    return answer.reason if answer.value is None else answer.value
