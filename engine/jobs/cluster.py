"""Run tasks on a Ray cluster and collect their cache entries.

A worker writes its results to a temporary cache, returns them and deletes it. Only this process writes the real cache,
from which the result is then assembled as if everything had been computed here. The workers need the same installation
and plugins, and the same models and data sets under the same names or paths.

Commands drive the cluster from their own process (`run_tasks`). Jobs use a separate process (`run_tasks_apart`),
because Ray terminates the driving process when the head of the cluster is lost.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Any, NamedTuple, Protocol, runtime_checkable

from engine import access, plugins, runtime
from engine.cache_mirror import configured_mirror, reading_mirror
from engine.errors import ExegesisError, UsageError, not_allowed, one_line, unknown
from engine.format import count_text, plural
from engine.models import sandbox
from engine.progress import CancelToken, Report
from engine.registry import load_plugins
from engine.store import result_store
from engine.telemetry import log_event

EXECUTORS = ("local", "ray")
RAY_ADDRESS = "EXEGESIS_RAY_ADDRESS"
"""Variable with the cluster on which jobs run, host:port or "auto". It is also the default of `--address`."""
SECRETS = (access.PASSWORD, "EXEGESIS_DATABASE_URL")
"""Variables of the server that are not passed to the driver and the workers, which do not need them."""
_log = logging.getLogger("exegesis.cluster")
DRIVER = "engine.jobs.cluster_driver"
PROBE_SECONDS, PROBES = 2.0, 3
"""Seconds between two probes of the cluster's head, and number of failed probes after which it counts as lost."""
RETRIES = 5
"""Retries of a task on another worker if its worker is lost."""
LOOK_SECONDS = 0.5

CacheEntries = dict[str, bytes]
"""Sealed cache entries by key."""


@runtime_checkable
class ClusterTask(Protocol):
    """A task of `size` parts. `key`: cache key that marks it as done."""

    @property
    def key(self) -> str: ...

    @property
    def size(self) -> int: ...

    def run(self) -> CacheEntries:
        """Run on a worker and return all cache entries that the task produced."""


def check_executor(executor: str, address: str | None) -> None:
    """Refuse an unknown executor, and an address without a cluster."""
    if executor not in EXECUTORS:
        raise unknown("executor", executor, EXECUTORS)
    if executor == "local" and address is not None:
        raise UsageError(f"address: only applies to executor ray, got {executor}. Drop one of the two.")


def configured_address() -> str | None:
    """The address of the cluster on which jobs run; None for this machine."""
    return os.environ.get(RAY_ADDRESS, "").strip() or None


def pending(tasks: Sequence[ClusterTask]) -> list[ClusterTask]:
    """Return the tasks that are not done yet."""
    return [task for task in tasks if not result_store().contains(task.key)]


def run_tasks(
    tasks: Sequence[ClusterTask], address: str | None, report: Report, cancel: CancelToken, counted: str = "example"
) -> None:
    """Run tasks on the cluster at `address`; None for the configured cluster or the one on this machine.

    Tasks that fail stay pending and are reported in a note (`engine.runtime.note`). `counted`: what the parts of a task
    are, in the singular. Errors: Ray is not installed, no cluster answers.
    """
    if tasks:
        with _cluster(address) as ray:
            _gather(ray, tasks, report, cancel, counted)


@contextlib.contextmanager
def worker_cache() -> Iterator[CacheEntries]:
    """Use a temporary cache in the block. Yields a dict that collects all entries stored in it."""
    with tempfile.TemporaryDirectory() as folder, _own_home(folder), result_store() as store:
        entries = result_store().heard = {}
        yield entries
        store.close()


def store_entries(task: ClusterTask, entries: CacheEntries) -> None:
    """Store the entries that a worker computed in the cache of this machine, then mark the task as done."""
    store = result_store()
    stored = [store.put_body(key, body) for key, body in entries.items()]
    if all(stored):
        store.put(task.key, {"done": True}, {})


def failure_note(count: int, counted: str, first: str) -> str:
    """Describe how many parts failed on the cluster, and why the first one did."""
    return f"{count_text(count, counted)} failed on the cluster and ran here. The first: {first}"


def _gather(ray: Any, tasks: Sequence[ClusterTask], report: Report, cancel: CancelToken, counted: str) -> None:
    done, total = 0, sum(task.size for task in tasks)
    failed, first = 0, ""
    for ended in _ended_tasks(ray, tasks, WorkerSettings.of_this_process()):
        cancel.check()
        for place, entries, error in ended:
            done += tasks[place].size
            if entries is None:
                failed, first = failed + tasks[place].size, first or error
                log_event(_log, "task failed on the cluster", logging.WARNING, error=error)
            else:
                store_entries(tasks[place], entries)
        report(done, total, f"{plural(counted)} on the cluster")
    if failed:
        runtime.note(failure_note(failed, counted, first))


class WorkerSettings(NamedTuple):
    """Settings of this process that a worker needs to produce the same cache entries.

    `device_type`: device type of this process, which is part of the keys; the worker's may differ. `sandboxed`: whether
    the worker must try untrusted checkpoints in a sandbox first, as a server does. `mirror`: mirror of the server's
    cache. `plugins`: names that installed packages add (`engine.plugins.additions`).
    """

    device_type: str
    sandboxed: bool
    mirror: str
    plugins: Mapping[str, Sequence[str]]

    @classmethod
    def of_this_process(cls) -> WorkerSettings:
        return cls(runtime.device_type(), sandbox.is_enabled(), configured_mirror(), plugins.additions())


class EndedTask(NamedTuple):
    """A task that ended: its position in the list, its cache entries (None if it failed), and why it failed."""

    place: int
    entries: CacheEntries | None
    error: str = ""


def _ended_tasks(ray: Any, tasks: Sequence[ClusterTask], settings: WorkerSettings) -> Iterator[list[EndedTask]]:
    """Yield lists of ended tasks, at least every `LOOK_SECONDS`. The first list is empty and comes at once."""
    run = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=int("GPU" in ray.cluster_resources()))(_run)
    waiting = {run.remote(task, settings): place for place, task in enumerate(tasks)}
    yield []
    while waiting:
        ended: list[EndedTask] = []
        for reference in ray.wait(list(waiting), timeout=LOOK_SECONDS)[0]:
            place = waiting.pop(reference)
            try:
                ended.append(EndedTask(place, ray.get(reference)))
            except ray.exceptions.RayError as error:
                ended.append(EndedTask(place, None, one_line(getattr(error, "cause", None) or error)))
        yield ended


def _run(task: ClusterTask, settings: WorkerSettings) -> CacheEntries:
    """Run a task on a worker. Errors name the worker's host."""
    try:
        if settings.plugins:
            load_plugins()
            plugins.check_additions(settings.plugins)
        if settings.sandboxed:
            sandbox.enable()
        with runtime.kept_for(settings.device_type), reading_mirror(settings.mirror):
            return task.run()
    except Exception as error:
        raise ExegesisError(f"worker {socket.gethostname()}: {one_line(error)}") from error


def run_tasks_apart(tasks: Sequence[ClusterTask], address: str) -> Generator[list[EndedTask], None, None]:
    """Run tasks on the cluster from a separate process. Yields lists of ended tasks, at least every `LOOK_SECONDS`.

    Close the iterator to cancel the remaining tasks. Errors: Ray is not installed, no cluster answers, or the head of
    the cluster is lost.
    """
    _check_reachable(address, RAY_ADDRESS)
    with _driver(tasks, address) as connection:
        looked, failed = time.monotonic(), 0
        while True:
            message: Any = ("ended", [])
            if connection.poll(LOOK_SECONDS):
                try:
                    message = connection.recv()
                except (EOFError, OSError):
                    raise _lost_cluster(address) from None
            if message[0] == "over":
                return
            if message[0] == "error":
                raise ExegesisError(message[1])
            if time.monotonic() - looked > PROBE_SECONDS:
                looked, failed = time.monotonic(), 0 if _answers(address) else failed + 1
            if failed >= PROBES:
                raise _lost_cluster(address)
            yield message[1]


def drive(connection: Connection) -> None:
    """Run the driver process of `run_tasks_apart`: receive the tasks, and send those that end."""
    tasks, address, settings = connection.recv()
    try:
        with _cluster(address) as ray:
            for ended in _ended_tasks(ray, tasks, settings):
                if connection.poll():  # the parent sends nothing more, so it has ended
                    return
                if ended:
                    connection.send(("ended", ended))
    except Exception as error:  # this process ends, so the message is all that is known of the reason
        text = str(error) if isinstance(error, ExegesisError) else f"{type(error).__name__}: {error}"
        connection.send(("error", text))
    else:
        connection.send(("over", []))


@contextlib.contextmanager
def _driver(tasks: Sequence[ClusterTask], address: str) -> Iterator[Connection]:
    """Start a process that drives the cluster. It is terminated after the block; Ray then drops the remaining tasks."""
    here, there = Pipe()
    variables = {name: value for name, value in os.environ.items() if name not in SECRETS}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", DRIVER, str(there.fileno())], pass_fds=[there.fileno()], env=variables,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    there.close()
    try:
        with contextlib.suppress(OSError):  # if it has ended already, `recv` reports it
            here.send((list(tasks), address, WorkerSettings.of_this_process()))
        yield here
    finally:
        here.close()
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(address: str) -> bool:
    """Whether the head of the cluster answers; always True for "auto", whose address only Ray knows."""
    try:
        _check_reachable(address)
    except ExegesisError:
        return False
    return True


def _lost_cluster(address: str) -> ExegesisError:
    return ExegesisError(
        f"The Ray cluster at {address} was lost. Start it again and resume the job: finished parts are stored."
    )


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    address = address or configured_address()
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


def _check_reachable(address: str | None, argument: str = "address") -> None:
    """Raise at once if nothing listens at the address; Ray itself would retry for minutes."""
    if address is None or address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise not_allowed(argument, "host:port of a Ray cluster", address, "Example: 10.0.0.1:6379.")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error, argument) from None


def _no_cluster(address: str | None, error: Exception, argument: str = "address") -> ExegesisError:
    reason = " ".join(str(error).split())[:200]
    where = f"no Ray cluster answers at {address or 'this machine'}"
    return ExegesisError(f"{argument}: {where} ({reason}). Start one: ray start --head.")


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
