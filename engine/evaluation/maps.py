"""The maps of an example, and what is known of it once it is explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Int

from cache import canonical, key_for
from engine.data.examples import LabeledExample
from engine.data.sources import SourceExample
from engine.errors import Cancelled, ExegesisError
from engine.evaluation.plan import RANDOM, Plan
from engine.evaluation.result import Facts
from engine.evaluation.sample import Unread, reason
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

Asked = TypeVar("Asked")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Maps:
    """Scores by method, one a unit; `failed`: why a method has none. `marks`: which units count, or why none is known.

    `segments`: in which text each unit stands. `ties`: what tells the example from others where scores are equal.
    """

    index: int
    scores: Mapping[str, Float[np.ndarray, "unit"]]
    failed: Mapping[str, str]
    cost: Mapping[str, tuple[int, float]]
    marks: Marks | str
    segments: Int[np.ndarray, "unit"]
    ties: tuple[int, ...]


@dataclass(frozen=True)
class Explained:
    """One example and its explanations by the methods that have one; `candidate`: None where it cannot be read."""

    index: int
    candidate: SourceExample | None
    made: Mapping[str, Explanation]
    failed: Mapping[str, str]

    @property
    def any(self) -> Explanation | None:
        """One of them: its tokens and its prediction are those of all."""
        return next(iter(self.made.values()), None)


def explained(plan: Plan, model: str, examples: Sequence[SourceExample | Unread]) -> list[Explained]:
    """Every example by every method; what fails is kept as the reason, and the others go on.

    A random order needs no more than the prediction: where even that fails no other method is tried.
    """
    probes = _by_one(plan, model, RANDOM, [one for one in examples if isinstance(one, SourceExample)])
    readable = [
        one for one in examples if isinstance(one, SourceExample) and isinstance(probes[one.index], Explanation)
    ]
    others = {method: _by_one(plan, model, method, readable) for method in plan.company if method != RANDOM}
    answers = {**others, RANDOM: probes}
    found = []
    for one in examples:
        if not isinstance(one, SourceExample):
            found.append(_failed(plan, one.index, None, one.why))
        elif isinstance(probe := probes[one.index], ExegesisError):
            found.append(_failed(plan, one.index, one, reason(probe)))
        else:
            found.append(_sorted_out(one, {method: answers[method][one.index] for method in plan.company}))
    return found


def _by_one(
    plan: Plan, model: str, method: str, candidates: Sequence[SourceExample]
) -> dict[int, Explanation | ExegesisError]:
    made = surviving(explain_many, [request_of(plan, model, method, one) for one in candidates])
    return {one.index: answer for one, answer in zip(candidates, made, strict=True)}


def _failed(plan: Plan, index: int, candidate: SourceExample | None, why: str) -> Explained:
    return Explained(index, candidate, {}, dict.fromkeys(plan.company, why))


def _sorted_out(one: SourceExample, answers: Mapping[str, Explanation | ExegesisError]) -> Explained:
    made = {method: answer for method, answer in answers.items() if isinstance(answer, Explanation)}
    failed = {method: reason(answer) for method, answer in answers.items() if isinstance(answer, ExegesisError)}
    return Explained(one.index, one, made, failed)


def request_of(plan: Plan, model: str, method: str, candidate: SourceExample) -> Request:
    """One explanation of the predicted class."""
    return Request(model, method, candidate.input, plan.params_of(method), seed=plan.seed, dtype=plan.dtype)


def requests_of(plan: Plan, model: str, one: Explained) -> dict[str, Request]:
    """Those that have an explanation, by method."""
    candidate = one.candidate
    return {} if candidate is None else {method: request_of(plan, model, method, candidate) for method in one.made}


def surviving(work: Callable[[list[Asked]], Sequence[Made]], asked: list[Asked]) -> list[Made | ExegesisError]:
    """What `work` makes of them together; of those that make it fail, the error, found by halves."""
    if not asked:
        return []
    try:
        return list(work(asked))
    except Cancelled:
        raise
    except ExegesisError as error:
        if len(asked) == 1:
            return [error]
        middle = len(asked) // 2
        return [*surviving(work, asked[:middle]), *surviving(work, asked[middle:])]


def maps_of(plan: Plan, one: Explained) -> Maps:
    """What the metrics look at that run no model."""
    candidate, made = one.candidate, one.any
    if candidate is None or made is None:
        return Maps(one.index, {}, one.failed, {}, UNMARKED_TRUTH, np.zeros(0, dtype=int), ())
    scores = {method: ranked_units(own, candidate.input, plan.units)[0] for method, own in one.made.items()}
    cost = {method: (own.evaluations, own.seconds) for method, own in one.made.items()}
    return Maps(one.index, scores, one.failed, cost, *_marked(candidate, made, plan.units), _ties(plan, candidate))


def _marked(one: SourceExample, made: Explanation, unit: str) -> tuple[Marks | str, Int[np.ndarray, "unit"]]:
    given = one.example
    if not isinstance(given, LabeledExample):
        found = marks_of_picture(made.provenance.model, given)
        return (UNMARKED_TRUTH if found is None else found), np.zeros(len(made.features), dtype=int)
    places = np.array(segments(made, given, unit))
    if not given.rationale and not given.rationale_pair:
        return NOTHING, places
    return (CUT_OFF if is_cut_off(made, given) else marks_of_text(made, given, unit)), places


def _ties(plan: Plan, candidate: SourceExample) -> tuple[int, ...]:
    return plan.seed, int(key_for(candidate.input.as_plain())[:16], 16)


def facts_of(model: str, one: Explained, true: int | None, units: int) -> Facts | None:
    """None where no method could explain the example. `true`: the model's class that its label is."""
    made, candidate = one.any, one.candidate
    if made is None or candidate is None:
        return None
    said = made.prediction
    right = None if true is None or said.regression else said.index == true
    return Facts(
        model=model,
        example=candidate.index,
        label=candidate.label,
        predicted=said.label,
        confidence=max(said.probabilities),
        right=right,
        length=units,
        extra={name: value for name, value in candidate.example.extra.items() if _plain(value)},
    )


def _plain(value: object) -> bool:
    try:
        canonical(value)
    except (TypeError, ValueError):
        return False
    return True
