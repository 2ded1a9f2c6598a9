"""Kinds of jobs, which split a specification into cached units, and the progress of a run."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from cache import key_for
from engine.errors import ExegesisError, unknown
from engine.experiments import base as experiments
from engine.lazy import LazyModule

if TYPE_CHECKING:
    from engine.experiments import run
    from engine.jobs.cluster import ClusterTask
else:  # it runs models, and imports the units
    run = LazyModule("engine.experiments.run")

Spec = Mapping[str, Any]
UnitPlan = Callable[[Spec], Iterable["WorkUnit"]]
SpecCheck = Callable[[Spec], object]
TaskPlan = Callable[[Spec], Sequence["ClusterTask"]]
Batch = Callable[[Sequence["WorkUnit"]], object]
Item = TypeVar("Item")

MODULES = {
    "explain": "engine.experiments.example_jobs",
    "predict": "engine.experiments.example_jobs",
    "reproduce": "engine.reproduction.run",
    "reproduce_smat": "engine.reproduction.run",
    "compare": "engine.comparison.experiment",
    "empirical": "engine.empirical.training",
    "scaffold": "engine.scaffold.experiment",
}
"""The module of each kind, imported when a job is resumed in another process."""

BATCH_UNITS = 16
"""Maximum number of units in a batch, which is also the most that is lost on cancellation."""
MIN_SHARE = 0.03
"""Share of the evaluations that must be done before the remaining time can be estimated."""


@dataclass(frozen=True)
class UnitStep:
    """The step that a unit belongs to, for the progress text and the time left.

    `place`: position of its example, from 1, or 0 if it has several; then its label is shown. `rows`: approximate
    number of model evaluations. `counted`: name of what its progress counts.
    """

    title: str
    place: int
    of: int
    rows: int
    counted: str = "model evaluations"


@dataclass(frozen=True)
class WorkUnit:
    """A cached piece of work. It is done when the result store contains `key`.

    `compute` returns (meta, arrays), which the runner stores; a unit with `stores_itself` stores its result itself.
    Consecutive units with the same `batch` are passed to it together, a few at a time. It computes and stores all of
    them in fewer passes; if it raises, they are computed one by one. `label`: its name in failures. `group`: plain
    values shared by the units of one cluster worker; None if a unit does not run on a cluster.
    """

    key: str
    label: str
    compute: Callable[[], Any]
    stores_itself: bool = False
    batch: Batch | None = None
    step: UnitStep | None = None
    group: Any = None


def unit_groups(units: Sequence[WorkUnit]) -> Iterator[list[WorkUnit]]:
    """Group consecutive units with the same batch, a few at a time. A unit without a batch is its own group."""
    for _, neighbors in itertools.groupby(units, key=lambda unit: unit.batch or unit.key):
        same = list(neighbors)
        for start in range(0, len(same), BATCH_UNITS):
            yield same[start : start + BATCH_UNITS]


def batched_units(
    keys: Sequence[str],
    items: Sequence[Item],
    labels: Sequence[str],
    work: Callable[[list[Item]], object],
    title: str = "",
    rows: int = 1,
) -> Iterator[WorkUnit]:
    """Yield one unit per item. `work` computes and stores the results of a list of items.

    `title`, `rows`: fields of the units' `UnitStep`; without a title they have none.
    """
    item_of = dict(zip(keys, items, strict=True))

    def batch(units: Sequence[WorkUnit]) -> object:
        return work([item_of[unit.key] for unit in units])

    for place, (key, item, label) in enumerate(zip(keys, items, labels, strict=True), 1):
        step = UnitStep(title, place, len(keys), rows) if title else None
        yield WorkUnit(key, label, partial(work, [item]), stores_itself=True, batch=batch, step=step)


def unreadable_key(work: str, example: Mapping[str, Any], error: ExegesisError) -> str:
    """Return a key that is never stored, so every run tries to read the example again."""
    return key_for({"kind": "picture that cannot be read", "method": work, "example": example, "error": str(error)})


@dataclass(frozen=True)
class JobKind:
    """A kind of job.

    `title`: title of a job. `plan`: its units. `check`: raises for an invalid specification. `tasks`: tasks for a
    cluster. If None, units with a batch go to the cluster one batch at a time, and the others run on this machine.
    """

    id: str
    title: Callable[[Spec], str]
    plan: UnitPlan
    check: SpecCheck
    tasks: TaskPlan | None = None


def job_kind(
    id: str,
    *,
    title: str | Callable[[Spec], str],
    check: SpecCheck = lambda _: None,
    tasks: TaskPlan | None = None,
) -> Callable[[UnitPlan], UnitPlan]:
    """Register a function from a specification (plain JSON) to its units, in the order of work.

    The function is called again on resume, possibly in another process, and must return the same units and keys.
    `check` raises `UsageError` for an invalid specification, so the job is not added. `tasks`: see `JobKind`.
    """

    def register(plan: UnitPlan) -> UnitPlan:
        if id in _kinds and _kinds[id].plan.__module__ != plan.__module__:
            raise ValueError(f"job kind {id!r} is registered twice")
        _kinds[id] = JobKind(id, (lambda _: title) if isinstance(title, str) else title, plan, check, tasks)
        return plan

    return register


def kind_of(id: str) -> JobKind:
    """The kind with this id; each experiment is one. Raises `UsageError` for an unknown id."""
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


class RunEstimate:
    """Progress and time left of a run. Units are weighted by their planned model evaluations.

    Running units count in proportion to their finished evaluations.
    """

    def __init__(self, ahead: Iterable[WorkUnit] = ()) -> None:
        self._whole = sum(map(_rows, ahead))
        self._done, self._seconds = 0, 0.0
        self._current: Sequence[WorkUnit] = ()
        self._evaluated = 0
        self._latest = (0, 0)
        self._begun = 0.0

    def begin(self, units: Sequence[WorkUnit]) -> None:
        """Start timing units that are computed together."""
        self._current, self._evaluated, self._latest, self._begun = units, 0, (0, 0), monotonic()

    def report(self, done: int, total: int) -> None:
        """Record that `done` of `total` evaluations are done; the next ones start from 0."""
        if not self._latest[1]:
            self._begun = monotonic()  # exclude loading the model
        self._evaluated += max(0, done - self._latest[0])
        self._latest = (0, total) if done == total else (done, total)

    def end(self, computed: bool) -> None:
        """Finish the current units. Failed or cached ones are not used for the estimate."""
        if computed:
            self._done += sum(map(_rows, self._current))
            self._seconds += monotonic() - self._begun
        else:
            self.skip(self._current)
        self._current = ()

    def give_up(self) -> None:
        """Drop the current units, which are then computed one by one."""
        self._current = ()

    def skip(self, units: Iterable[WorkUnit]) -> None:
        """Exclude units that need not be computed."""
        self._whole -= sum(map(_rows, units))

    def units_under_way(self) -> int:
        """Number of current units that the evaluations done so far would complete."""
        return min(int(self._share() * len(self._current)), max(0, len(self._current) - 1))

    def seconds_left(self) -> float | None:
        """The estimated seconds left; None until enough is done."""
        here = self._share() * sum(map(_rows, self._current))
        done, seconds = self._done + here, self._seconds
        if here:
            seconds += monotonic() - self._begun
        if not done or done < MIN_SHARE * self._whole:
            return None
        return seconds / done * max(0.0, self._whole - done)

    def label(self) -> str:
        """The current units and their progress."""
        done, total = self._latest
        counted = next((unit.step.counted for unit in self._current if unit.step), "model evaluations")
        more = f", {done:,} of {total:,} {counted}" if 0 < done < total else ""
        return units_label(self._current) + more

    def _share(self) -> float:
        return min(1.0, self._evaluated / max(1, sum(map(_rows, self._current))))


class ClusterEstimate:
    """Progress and time left of tasks on a cluster. `sizes`: sizes of the tasks, used as weights."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._tasks, self._size = len(sizes), sum(sizes)
        self._ended = self._done = 0
        self._begun = monotonic()

    def end(self, size: int) -> None:
        """Record the end of a task of this size."""
        self._ended, self._done = self._ended + 1, self._done + size

    def units_under_way(self) -> int:
        """Always 0, because only the workers know it."""
        return 0

    def seconds_left(self) -> float | None:
        """The estimated seconds left; None until a task has ended."""
        return (monotonic() - self._begun) / self._done * (self._size - self._done) if self._done else None

    def label(self) -> str:
        """The number of tasks that have ended."""
        return f"on the cluster, {self._ended:,} of {self._tasks:,} tasks"


def units_label(units: Sequence[WorkUnit]) -> str:
    """The step of these units, and the positions of their examples."""
    if not units:
        return ""
    first, last = units[0], units[-1]
    if first.step is None or last.step is None or not first.step.place:
        return first.label if len(units) == 1 else f"{first.label} and {len(units) - 1} more"
    of = f"of {last.step.of:,}"
    if len(units) == 1:
        return f"{first.step.title}, example {first.step.place:,} {of}"
    return f"{first.step.title}, examples {first.step.place:,} to {last.step.place:,} {of}"


def _rows(unit: WorkUnit) -> int:
    return 1 if unit.step is None else max(1, unit.step.rows)


_kinds: dict[str, JobKind] = {}
