"""Tasks that run the units of a job on a cluster."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cache import canonical, key_for
from engine import runtime
from engine.errors import ExegesisError
from engine.jobs.cluster import CacheEntries, ClusterTask, pending, worker_cache
from engine.jobs.kinds import JobKind, Spec, WorkUnit, kind_of, unit_groups


@dataclass(frozen=True)
class UnitsTask:
    """Some units of a job, for one cluster worker.

    `spec`: specification as JSON. `units`: keys of the units. `key`: cache key that marks them as done.
    """

    kind: str
    spec: str
    units: tuple[str, ...]
    key: str

    @property
    def size(self) -> int:
        return len(self.units)

    def run(self) -> CacheEntries:
        """Compute the units and return their cache entries. Raises the first error if there are no entries."""
        with worker_cache() as entries:
            units = _units_by_key(self.kind, self.spec, runtime.device_type())
            if not units.keys() >= {*self.units}:
                raise ExegesisError(f"job of kind {self.kind}: has other units on this worker. Install the same files.")
            error = compute_units([units[key] for key in self.units])
            if error is not None and not entries:
                raise error
        return entries


@functools.lru_cache(maxsize=1)
def _units_by_key(kind: str, spec: str, device: str) -> dict[str, WorkUnit]:
    """The units of a job by key, cached for all of its tasks on this worker. `device`: device type, part of the key."""
    return {unit.key: unit for unit in kind_of(kind).plan(json.loads(spec))}


def compute_units(units: Sequence[WorkUnit]) -> ExegesisError | None:
    """Compute units, batch by batch; if a batch fails, one by one. Returns the first error."""
    first: ExegesisError | None = None
    for group in unit_groups(units):
        batch = group[0].batch
        try:
            group[0].compute() if batch is None else batch(group)
        except ExegesisError as error:
            alone = len(group) == 1
            first = first or (error if alone else compute_units([replace(unit, batch=None) for unit in group]))
    return first


def cluster_tasks(kind: JobKind, spec: Spec, missing: Sequence[WorkUnit]) -> Sequence[ClusterTask]:
    """The tasks of a job for a cluster; empty if this machine must compute the missing units."""
    if kind.tasks is not None:
        return kind.tasks(spec)
    text = canonical(spec).decode()
    tasks: list[ClusterTask] = []
    for group in unit_groups([unit for unit in missing if unit.batch is not None]):
        keys = tuple(unit.key for unit in group)
        tasks.append(UnitsTask(kind.id, text, keys, key_for({"kind": "units of a job", "of": list(keys)})))
    return pending(tasks)
