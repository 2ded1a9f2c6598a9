"""The explanations of examples by all methods, the scores of their units, and the facts of each example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from cache import canonical, key_for
from engine.data.examples import LabeledExample
from engine.data.sources import SourceExample
from engine.errors import ExegesisError
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import ExampleFacts
from engine.experiments.options import RANDOM
from engine.experiments.sample import UnreadableExample, bisect_failures, error_line
from engine.explain import explain_many
from engine.metrics.faithfulness import ranked_units
from engine.metrics.plausibility import (
    CUT_OFF,
    NOTHING,
    UNMARKED_TRUTH,
    Marks,
    is_cut_off,
    marks_of_picture,
    marks_of_text,
    segments,
)
from engine.request import Request
from engine.result import Explanation


@dataclass(frozen=True)
class ExplainedExample:
    """One example and its explanations by the methods that have one; `example`: None where it cannot be read.

    `failed`: by method, why it has none.
    """

    index: int
    example: SourceExample | None
    explanations: Mapping[str, Explanation]
    failed: Mapping[str, str]

    @property
    def first(self) -> Explanation | None:
        """The first explanation: all share its tokens and its prediction."""
        return next(iter(self.explanations.values()), None)


@dataclass(frozen=True)
class UnitScores:
    """Scores by method, one a unit; `failed`: why a method has none. `marks`: which units count, or why none is known.

    `segments`: in which text each unit is. `ties`: a seed of the example's own, which breaks ties of equal scores.
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
    """Explain every example by every method; what fails is kept as the reason, and the others go on.

    A random order needs no more than the prediction: where even that fails no other method is tried.
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
        failed = {method: error_line(answer) for method, answer in own.items() if isinstance(answer, ExegesisError)}
        explained.append(ExplainedExample(one.index, one, good, failed))
    return explained


def _explain(
    plan: EvaluationPlan, model: str, method: str, examples: Sequence[SourceExample]
) -> dict[int, Explanation | ExegesisError]:
    """Explanations or errors by the index of the example."""
    answers = bisect_failures(explain_many, [request_for(plan, model, method, one) for one in examples])
    return {one.index: answer for one, answer in zip(examples, answers, strict=True)}


def request_for(plan: EvaluationPlan, model: str, method: str, example: SourceExample) -> Request:
    """The request for one explanation of the predicted class."""
    return Request(model, method, example.input, plan.params_of(method), seed=plan.seed, dtype=plan.dtype)


def requests_for(plan: EvaluationPlan, model: str, one: ExplainedExample) -> dict[str, Request]:
    """The requests of the methods that have an explanation."""
    if one.example is None:
        return {}
    return {method: request_for(plan, model, method, one.example) for method in one.explanations}


def unit_scores_of(plan: EvaluationPlan, one: ExplainedExample) -> UnitScores:
    """The scores and marks of the units: all that metrics need that run no model."""
    example, first = one.example, one.first
    if example is None or first is None:
        return UnitScores(one.index, {}, one.failed, {}, UNMARKED_TRUTH, np.zeros(0, dtype=int), ())
    scores = {method: ranked_units(own, example.input, plan.units)[0] for method, own in one.explanations.items()}
    cost = {method: (own.evaluations, own.seconds) for method, own in one.explanations.items()}
    ties = plan.seed, int(key_for(example.input.as_plain())[:16], 16)
    return UnitScores(one.index, scores, one.failed, cost, *_marks(example, first, plan.units), ties)


def _marks(one: SourceExample, explanation: Explanation, unit: str) -> tuple[Marks | str, Int[np.ndarray, "unit"]]:
    """The marks of units, and in which text each unit is."""
    given = one.example
    if not isinstance(given, LabeledExample):
        marks = marks_of_picture(explanation.provenance.model, given)
        return (UNMARKED_TRUTH if marks is None else marks), np.zeros(len(explanation.features), dtype=int)
    places = np.array(segments(explanation, given, unit))
    if not given.rationale and not given.rationale_pair:
        return NOTHING, places
    return (CUT_OFF if is_cut_off(explanation, given) else marks_of_text(explanation, given, unit)), places


def example_facts(model: str, one: ExplainedExample, true: int | None, units: int) -> ExampleFacts | None:
    """The facts of an example; None where no method could explain it. `true`: the model's class that its label is."""
    first, example = one.first, one.example
    if first is None or example is None:
        return None
    prediction = first.prediction
    return ExampleFacts(
        model=model,
        example=example.index,
        label=example.label,
        predicted=prediction.label,
        confidence=max(prediction.probabilities),
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
