"""Where an evaluation is computed: in this process, or by the machines of a Ray cluster.

On a cluster a task is some examples on one model. Its worker keeps what it finds in a folder of its own, hands it over
and throws it away: this process alone writes the cache, from which the evaluation is then put together as if all of it
had been found here. The workers need the same installation, and models and data sets by the same names or paths.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from cache import key_for
from engine.data.sources import source_of
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.evaluation.evaluate import carry_out, of_some
from engine.evaluation.keeping import kept, key_of
from engine.evaluation.plan import Plan, check
from engine.evaluation.result import Evaluation
from engine.evaluation.sample import AT_ONCE, Sample, sample_of, with_metrics
from engine.progress import CancelToken, Report, silent
from engine.store import result_store

EXECUTORS = ("local", "ray")
RETRIES = 5
"""How often a task is given to another worker when its own is gone."""
LOOK_SECONDS = 0.5

Found = dict[str, bytes]
"""Sealed cache entries by key."""


@dataclass(frozen=True)
class Task:
    """Some examples. `plan`: of one model, with its metrics. `key`: of the note that it is done."""

    plan: Plan
    indices: tuple[int, ...]
    key: str

    def run(self) -> Found:
        """All entries that these examples leave in a cache. Runs on a worker."""
        with tempfile.TemporaryDirectory() as folder, _own_home(folder), result_store() as store:
            found = result_store().heard = {}
            source = source_of(self.plan.kind, self.plan.dataset, self.plan.split, tolerant=True)
            of_some(self.plan, self.plan.models[0], Sample(source, self.indices))
            store.close()
            return found


def carry_out_on(
    executor: str, plan: Plan, address: str | None = None, report: Report = silent, cancel: CancelToken | None = None
) -> Evaluation:
    """`carry_out`, with the work done by `executor`. `address`: of the Ray cluster, None for the one on this machine.

    What a worker could not do is tried here, so that its reason is told. Errors: those of `carry_out`; no cluster.
    """
    if executor not in EXECUTORS:
        raise unknown("executor", executor, EXECUTORS)
    if executor == "ray":
        check(plan)
        if tasks := _left(plan):
            with _cluster(address) as ray:
                _gather(ray, tasks, report, cancel or CancelToken())
    elif address is not None:
        raise UsageError(f"address: belongs to executor ray, got {executor}. Leave one of them out.")
    return carry_out(plan, report, cancel)


def _left(plan: Plan) -> list[Task]:
    """What is not done yet: a worker takes together what would be taken together here."""
    sample = sample_of(plan)
    plan = with_metrics(plan, sample)
    places = range(0, len(sample.indices), AT_ONCE)
    models = [model for model in plan.models if kept(plan, model, sample) is None]
    tasks = [_task(plan, model, sample, sample.indices[at : at + AT_ONCE]) for model in models for at in places]
    return [task for task in tasks if not result_store().contains(task.key)]


def _task(plan: Plan, model: str, sample: Sample, indices: tuple[int, ...]) -> Task:
    of = key_of(plan, model, sample)
    key = key_for({"kind": "evaluated", "what": "task", "of": of, "at": list(indices)})
    return Task(replace(plan, models=(model,)), indices, key)


def _gather(ray: Any, tasks: list[Task], report: Report, cancel: CancelToken) -> None:
    run = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=_gpus(ray))(Task.run)
    waiting = {run.remote(task): task for task in tasks}
    done, total = 0, sum(len(task.indices) for task in tasks)
    while waiting:
        cancel.check()
        report(done, total, "examples on the cluster")
        for reference in ray.wait(list(waiting), timeout=LOOK_SECONDS)[0]:
            task = waiting.pop(reference)
            done += len(task.indices)
            with contextlib.suppress(ray.exceptions.RayError):
                _keep(task, ray.get(reference))


def _keep(task: Task, found: Found) -> None:
    store = result_store()
    stored = [store.put_body(key, body) for key, body in found.items()]
    if all(stored):
        store.put(task.key, {"done": True}, {})


def _gpus(ray: Any) -> int:
    return int("GPU" in ray.cluster_resources())


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    _knock(address)
    try:
        import ray
    except ImportError:
        raise UsageError("executor ray: Ray is not installed. Install it: pip install '.[distributed]'.") from None
    try:
        ray.init(address=address or "auto", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        told = " ".join(str(error).split())[:200]
        where = address or "this machine"
        raise ExegesisError(
            f"address: no Ray cluster answers at {where} ({told}). Start one: ray start --head."
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _knock(address: str | None) -> None:
    """Whether anybody listens there is known at once: Ray itself would try for minutes."""
    if address is None or address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise not_allowed("address", "host:port of a Ray cluster", address, "Example: 10.0.0.1:6379.")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise _nobody(address, error) from None


def _nobody(address: str | None, error: Exception) -> ExegesisError:
    told = " ".join(str(error).split())[:200]
    where = f"no Ray cluster answers at {address or 'this machine'}"
    return ExegesisError(f"address: {where} ({told}). Start one: ray start --head.")


@contextlib.contextmanager
def _own_home(folder: str) -> Iterator[None]:
    before = os.environ.get("EXEGESIS_HOME")
    os.environ["EXEGESIS_HOME"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["EXEGESIS_HOME"]
        else:
            os.environ["EXEGESIS_HOME"] = before
