"""The job kind `randomize`: all maps and predictions of a check at all stages, each piece kept as it is made.

What it leaves in the cache is what `engine.randomization.run.randomize` then reads without running a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.errors import ExegesisError, UsageError, not_allowed, shown
from engine.jobs.kinds import Spec, Step, Unit, job_kind

if TYPE_CHECKING:
    from engine.randomization.pieces import Piece
    from engine.randomization.plan import Plan
    from engine.randomization.work import Work

LISTS = ("models", "methods", "modes")
NEEDED = {"models", "dataset"}


def _title(spec: Spec) -> str:
    return f"Randomize {', '.join(map(str, spec.get('models', [])))} on {spec.get('dataset')}"


def plan_of(spec: Spec) -> Plan:
    """The plan that a specification names. Errors: a field that is missing, unknown or of another shape."""
    from engine.randomization.plan import Plan

    known = {field.name for field in fields(Plan)}
    if spec.keys() - known or NEEDED - spec.keys():
        raise UsageError(
            f"spec of a randomize job: must have models and dataset, and may have "
            f"{', '.join(sorted(known - NEEDED))}, got {shown(sorted(spec))}."
        )
    for name in LISTS:
        if not isinstance(spec.get(name, []), list):
            raise not_allowed(f"{name} of a randomize job", "a list", spec[name])
    if not isinstance(spec["dataset"], str):
        raise not_allowed("dataset of a randomize job", "a data set's name, a path or hub:owner/name", spec["dataset"])
    given: dict[str, Any] = {name: tuple(value) if name in LISTS else value for name, value in spec.items()}
    return Plan(**given)


def check(spec: Spec) -> None:
    """Refuses what cannot be randomized. The data set is read when the job runs."""
    from engine.randomization.plan import check as check_plan

    check_plan(plan_of(spec))


@job_kind("randomize", title=_title, check=check)
def plan(spec: Spec) -> Iterator[Unit]:
    """The fields of `engine.randomization.plan.Plan`. Model by model, stage by stage: a unit for the predictions of a
    few examples, and one for their maps by each method; at the end the whole.
    """
    from engine.randomization.plan import check as check_plan
    from engine.randomization.run import sample_of
    from engine.randomization.work import Work

    asked = plan_of(spec)
    check_plan(asked)
    sample = sample_of(asked)
    for model in asked.models:
        yield from _of_model(Work(asked, model, sample))


def _of_model(work: Work) -> Iterator[Unit]:
    from engine.randomization.keeping import key_of
    from engine.randomization.run import carry_out

    pieces = {piece.key: piece for piece in work.all_pieces()}

    def together(units: Sequence[Unit]) -> None:
        _make(work, [pieces[unit.key] for unit in units])

    for key, piece in pieces.items():
        label, rows = _label(work, piece), len(piece.indices) * _rows(work, piece)
        step, compute = Step("", 0, 0, rows), partial(_make, work, [piece])
        yield Unit(key, label, compute, stores_itself=True, batch=together, step=step)

    def whole() -> None:
        work.check_untouched()
        carry_out(replace(work.plan, models=(work.model,)))

    yield Unit(key_of(work.plan, work.model, work.sample), f"all together, {work.model}", whole, stores_itself=True)


def _label(work: Work, piece: Piece) -> str:
    from engine.randomization.parts import told

    what = f"{piece.method or 'prediction'}, {len(piece.indices)} examples from {piece.indices[0]}"
    return f"{what}, {told(piece.parts)} randomized, {work.model}"


def _rows(work: Work, piece: Piece) -> int:
    """About how many model evaluations an example takes."""
    from engine.costs import rows_of
    from engine.registry import explainer

    plan = work.plan
    return rows_of(explainer(piece.method, plan.kind), plan.params_of(piece.method)) if piece.method else 1


def _make(work: Work, pieces: Sequence[Piece]) -> None:
    from engine.randomization.pieces import Maps

    for made in work.done(pieces).values():
        for why in made.failed.values() if isinstance(made, Maps) or not made.lasting else ():
            raise ExegesisError(why)  # so that the example is tried again
