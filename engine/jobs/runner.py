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
from engine import access
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
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 30.0
_log = logging.getLogger("exegesis.jobs")
QueueName = tuple[int, Path, str]


def ledger() -> Ledger:
    """The list of jobs in the home folder, one a process."""
    name = (home() / "jobs.db", os.getpid())
    with _lock:
        if name not in _ledgers:
            _ledgers[name] = Ledger(name[0], lambda id: bool(_tokens(name[0], id)))
        return _ledgers[name]


def submit(kind: str, spec: Mapping[str, Any]) -> Job:
    """Puts a job at the end of this process's queue for the device and returns at once.

    Errors: `UsageError` for an unknown kind, or a spec that is not plain JSON or that the kind cannot work with.
    """
    job = _add(kind, spec, device_queue())
    _wake(job.queue)
    return job


def create(kind: str, spec: Mapping[str, Any]) -> Job:
    """A job that waits for `run_now`, outside the queue: for the command line. Errors as for `submit`."""
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
    """Queues an interrupted, failed or cancelled job again; what is finished is found, not computed.

    Errors: the visitor may not name what the job names.
    """
    job = get(id)
    kind_of(job.kind)
    access.check_spec(job.spec)
    if job.state in _CAN_RESUME and ledger().queue_again(id, [job.state], device_queue(), me()):
        _wake(device_queue())
    return get(id)


def cancel(id: int) -> Job:
    """Stops a job of any process: a waiting one at once, a running one before its next pass through the model.

    What does not run a model is stopped after the unit at hand. Another process notices within a second. Every unit
    that was stored is kept. Units that are computed together are stored when the last of them is ready, so up to
    `work.AT_ONCE` that were under way are computed again on resume (an ensemble keeps the members it had finished).
    """
    ours = ledger()
    get(id)  # one that is not there is an error; one that nobody works on any more is no longer running
    if ours.move(id, ["queued", "interrupted"], state="cancelled", finished=time.time(), error="", label=""):
        return get(id)
    if ours.move(id, ["running"], cancel_requested=True):
        for token in _tokens(ours.path, id):
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
    found = kind_of(kind)
    access.check_spec(plain)
    found.check(plain)
    return ledger().add(kind, found.title(plain), plain, queue, me())


def _wake(queue: str) -> None:
    """Makes sure that a thread of this process works on the queue."""
    ours = ledger()
    name = (os.getpid(), ours.path, queue)
    with _lock:
        _calls[name] = _calls.get(name, 0) + 1
        if name in _workers and _workers[name].is_alive():
            return
        _workers[name] = threading.Thread(target=_work, args=(ours, name), name=f"jobs: {queue}", daemon=True)
        _workers[name].start()


def _work(ours: Ledger, name: QueueName) -> None:
    """Takes the jobs of a queue one by one, first come first served; ends when none waits."""
    seen = -1
    while not _finished(name, seen):
        seen = _calls[name]
        pause = _PAUSE_SECONDS
        while not _emptied(ours, name[2]):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _emptied(ours: Ledger, queue: str) -> bool:
    """Whether the queue was worked off; not if the list of jobs could not be used, say because the disk is full."""
    try:
        while (job := ours.next_of(me(), queue)) is not None:
            _start(ours, job, silent, CancelToken())
    except Exception:
        _log.exception("the queue of %s pauses", queue)
        return False
    return True


def _finished(name: QueueName, seen: int) -> bool:
    """Whether nobody has called since `seen` calls; then the worker signs off, in the same step."""
    with _lock:
        if _calls[name] != seen:
            return False
        del _workers[name]
        return True


def _start(ours: Ledger, job: Job, report: Report, token: CancelToken) -> None:
    """Works on the job unless somebody else does. Its token is known before it stands as running and until it ends."""
    name = (ours.path, os.getpid(), job.id, threading.get_ident())
    _running[name] = token
    try:
        if ours.start(job.id, me()):
            carry_out(ours, job, report, token)
    finally:
        _running.pop(name, None)  # a child forked meanwhile has forgotten it


def _tokens(path: Path, id: int) -> list[CancelToken]:
    """Those of the threads of this process that work on the job: one, but for a moment when one follows another."""
    return [token for name, token in list(_running.items()) if name[:3] == (path, os.getpid(), id)]


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
_running: dict[tuple[Path, int, int, int], CancelToken] = {}
os.register_at_fork(after_in_child=_forget_parent)
