"""Jobs: submitted, worked on one after the other, cancelled, resumed, listed, from any session or process."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cache import canonical
from engine.errors import UsageError
from engine.home import home
from engine.jobs.kinds import kind_of
from engine.jobs.ledger import Failure, Job, Ledger
from engine.jobs.owner import me
from engine.jobs.work import carry_out
from engine.progress import CancelToken, Report, silent

FOREGROUND = "foreground"
_CAN_RESUME = ("interrupted", "failed", "cancelled")
_LOOK_SECONDS = 0.05
_log = logging.getLogger("exegesis.jobs")
QueueName = tuple[int, Path, str]


def ledger() -> Ledger:
    """The list of jobs in the home folder, one a process."""
    name = (home() / "jobs.db", os.getpid())
    with _lock:
        if name not in _ledgers:
            _ledgers[name] = Ledger(name[0])
        return _ledgers[name]


def submit(kind: str, spec: Mapping[str, Any]) -> Job:
    """Puts a job at the end of this process's queue for the device and returns at once.

    Errors: `UsageError` for an unknown kind or a spec that is not plain JSON.
    """
    job = _add(kind, spec, device_queue())
    _wake(job.queue)
    return job


def create(kind: str, spec: Mapping[str, Any]) -> Job:
    """A job that waits for `run_now`, outside the queue: for the command line."""
    return _add(kind, spec, FOREGROUND)


def run_now(job: Job, report: Report = silent, cancel: CancelToken | None = None) -> Job:
    """Works on a job here and now, in the foreground, and returns it as it ended; also resumes one that stopped."""
    ours = ledger()
    job = get(job.id)
    if job.over and job.state in _CAN_RESUME:
        ours.queue_again(job.id, [job.state], FOREGROUND, me())
    _start(ours, get(job.id), report, cancel or CancelToken())
    return get(job.id)


def resume(id: int) -> Job:
    """Queues an interrupted, failed or cancelled job again; what is finished is found, not computed."""
    job = get(id)
    kind_of(job.kind)
    if job.state in _CAN_RESUME and ledger().queue_again(id, [job.state], device_queue(), me()):
        _wake(device_queue())
    return get(id)


def cancel(id: int) -> Job:
    """Stops a job of any process within one unit; a waiting one at once. Finished units are kept."""
    ours, job = ledger(), get(id)
    if ours.move(id, ["queued", "interrupted"], state="cancelled", finished=time.time(), error="", label=""):
        return get(id)
    if ours.move(id, ["running"], cancel_requested=True):
        token = _running.get((os.getpid(), job.id))
        if token is not None:
            token.cancel()
    return get(id)


def get(id: int) -> Job:
    """The job as it stands. `ExegesisError` if there is none of this number."""
    return ledger().get(id)


def list_jobs() -> list[Job]:
    """All jobs of all processes, the newest first."""
    return ledger().all()


def failures(id: int) -> list[Failure]:
    """Which units of the job failed in its latest run, and why."""
    return ledger().failures(id)


def place(job: Job) -> int:
    """How many jobs come before this one: 0 is running or next."""
    return 0 if job.over or job.state == "running" else ledger().before(job)


def forget(id: int) -> None:
    """Takes a job that is over off the list; its results stay in the cache."""
    if not ledger().forget(id):
        job = get(id)
        raise UsageError(f"job {id}: is {job.state}; cancel it first, then take it off the list.")


def wait(id: int, timeout: float | None = None) -> Job:
    """The job once it is over, or as it stands after `timeout` seconds."""
    end = None if timeout is None else time.monotonic() + timeout
    while not (job := get(id)).over and (end is None or time.monotonic() < end):
        time.sleep(_LOOK_SECONDS)
    return job


def device_queue() -> str:
    """One queue a device: its name as `EXEGESIS_DEVICE` gives it."""
    return os.environ.get("EXEGESIS_DEVICE") or "default device"


def _add(kind: str, spec: Mapping[str, Any], queue: str) -> Job:
    try:
        plain = json.loads(canonical(spec))
    except (TypeError, ValueError) as error:
        raise UsageError(f"spec of a {kind} job: {error}.") from None
    return ledger().add(kind, kind_of(kind).title(plain), plain, queue, me())


def _wake(queue: str) -> None:
    """Makes sure that a thread of this process works on the queue."""
    ours = ledger()
    name = (os.getpid(), ours.path, queue)
    with _lock:
        _calls[name] = _calls.get(name, 0) + 1
        if name in _workers:
            return
        _workers[name] = threading.Thread(target=_work, args=(ours, name), name=f"jobs: {queue}", daemon=True)
        _workers[name].start()


def _work(ours: Ledger, name: QueueName) -> None:
    """Takes the jobs of a queue one by one, first come first served; ends when none waits."""
    seen = -1
    while not _finished(name, seen):
        seen = _calls[name]
        try:
            while (job := ours.next_of(me(), name[2])) is not None:
                _start(ours, job, silent, CancelToken())
        except Exception:
            _log.exception("the queue of %s stopped", name[2])


def _finished(name: QueueName, seen: int) -> bool:
    """Whether nobody has called since `seen` calls; then the worker signs off, in the same step."""
    with _lock:
        if _calls[name] != seen:
            return False
        del _workers[name]
        return True


def _start(ours: Ledger, job: Job, report: Report, token: CancelToken) -> None:
    if not ours.start(job.id, me()):
        return
    _running[os.getpid(), job.id] = token
    try:
        carry_out(ours, job, report, token)
    finally:
        _running.pop((os.getpid(), job.id), None)


def _forget_parent() -> None:
    """A forked process has its parent's list, but none of its threads."""
    global _lock
    _lock = threading.Lock()
    _workers.clear()
    _running.clear()


_lock = threading.Lock()
_ledgers: dict[tuple[Path, int], Ledger] = {}
_workers: dict[QueueName, threading.Thread] = {}
_calls: dict[QueueName, int] = {}
_running: dict[tuple[int, int], CancelToken] = {}
os.register_at_fork(after_in_child=_forget_parent)
