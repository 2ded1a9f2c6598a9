"""Submit, run, cancel, resume and list jobs from any session or process.

A thread runs the jobs of a device queue one after the other. A run computes the units of a job that are not cached, in
order, with progress, time left and cancellation.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cache import Store, canonical, single_flight
from engine import access
from engine.errors import Cancelled, ExegesisError, UsageError, one_line, panics_told
from engine.home import home
from engine.jobs.cluster import configured_address, failure_note, run_tasks_apart, store_entries
from engine.jobs.cluster_tasks import cluster_tasks
from engine.jobs.kinds import Batch, ClusterEstimate, RunEstimate, WorkUnit, kind_of, unit_groups
from engine.jobs.table import HEARTBEAT_SECONDS, Job, JobTable, UnitFailure, this_process
from engine.progress import CancelToken, Report, cancellable, reporting, silent
from engine.runtime import in_background
from engine.store import result_store
from engine.telemetry import log_event

FOREGROUND = "foreground"
RESUMABLE = ("interrupted", "failed", "cancelled")
WAIT_SECONDS = 0.05
PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 30.0
WRITE_SECONDS = POLL_SECONDS = 0.25
END_PAUSES = (0.5, 2.0, 5.0)
"""Seconds between attempts to write the end of a job."""
_log = logging.getLogger("exegesis.jobs")
QueueName = tuple[int, Path, str]


def job_table() -> JobTable:
    """The table of jobs in the home folder, one per process."""
    name = (home() / "jobs.db", os.getpid())
    with _lock:
        if name not in _tables:
            _tables[name] = JobTable(name[0], lambda id: bool(_tokens(name[0], id)))
        return _tables[name]


def submit(kind: str, spec: Mapping[str, Any]) -> Job:
    """Add a job to this process's queue for the device, and return immediately.

    Raises `UsageError` for an unknown kind, or a specification that is not plain JSON or invalid for the kind.
    """
    job = _add(kind, spec, device_queue())
    _wake(job.queue)
    return job


def create(kind: str, spec: Mapping[str, Any]) -> Job:
    """Add a job for `run_now`, outside the queue (for the command line). Raises like `submit`."""
    return _add(kind, spec, FOREGROUND)


def run_now(job: Job, report: Report = silent, cancel: CancelToken | None = None) -> Job:
    """Run or resume a job in the foreground, and return its final state."""
    table = job_table()
    job = get(job.id)
    if job.is_over and job.state in RESUMABLE:
        table.queue_again(job.id, [job.state], FOREGROUND, this_process())
    _start(table, get(job.id), report, cancel or CancelToken())
    return get(job.id)


def resume(id: int) -> Job:
    """Queue an interrupted, failed or cancelled job again. Units that are already cached are not computed again.

    Raises if the visitor has no access to the models or data of the job.
    """
    job = get(id)
    kind_of(job.kind)
    access.check_spec(job.spec)
    if job.state in RESUMABLE and job_table().queue_again(id, [job.state], device_queue(), this_process()):
        _wake(device_queue())
    return get(id)


def cancel(id: int) -> Job:
    """Cancel a job of any process: a waiting one at once, a running one before its next pass through the model.

    Work that does not run a model stops after the current unit. Another process notices within a second. Stored units
    are kept. Units that are computed together are stored when all are ready, so up to `engine.jobs.kinds.BATCH_UNITS`
    running units are computed again on resume (an ensemble keeps its finished members). The same holds for running
    tasks on a cluster.
    """
    table = job_table()
    get(id)  # raises if there is no such job; marks an abandoned one as interrupted
    if table.move(id, ["queued", "interrupted"], state="cancelled", finished=time.time(), error="", label=""):
        return get(id)
    if table.move(id, ["running"], cancel_requested=True):
        for token in _tokens(table.path, id):
            token.cancel()
    return get(id)


def get(id: int) -> Job:
    """The current state of a job. Raises `ExegesisError` if there is no such job."""
    return job_table().get(id)


def list_jobs() -> list[Job]:
    """All jobs of all processes, newest first."""
    return job_table().all()


def failures(id: int) -> list[UnitFailure]:
    """The units that failed in the latest run, with the reasons."""
    return job_table().failures(id)


def count_ahead(job: Job) -> int:
    """Number of jobs in the queue before this one; 0 if it is running or has ended."""
    return 0 if job.is_over or job.state == "running" else job_table().count_ahead(job)


def forget(id: int) -> None:
    """Remove a finished job from the list. Its results stay in the cache."""
    if not job_table().forget(id):
        job = get(id)
        raise UsageError(f"job {id}: is {job.state}. Cancel it before removing it from the list.")


def wait(id: int, timeout: float | None = None) -> Job:
    """Wait until the job ends or `timeout` seconds have passed, and return it."""
    end = None if timeout is None else time.monotonic() + timeout
    while not (job := get(id)).is_over and (end is None or time.monotonic() < end):
        time.sleep(WAIT_SECONDS)
    return job


def device_queue() -> str:
    """Name of the queue of this device, from `EXEGESIS_DEVICE`."""
    return os.environ.get("EXEGESIS_DEVICE") or "default device"


def _add(kind: str, spec: Mapping[str, Any], queue: str) -> Job:
    try:
        plain = json.loads(canonical(spec))
    except (TypeError, ValueError) as error:
        raise UsageError(f"spec: must be plain JSON for a job of kind {kind} ({error}).") from None
    job_kind = kind_of(kind)
    access.check_spec(plain)
    job_kind.check(plain)
    return job_table().add(kind, job_kind.title(plain), plain, queue, this_process())


def _wake(queue: str) -> None:
    """Make sure that a thread of this process runs the queue."""
    table = job_table()
    name = (os.getpid(), table.path, queue)
    with _lock:
        _calls[name] = _calls.get(name, 0) + 1
        if name in _workers and _workers[name].is_alive():
            return
        _workers[name] = threading.Thread(target=_work, args=(table, name), name=f"jobs: {queue}", daemon=True)
        _workers[name].start()


def _work(table: JobTable, name: QueueName) -> None:
    """Run the jobs of a queue in order until none is left."""
    calls = -1
    while not _sign_off(name, calls):
        calls = _calls[name]
        pause = PAUSE_SECONDS
        while not _empty(table, name[2]):
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)


def _empty(table: JobTable, queue: str) -> bool:
    """Run all jobs of the queue. Returns False if the table of jobs cannot be used, e.g. because the disk is full."""
    try:
        while (job := table.next_queued(this_process(), queue)) is not None:
            _start(table, job, silent, CancelToken())
    except Exception:
        _log.exception("the queue of %s pauses", queue)
        return False
    return True


def _sign_off(name: QueueName, calls: int) -> bool:
    """End the worker of a queue atomically, unless it was woken since it read `calls`."""
    with _lock:
        if _calls[name] != calls:
            return False
        del _workers[name]
        return True


def _start(table: JobTable, job: Job, report: Report, token: CancelToken) -> None:
    """Run the job unless another process does. Its token is registered before it runs, until it ends."""
    name = (table.path, os.getpid(), job.id, threading.get_ident())
    _running[name] = token
    try:
        if table.start(job.id, this_process()):
            run_job(table, job, report, token)
    finally:
        _running.pop(name, None)  # a forked child has no tokens


def _tokens(path: Path, id: int) -> list[CancelToken]:
    """Tokens of the threads of this process that run the job, usually one."""
    return [token for name, token in list(_running.items()) if name[:3] == (path, os.getpid(), id)]


def run_job(table: JobTable, job: Job, report: Report, cancel: CancelToken) -> None:
    """Run a job that this process has marked as running, and write its end to the table."""
    outcome: dict[str, object] = {"state": "interrupted", "error": "The process was interrupted. Resume the job."}
    begun = time.monotonic()
    log_event(_log, "job started", job=job.id, kind=job.kind)
    try:
        with _heartbeats(table, job.id, cancel):
            outcome = _outcome(_Run(table, job, report, cancel))
    finally:
        _log_end(job, outcome, time.monotonic() - begun)
        _write_end(table, job.id, finished=time.time(), seconds_left=None, label="", **outcome)


def _log_end(job: Job, outcome: Mapping[str, object], seconds: float) -> None:
    units = {name: int(str(outcome.get(name, 0))) for name in ("total", "done", "computed", "failed")}
    log_event(
        _log, "job ended", job=job.id, kind=job.kind, state=str(outcome["state"]), seconds=round(seconds, 3), **units
    )


def _write_end(table: JobTable, id: int, **values: object) -> None:
    """Write the end of the job; retry if the table is locked or the disk is full."""
    for pause in END_PAUSES:
        try:
            table.move(id, ["running"], **values)
            return
        except ExegesisError as error:
            _log.warning("the end of job %s is not written yet: %s", id, error)
            time.sleep(pause)
    table.move(id, ["running"], **values)


def _outcome(run: _Run) -> dict[str, object]:
    try:
        with cancellable(run.cancel), in_background():
            run.work()
    except Cancelled:
        return {"state": "cancelled", **run.counts()}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a library may raise a BaseException; the queue continues
        _log.exception("job %s failed", run.job.id)
        return {"state": "failed", "error": one_line(error), **run.counts()}
    state = "failed" if run.failed else "done"
    return {"state": state, "error": run.failure_summary(), "note": run.note(), **run.counts()}


class _Run:
    """Counts, estimate and first error of a job while its units are computed."""

    def __init__(self, table: JobTable, job: Job, report: Report, cancel: CancelToken) -> None:
        self.table, self.job, self.report, self.cancel = table, job, report, cancel
        self.store = result_store()  # one for the whole run, even if the home changes
        self.total = self.done = self.computed = self.failed = 0
        self.estimate = RunEstimate()
        self.on_cluster: ClusterEstimate | None = None
        self.first_error = self.lost_error = ""
        self.lost = 0
        self._written = 0.0

    def work(self) -> None:
        self.cancel.check()
        units = list({unit.key: unit for unit in kind_of(self.job.kind).plan(self.job.spec)}.values())
        self.total = len(units)
        missing = self._missing(units)
        self.done = self.total - len(missing)
        if missing and (address := configured_address()):
            missing = self._compute_on_cluster(missing, address)
        self.estimate = RunEstimate(missing)
        for group in unit_groups(missing):
            for unit in self._compute_together(group):
                self.cancel.check()
                self._compute_alone(unit)
        self._report(at_once=True)

    def counts(self, under_way: int = 0) -> dict[str, object]:
        done, computed = self.done + under_way, self.computed + under_way
        return {"total": self.total, "done": done, "computed": computed, "failed": self.failed}

    def failure_summary(self) -> str:
        """Number of failed units and the first reason; empty if none failed."""
        if not self.failed:
            return ""
        share = "All" if self.failed == self.total else f"{self.failed} of"
        return f"{share} {self.total} units failed. The first: {self.first_error}"

    def _missing(self, units: list[WorkUnit]) -> list[WorkUnit]:
        missing = []
        for unit in units:
            self.cancel.check()
            if not self.store.contains(unit.key):
                missing.append(unit)
        return missing

    def _compute_on_cluster(self, missing: list[WorkUnit], address: str) -> list[WorkUnit]:
        """Run the units on a cluster. Returns those that this machine must compute.

        These are the units that cannot run on a cluster, and those that failed there, so that the reason is recorded.
        Results are stored at once: a lost node costs only its running tasks, which Ray repeats elsewhere.
        """
        tasks = cluster_tasks(kind_of(self.job.kind), self.job.spec, missing)
        if not tasks:
            return missing
        log_event(_log, "job on the cluster", job=self.job.id, kind=self.job.kind, tasks=len(tasks))
        estimate = self.on_cluster = ClusterEstimate([task.size for task in tasks])
        left = {unit.key: unit for unit in missing}
        with contextlib.closing(run_tasks_apart(tasks, address)) as rounds:
            for ended in rounds:
                self.cancel.check()
                for place, entries, error in ended:
                    estimate.end(tasks[place].size)
                    if entries is None:
                        self._count_lost(tasks[place].size, error)
                    else:
                        store_entries(tasks[place], entries)
                    stored = [key for key in entries or () if left.pop(key, None) is not None]
                    self.done, self.computed = self.done + len(stored), self.computed + len(stored)
                self._report()
        self.on_cluster = None
        return list(left.values())

    def _count_lost(self, units: int, error: str) -> None:
        """Count units that failed on the cluster. The first reason is logged and remembered."""
        if not self.lost:
            self.lost_error = error
            log_event(_log, "task failed on the cluster", logging.WARNING, job=self.job.id, error=error)
        self.lost += units

    def note(self) -> str:
        """A note for the list of jobs: problems of the cache, or units that failed on the cluster."""
        failed = failure_note(self.lost, "unit", self.lost_error) if self.lost else ""
        return " ".join(filter(None, [self.store.status, failed]))

    def _compute_together(self, group: list[WorkUnit]) -> list[WorkUnit]:
        """Pass the group to its batch. Returns the units that must be computed one by one."""
        if group[0].batch is None or len(group) == 1:
            return group
        self.cancel.check()
        left = [unit for unit in group if not self.store.contains(unit.key)]
        self.done += len(group) - len(left)
        self.estimate.skip(unit for unit in group if unit not in left)
        return left if len(left) < 2 or not self._run_batch(left, group[0].batch) else []

    def _run_batch(self, group: list[WorkUnit], batch: Batch) -> bool:
        self._begin(group)
        try:
            with reporting(self._note_progress), panics_told("a library"):
                batch(group)
        except Cancelled:
            raise
        except Exception:
            _log.info("job %s: %d units failed together", self.job.id, len(group), exc_info=True)
            self.estimate.give_up()
            return False
        self._end(group, computed=True)
        return True

    def _compute_alone(self, unit: WorkUnit) -> None:
        self._begin([unit])
        computed = False
        try:
            with reporting(self._note_progress), panics_told("a library"):
                computed = _compute(self.store, unit, self.cancel)
        except Cancelled:
            raise
        except Exception as error:
            self._note_failure(unit, error)
        self._end([unit], computed)

    def _begin(self, units: list[WorkUnit]) -> None:
        self.estimate.begin(units)
        self._report()

    def _note_progress(self, done: int, total: int, label: str) -> None:
        self.estimate.report(done, total)
        self._report()

    def _end(self, units: list[WorkUnit], computed: bool) -> None:
        self.estimate.end(computed)
        self.computed += len(units) if computed else 0
        self.done += len(units)

    def _note_failure(self, unit: WorkUnit, error: Exception) -> None:
        if not isinstance(error, ExegesisError):
            _log.exception("job %s: unit %r failed", self.job.id, unit.label)
        self.failed += 1
        self.first_error = self.first_error or f"{unit.label}: {one_line(error)}"
        with contextlib.suppress(ExegesisError):
            self.table.fail(self.job.id, UnitFailure(unit.key, unit.label, one_line(error)))

    def _report(self, at_once: bool = False) -> None:
        estimate = self.on_cluster or self.estimate
        under_way, label = estimate.units_under_way(), estimate.label()
        self.report(self.done + under_way, self.total, label)
        now = time.monotonic()
        if at_once or now - self._written > WRITE_SECONDS:
            self._written = now
            values = {"label": label, "seconds_left": estimate.seconds_left(), **self.counts(under_way)}
            with contextlib.suppress(ExegesisError):  # the table may be locked for a while
                self.table.move(self.job.id, ["running"], **values)


def _compute(store: Store, unit: WorkUnit, cancel: CancelToken) -> bool:
    """Compute a unit. Returns False if another process computed it in the meantime."""
    if not unit.stores_itself:
        return not single_flight(store, unit.key, unit.compute, alone=(Cancelled,), check=cancel.check)[2]
    if store.contains(unit.key):
        return False
    unit.compute()
    return True


@contextlib.contextmanager
def _heartbeats(table: JobTable, id: int, cancel: CancelToken) -> Iterator[None]:
    """Send heartbeats and poll for a cancellation by another process."""
    over = threading.Event()
    thread = threading.Thread(target=_beat, args=(table, id, cancel, over.wait), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _beat(table: JobTable, id: int, cancel: CancelToken, wait: Callable[[float], bool]) -> None:
    beaten = time.monotonic()
    while not wait(POLL_SECONDS):
        with contextlib.suppress(ExegesisError):
            if table.cancel_requested(id):
                cancel.cancel()
            if time.monotonic() - beaten > HEARTBEAT_SECONDS:
                beaten = time.monotonic()
                table.beat(id)


def _forget_parent() -> None:
    """Clear the registries in a forked process, which has none of the parent's threads."""
    global _lock
    _lock = threading.Lock()
    _workers.clear()
    _running.clear()


_lock = threading.Lock()
_tables: dict[tuple[Path, int], JobTable] = {}
_workers: dict[QueueName, threading.Thread] = {}
_calls: dict[QueueName, int] = {}
_running: dict[tuple[Path, int, int, int], CancelToken] = {}
os.register_at_fork(after_in_child=_forget_parent)
