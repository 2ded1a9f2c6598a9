"""Work on the machines of a Ray cluster: tasks go out, and what they leave in a cache comes back.

A task's worker keeps what it finds in a folder of its own, hands it over and throws it away: this process alone writes
the cache, from which the result is then put together as if all of it had been found here. The workers need the same
installation, and models and data sets by the same names or paths.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from engine import runtime
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.progress import CancelToken, Report
from engine.store import result_store

EXECUTORS = ("local", "ray")
RETRIES = 5
"""Retries of a task on another worker when its own is lost."""
LOOK_SECONDS = 0.5

CacheEntries = dict[str, bytes]
"""Sealed cache entries by key."""


@runtime_checkable
class ClusterTask(Protocol):
    """A piece of work of `size` parts; `key` names the cache entry that says it is done."""

    @property
    def key(self) -> str: ...

    @property
    def size(self) -> int: ...

    def run(self) -> CacheEntries:
        """Run on a worker; return all cache entries that the work leaves."""


def check_executor(executor: str, address: str | None) -> None:
    """Refuse an unknown executor, and an address without a cluster."""
    if executor not in EXECUTORS:
        raise unknown("executor", executor, EXECUTORS)
    if executor == "local" and address is not None:
        raise UsageError(f"address: only applies to executor ray, got {executor}. Drop one of the two.")


def pending(tasks: Sequence[ClusterTask]) -> list[ClusterTask]:
    """Return the tasks that are not done yet."""
    return [task for task in tasks if not result_store().contains(task.key)]


def run_tasks(
    tasks: Sequence[ClusterTask], address: str | None, report: Report, cancel: CancelToken, counted: str = "examples"
) -> None:
    """Has them done by the cluster at that address, None for the one on this machine. What fails there is pending over.

    `counted`: what the parts of a task are. Errors: no Ray, no cluster.
    """
    if tasks:
        with _cluster(address) as ray:
            _gather(ray, tasks, report, cancel, counted)


@contextlib.contextmanager
def worker_cache() -> Iterator[CacheEntries]:
    """A cache of its own, thrown away afterwards; all that is put into it inside is noted."""
    with tempfile.TemporaryDirectory() as folder, _own_home(folder), result_store() as store:
        entries = result_store().heard = {}
        yield entries
        store.close()


def store_entries(task: ClusterTask, entries: CacheEntries) -> None:
    """Put the entries that a worker computed into the cache of this machine."""
    store = result_store()
    stored = [store.put_body(key, body) for key, body in entries.items()]
    if all(stored):
        store.put(task.key, {"done": True}, {})


def _gather(ray: Any, tasks: Sequence[ClusterTask], report: Report, cancel: CancelToken, counted: str) -> None:
    run = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=int("GPU" in ray.cluster_resources()))(_run)
    waiting = {run.remote(task, runtime.device_type()): task for task in tasks}
    done, total = 0, sum(task.size for task in tasks)
    while waiting:
        cancel.check()
        report(done, total, f"{counted} on the cluster")
        for reference in ray.wait(list(waiting), timeout=LOOK_SECONDS)[0]:
            task = waiting.pop(reference)
            done += task.size
            with contextlib.suppress(ray.exceptions.RayError):
                store_entries(task, ray.get(reference))


def _run(task: ClusterTask, asker: str) -> CacheEntries:
    """On a worker. `asker`: the kind of device of who looks for the results; the worker's may be another."""
    with runtime.kept_for(asker):
        return task.run()


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    _check_reachable(address)
    try:
        import ray
    except ImportError:
        raise UsageError("executor ray: Ray is not installed. Install it: pip install '.[distributed]'.") from None
    try:
        ray.init(address=address or "auto", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_cluster(address, error) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Whether anybody listens there is known at once: Ray itself would try for minutes."""
    if address is None or address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise not_allowed("address", "host:port of a Ray cluster", address, "Example: 10.0.0.1:6379.")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from None


def _no_cluster(address: str | None, error: Exception) -> ExegesisError:
    reason = " ".join(str(error).split())[:200]
    where = f"no Ray cluster answers at {address or 'this machine'}"
    return ExegesisError(f"address: {where} ({reason}). Start one: ray start --head.")


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
