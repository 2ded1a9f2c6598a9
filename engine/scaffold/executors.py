"""Where students are taught: in this process, or by the machines of a Ray cluster (`engine.cluster`), a task each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cache import key_for
from engine import cluster
from engine.cluster import CacheEntries
from engine.progress import CancelToken, Report, silent
from engine.scaffold.keeping import Kept
from engine.scaffold.plan import Plan, Pupil, check
from engine.scaffold.result import Scaffold
from engine.scaffold.run import Work, scaffold


@dataclass(frozen=True)
class Task:
    """One student. `key`: of the note that it is done."""

    plan: Plan
    pupil: Pupil
    key: str

    @property
    def size(self) -> int:
        return 1

    def run(self) -> CacheEntries:
        """Teaches it. Runs on a worker."""
        with cluster.worker_cache() as found:
            Work(self.plan).teach(self.pupil)
        return found


def scaffold_on(
    executor: str, plan: Plan, address: str | None = None, report: Report = silent, cancel: CancelToken | None = None
) -> Scaffold:
    """`scaffold`, with the work done by `executor`. `address`: of the Ray cluster, None for the one on this machine.

    What a worker could not do is tried here, so that its reason is told. Errors: those of `scaffold`; no cluster.
    """
    cluster.check_executor(executor, address)
    if executor == "ray":
        check(plan)
        cluster.run_tasks(_left(plan), address, report, cancel or CancelToken(), "students")
    return scaffold(plan, report, cancel)


def _left(plan: Plan) -> list[cluster.ClusterTask]:
    kept = Kept(plan)
    missing = [pupil for pupil in plan.pupils if kept.find(pupil) is None]
    return cluster.pending([_task(plan, pupil, kept.key(pupil)) for pupil in missing])


def _task(plan: Plan, pupil: Pupil, of: str) -> Task:
    alone = replace(plan, settings=(pupil.setting,), seeds=(pupil.seed,))
    return Task(alone, pupil, key_for({"kind": "scaffold student", "what": "task", "of": of}))
