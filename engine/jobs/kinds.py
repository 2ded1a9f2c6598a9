"""Kinds of jobs: how a plain specification is cut into cached units."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from cache import key_for
from engine.errors import ExegesisError, unknown
from engine.experiments import base as experiments
from engine.lazy import LazyModule

if TYPE_CHECKING:
    from engine.experiments import run
else:  # it runs models, and its work is made of units
    run = LazyModule("engine.experiments.run")

Spec = Mapping[str, Any]
UnitPlan = Callable[[Spec], Iterable["WorkUnit"]]
SpecCheck = Callable[[Spec], object]
Batch = Callable[[Sequence["WorkUnit"]], object]
Item = TypeVar("Item")

MODULES = {
    "explain": "engine.experiments.explain_many",
    "predict": "engine.experiments.predict",
    "reproduce": "engine.reproduction.run",
    "reproduce_smat": "engine.reproduction.run",
    "compare": "engine.comparison.experiment",
    "scaffold": "engine.scaffold.experiment",
}
"""Where a kind is defined, so that a job can be resumed in a process that has not imported it yet."""


@dataclass(frozen=True)
class UnitStep:
    """The work that a unit is a piece of, for the progress sentence of a job and its time left.

    `place`: of its example among the job's, from 1; 0 where it has several, and its label is shown. `rows`: about how
    many model evaluations it takes. `counted`: what it reports on its way, where that is something else.
    """

    title: str
    place: int
    of: int
    rows: int
    counted: str = "model evaluations"


@dataclass(frozen=True)
class WorkUnit:
    """One cached piece of work: it is done when the result store holds `key`.

    `compute` returns (meta, arrays), which the runner stores; a unit that `stores_itself` puts its result under
    `key` on its own (as `engine.explain` does), and what it returns is not used. Units
    that follow each other with the same `batch` are first given to it together, a few at a time: it computes and
    stores them all in fewer passes, or raises, and then they are computed one by one. `label`: names it in a failure.
    `group`: plain values that units share which one worker of a cluster does; None for what is not done there.
    """

    key: str
    label: str
    compute: Callable[[], Any]
    stores_itself: bool = False
    batch: Batch | None = None
    step: UnitStep | None = None
    group: Any = None


def batched_units(
    keys: Sequence[str],
    items: Sequence[Item],
    labels: Sequence[str],
    work: Callable[[list[Item]], object],
    title: str = "",
    rows: int = 1,
) -> Iterator[WorkUnit]:
    """A unit an item, by its key. `work` computes and stores the results of the items that it is given.

    `title`, `rows`: of the units' `UnitStep`; without a title they have none.
    """
    item_of = dict(zip(keys, items, strict=True))

    def batch(units: Sequence[WorkUnit]) -> object:
        return work([item_of[unit.key] for unit in units])

    for place, (key, item, label) in enumerate(zip(keys, items, labels, strict=True), 1):
        step = UnitStep(title, place, len(keys), rows) if title else None
        yield WorkUnit(key, label, partial(work, [item]), stores_itself=True, batch=batch, step=step)


def unreadable_key(work: str, example: Mapping[str, Any], error: ExegesisError) -> str:
    """A key under which nothing is ever stored, so that every run tries to read the example again."""
    return key_for({"kind": "picture that cannot be read", "method": work, "example": example, "error": str(error)})


@dataclass(frozen=True)
class JobKind:
    """A kind of job. `title`: of a job, `plan`: its units, `check`: refuses a specification that has no plan."""

    id: str
    title: Callable[[Spec], str]
    plan: UnitPlan
    check: SpecCheck


def job_kind(
    id: str, *, title: str | Callable[[Spec], str], check: SpecCheck = lambda _: None
) -> Callable[[UnitPlan], UnitPlan]:
    """Register a function from a specification (plain JSON) to its units, in the order of work.

    The plan is made again on resume, in another process, and must name the same units by the same keys.
    `check` raises `UsageError` for a specification that no plan can be made of: such a job is not entered.
    """

    def register(plan: UnitPlan) -> UnitPlan:
        if id in _kinds and _kinds[id].plan.__module__ != plan.__module__:
            raise ValueError(f"job kind {id!r} is registered twice")
        _kinds[id] = JobKind(id, (lambda _: title) if isinstance(title, str) else title, plan, check)
        return plan

    return register


def kind_of(id: str) -> JobKind:
    """The kind of this id; each experiment is one. Errors: an unknown id, with all known ones."""
    if id not in _kinds and experiments.is_experiment(id):
        return run.job_kind(experiments.experiment(id))
    if id not in _kinds and id in MODULES:
        importlib.import_module(MODULES[id])
    if id not in _kinds:
        raise unknown("job kind", id, known_ids())
    return _kinds[id]


def known_ids() -> set[str]:
    """The ids of all kinds of jobs."""
    return {*_kinds, *MODULES, *experiments.known_ids()}


_kinds: dict[str, JobKind] = {}
