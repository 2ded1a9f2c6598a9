"""Where attacks are computed: in this process, or by the machines of a Ray cluster (`engine.cluster`).

On a cluster a task is some examples, one method and one objective on one model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cache import key_for
from engine import cluster
from engine.attacks.attack import EXAMPLES_AT_ONCE, key_of
from engine.attacks.experiment import carry_out, of_some
from engine.attacks.findings import Findings
from engine.attacks.plan import AttackPlan, check
from engine.cluster import CacheEntries
from engine.errors import ExegesisError
from engine.evaluation.sample import Sample, sample_of
from engine.progress import CancelToken, Report, silent


@dataclass(frozen=True)
class Task:
    """Some examples. `plan`: of one model, one method and one objective. `key`: of the note that it is done."""

    plan: AttackPlan
    indices: tuple[int, ...]
    key: str

    @property
    def size(self) -> int:
        """How many examples."""
        return len(self.indices)

    def run(self) -> CacheEntries:
        """All entries that these attacks leave in a cache. Runs on a worker."""
        with cluster.worker_cache() as found:
            of_some(self.plan, Sample(sample_of(self.plan.sampled).source, self.indices))
        return found


def carry_out_on(
    executor: str,
    plan: AttackPlan,
    address: str | None = None,
    report: Report = silent,
    cancel: CancelToken | None = None,
) -> Findings:
    """`carry_out`, with the work done by `executor`. `address`: of the Ray cluster, None for the one on this machine.

    What a worker could not do is tried here, so that its reason is told. Errors: those of `carry_out`; no cluster.
    """
    cluster.check_executor(executor, address)
    if executor == "ray":
        check(plan)
        cluster.run_tasks(cluster.pending(list(_tasks(plan))), address, report, cancel or CancelToken())
    return carry_out(plan, report, cancel)


def _tasks(plan: AttackPlan) -> Iterator[Task]:
    """A worker takes together what would be taken together here."""
    sample = sample_of(plan.sampled)
    for model in plan.models:
        for objective, method in plan.pairs:
            params = {name: own for name, own in plan.params.items() if name in (method, *plan.transfer)}
            own = replace(plan, models=(model,), objectives=(objective,), methods=(method,), params=params)
            for at in range(0, len(sample.indices), EXAMPLES_AT_ONCE):
                indices = sample.indices[at : at + EXAMPLES_AT_ONCE]
                of = [_key(own, sample, index) for index in indices]
                yield Task(own, indices, key_for({"kind": "attacks, task", "of": of, "transfer": list(own.transfer)}))


def _key(plan: AttackPlan, sample: Sample, index: int) -> str:
    """The key of the attack on an example; why it cannot be read, where it cannot."""
    ((objective, method),) = plan.pairs
    try:
        return key_of(plan.request(plan.models[0], objective, method, sample.source.read(index)))
    except ExegesisError as error:
        return str(error)
