"""Where an evaluation is computed: in this process, or by the machines of a Ray cluster (`engine.cluster`).

On a cluster a task is some examples on one model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cache import key_for
from engine import cluster
from engine.cluster import CacheEntries
from engine.data.sources import load_source
from engine.evaluation.evaluate import carry_out, of_some
from engine.evaluation.keeping import kept, key_of
from engine.evaluation.plan import Plan, check
from engine.evaluation.result import Evaluation
from engine.evaluation.sample import AT_ONCE, Sample, sample_of, with_metrics
from engine.progress import CancelToken, Report, silent


@dataclass(frozen=True)
class Task:
    """Some examples. `plan`: of one model, with its metrics. `key`: of the note that it is done."""

    plan: Plan
    indices: tuple[int, ...]
    key: str

    @property
    def size(self) -> int:
        return len(self.indices)

    def run(self) -> CacheEntries:
        """All entries that these examples leave in a cache. Runs on a worker."""
        with cluster.worker_cache() as found:
            source = load_source(self.plan.kind, self.plan.dataset, self.plan.split, tolerant=True)
            of_some(self.plan, self.plan.models[0], Sample(source, self.indices))
        return found


def carry_out_on(
    executor: str, plan: Plan, address: str | None = None, report: Report = silent, cancel: CancelToken | None = None
) -> Evaluation:
    """`carry_out`, with the work done by `executor`. `address`: of the Ray cluster, None for the one on this machine.

    What a worker could not do is tried here, so that its reason is told. Errors: those of `carry_out`; no cluster.
    """
    cluster.check_executor(executor, address)
    if executor == "ray":
        check(plan)
        cluster.run_tasks(_left(plan), address, report, cancel or CancelToken())
    return carry_out(plan, report, cancel)


def _left(plan: Plan) -> list[cluster.ClusterTask]:
    """What is not done yet: a worker takes together what would be taken together here."""
    sample = sample_of(plan)
    plan = with_metrics(plan, sample)
    places = range(0, len(sample.indices), AT_ONCE)
    models = [model for model in plan.models if kept(plan, model, sample) is None]
    return cluster.pending(
        [_task(plan, model, sample, sample.indices[at : at + AT_ONCE]) for model in models for at in places]
    )


def _task(plan: Plan, model: str, sample: Sample, indices: tuple[int, ...]) -> Task:
    of = key_of(plan, model, sample)
    key = key_for({"kind": "evaluated", "what": "task", "of": of, "at": list(indices)})
    return Task(replace(plan, models=(model,)), indices, key)
