"""Where a check is computed: in this process, or by the machines of a Ray cluster (`engine.cluster`).

On a cluster a task is one stage at one seed, with all methods and examples, on a randomized copy of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cache import key_for
from engine import cluster
from engine.cluster import Found
from engine.progress import CancelToken, Report, silent
from engine.randomization.keeping import kept, key_of
from engine.randomization.plan import Plan, check
from engine.randomization.result import Randomization
from engine.randomization.run import carry_out, sample_of
from engine.randomization.work import Setting, Work


@dataclass(frozen=True)
class Task:
    """`plan`: of one model. `size`: how many examples. `key`: of the note that it is done."""

    plan: Plan
    setting: Setting
    size: int
    key: str

    def run(self) -> Found:
        """All pieces of the stage. Runs on a worker."""
        with cluster.on_worker() as found:
            work = Work(self.plan, self.plan.models[0], sample_of(self.plan))
            for chunk in work.chunks:
                work.done(work.pieces(self.setting, chunk))
            work.check_untouched()
        return found


def carry_out_on(
    executor: str, plan: Plan, address: str | None = None, report: Report = silent, cancel: CancelToken | None = None
) -> Randomization:
    """`carry_out`, with the work done by `executor`. `address`: of the Ray cluster, None for the one on this machine.

    What a worker could not do is tried here, so that its reason is told. Errors: those of `carry_out`; no cluster.
    """
    cluster.check_executor(executor, address)
    if executor == "ray":
        check(plan)
        cluster.work_off(_left(plan), address, report, cancel or CancelToken())
    return carry_out(plan, report, cancel)


def _left(plan: Plan) -> list[cluster.Task]:
    sample = sample_of(plan)
    models = [model for model in plan.models if kept(plan, model, sample) is None]
    works = [Work(replace(plan, models=(model,)), model, sample) for model in models]
    return cluster.left([_task(work, setting) for work in works for setting in work.settings()])


def _task(work: Work, setting: Setting) -> Task:
    of = key_of(work.plan, work.model, work.sample)
    key = key_for({"kind": "randomized", "what": "task", "of": of, "at": [list(setting[0]), setting[1]]})
    return Task(work.plan, setting, len(work.sample.indices), key)
