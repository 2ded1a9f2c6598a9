"""The metrics that run the model: removal and small changes, of a few examples by all methods together."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import ExegesisError
from engine.evaluation.maps import Explained, requests_of, surviving
from engine.evaluation.notes import Notes
from engine.evaluation.plan import Plan
from engine.evaluation.sample import reason
from engine.metrics.catalog import METRICS
from engine.metrics.faithfulness import Faithfulness, RowCounts, faithfulness
from engine.metrics.sensitivity import Sensitivity, sensitivities
from engine.params import PROBABILITY
from engine.request import Request

Removed = dict[str, Faithfulness]
"""By method."""


def removal(plan: Plan, model: str, made: Sequence[Explained], tally: RowCounts | None = None) -> list[Removed]:
    """All curves of these examples, planned together so that what they share is run once."""
    asked = [request for one in made for request in requests_of(plan, model, one).values()]
    found = iter(faithfulness(asked, plan.percents, plan.removal, plan.unit, tally=tally, logits=plan.logits))
    return [{method: next(found) for method in one.made} for one in made]


def note_removal(plan: Plan, notes: Notes, made: Sequence[Explained], tally: RowCounts) -> None:
    """Comprehensiveness, sufficiency and the curves of each example, as far as they are asked for."""
    ids = plan.needs("removal")
    answers = surviving(lambda group: removal(plan, notes.model, group, tally), list(made)) if ids else []
    for one, found in zip(made, answers, strict=False):
        for id in ids:
            for method in plan.company:
                why = one.failed.get(method) or (reason(found) if isinstance(found, ExegesisError) else None)
                _note_curves(plan, notes, one.index, method, id, why or found[method])  # type: ignore[index]


def _note_curves(plan: Plan, notes: Notes, example: int, method: str, id: str, found: Faithfulness | str) -> None:
    if isinstance(found, str):
        notes.note(example, method, id, found)
    elif not METRICS[id].by_percent:
        name, _, of_logit = id.partition("_")
        fall = found.comprehensiveness if name == "comprehensiveness" else found.sufficiency
        notes.note(example, method, id, fall(plan.shares, of_logit or PROBABILITY))
    else:
        curve = found.deletion if id == "without_top" else found.insertion
        for percent in curve.percents:
            notes.note(example, method, id, curve.at(percent), percent=percent)


def note_sensitivity(plan: Plan, notes: Notes, made: Sequence[Explained]) -> None:
    """Of each example by each method, where it is asked for."""
    if not plan.needs("perturbation"):
        return

    def work(asked: list[Request]) -> list[Sensitivity]:
        return sensitivities(asked, samples=plan.samples)

    asked = [requests_of(plan, notes.model, one) for one in made]
    for method in plan.company:
        having = {one.index: own[method] for one, own in zip(made, asked, strict=True) if method in own}
        found = dict(zip(having, surviving(work, list(having.values())), strict=True))
        for one in made:
            value = one.failed.get(method) or _value(found[one.index])
            notes.note(one.index, method, "sensitivity", value)


def _value(found: Sensitivity | ExegesisError) -> float | str:
    if isinstance(found, ExegesisError):
        return reason(found)
    return found.reason if found.value is None else found.value
