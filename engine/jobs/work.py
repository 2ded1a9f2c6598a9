"""One run of one job: its units in order, each from the cache or computed, with progress, time left and cancel."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator

from cache import Store, single_flight
from engine.device_queue import in_background
from engine.errors import Cancelled, ExegesisError, panics_told
from engine.jobs.kinds import Batch, Unit, kind_of
from engine.jobs.ledger import Failure, Job, Ledger
from engine.jobs.meter import Meter
from engine.jobs.owner import HEARTBEAT_SECONDS
from engine.progress import CancelToken, Report, cancellable, reporting
from engine.store import result_store

WRITE_SECONDS = LOOK_SECONDS = 0.25
AT_ONCE = 16
"""Units given to a batch together: what is lost at most when it is cancelled."""
END_PAUSES = (0.5, 2.0, 5.0)
"""Seconds between the tries to write down how a job ended."""
_log = logging.getLogger("exegesis.jobs")


def carry_out(ledger: Ledger, job: Job, report: Report, cancel: CancelToken) -> None:
    """Works on a job that this process has marked as running, until it is over; says how in the ledger."""
    outcome: dict[str, object] = {"state": "interrupted", "error": "It was stopped from outside. Resume it."}
    try:
        with _pulse(ledger, job.id, cancel):
            outcome = _outcome(_Run(ledger, job, report, cancel))
    finally:
        _write_end(ledger, job.id, finished=time.time(), seconds_left=None, label="", **outcome)


def _write_end(ledger: Ledger, id: int, **values: object) -> None:
    """Tries again where the list is locked or the disk is full: nobody else can say how the job ended."""
    for pause in END_PAUSES:
        try:
            ledger.move(id, ["running"], **values)
            return
        except ExegesisError as error:
            _log.warning("the end of job %s is not written yet: %s", id, error)
            time.sleep(pause)
    ledger.move(id, ["running"], **values)


def _outcome(run: _Run) -> dict[str, object]:
    try:
        with cancellable(run.cancel), in_background():
            run.work()
    except Cancelled:
        return {"state": "cancelled", **run.counts()}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a library may end with what is no `Exception`, and the queue goes on
        _log.exception("job %s failed", run.job.id)
        return {"state": "failed", "error": one_line(error), **run.counts()}
    state = "failed" if run.failed else "done"
    return {"state": state, "error": run.verdict(), "note": run.store.status, **run.counts()}


class _Run:
    """What is known while the units of a job are worked on."""

    def __init__(self, ledger: Ledger, job: Job, report: Report, cancel: CancelToken) -> None:
        self.ledger, self.job, self.report, self.cancel = ledger, job, report, cancel
        self.store = result_store()  # one for the whole run, wherever the home moves meanwhile
        self.total = self.done = self.computed = self.failed = 0
        self.meter = Meter()
        self.first_error = ""
        self._written = 0.0

    def work(self) -> None:
        self.cancel.check()
        units = list({unit.key: unit for unit in kind_of(self.job.kind).plan(self.job.spec)}.values())
        self.total = len(units)
        missing = self._missing(units)
        self.meter = Meter(missing)
        self.done = self.total - len(missing)
        for group in _groups(missing):
            for unit in self._one_by_one(group):
                self.cancel.check()
                self._do(unit)
        self._tell(at_once=True)

    def counts(self, under_way: int = 0) -> dict[str, object]:
        done, computed = self.done + under_way, self.computed + under_way
        return {"total": self.total, "done": done, "computed": computed, "failed": self.failed}

    def verdict(self) -> str:
        """Which share failed, and of what; empty when nothing did."""
        if not self.failed:
            return ""
        share = "All" if self.failed == self.total else f"{self.failed} of"
        return f"{share} {self.total} units failed. The first: {self.first_error}"

    def _missing(self, units: list[Unit]) -> list[Unit]:
        missing = []
        for unit in units:
            self.cancel.check()
            if not self.store.contains(unit.key):
                missing.append(unit)
        return missing

    def _one_by_one(self, group: list[Unit]) -> list[Unit]:
        """Which units of the group still have to be computed, after all of them were tried together."""
        if group[0].batch is None or len(group) == 1:
            return group
        self.cancel.check()
        left = [unit for unit in group if not self.store.contains(unit.key)]
        self.done += len(group) - len(left)
        self.meter.found(unit for unit in group if unit not in left)
        return left if len(left) < 2 or not self._do_together(left, group[0].batch) else []

    def _do_together(self, group: list[Unit], batch: Batch) -> bool:
        self._begin(group)
        try:
            with reporting(self._hear), panics_told("a library"):
                batch(group)
        except Cancelled:
            raise
        except Exception:
            _log.info("job %s: %d units failed together", self.job.id, len(group), exc_info=True)
            self.meter.given_up()
            return False
        self._end(group, computed=True)
        return True

    def _do(self, unit: Unit) -> None:
        self._begin([unit])
        computed = False
        try:
            with reporting(self._hear), panics_told("a library"):
                computed = _compute(self.store, unit, self.cancel)
        except Cancelled:
            raise
        except Exception as error:
            self._note_failure(unit, error)
        self._end([unit], computed)

    def _begin(self, units: list[Unit]) -> None:
        self.meter.begin(units)
        self._tell()

    def _hear(self, done: int, total: int, label: str) -> None:
        self.meter.hear(done, total)
        self._tell()

    def _end(self, units: list[Unit], computed: bool) -> None:
        self.meter.end(computed)
        self.computed += len(units) if computed else 0
        self.done += len(units)

    def _note_failure(self, unit: Unit, error: Exception) -> None:
        if not isinstance(error, ExegesisError):
            _log.exception("job %s: unit %r failed", self.job.id, unit.label)
        self.failed += 1
        self.first_error = self.first_error or f"{unit.label}: {one_line(error)}"
        with contextlib.suppress(ExegesisError):
            self.ledger.fail(self.job.id, Failure(unit.key, unit.label, one_line(error)))

    def _tell(self, at_once: bool = False) -> None:
        under_way, label = self.meter.under_way(), self.meter.words()
        self.report(self.done + under_way, self.total, label)
        now = time.monotonic()
        if at_once or now - self._written > WRITE_SECONDS:
            self._written = now
            told = {"label": label, "seconds_left": self.meter.seconds_left(), **self.counts(under_way)}
            with contextlib.suppress(ExegesisError):  # the list may be unreadable for a while; the work goes on
                self.ledger.move(self.job.id, ["running"], **told)


def _groups(units: list[Unit]) -> Iterator[list[Unit]]:
    """Neighbours with the same batch, a few at a time; a unit without one is a group of its own."""
    for _, neighbours in itertools.groupby(units, key=lambda unit: unit.batch or unit.key):
        same = list(neighbours)
        for start in range(0, len(same), AT_ONCE):
            yield same[start : start + AT_ONCE]


def _compute(store: Store, unit: Unit, cancel: CancelToken) -> bool:
    """Whether the unit had to be computed here, or somebody else had made it in the meantime."""
    if not unit.stores_itself:
        return not single_flight(store, unit.key, unit.compute, alone=(Cancelled,), check=cancel.check)[2]
    if store.contains(unit.key):
        return False
    unit.compute()
    return True


@contextlib.contextmanager
def _pulse(ledger: Ledger, id: int, cancel: CancelToken) -> Iterator[None]:
    """Says that this process lives and listens for a cancellation from another one."""
    over = threading.Event()
    thread = threading.Thread(target=_beat, args=(ledger, id, cancel, over.wait), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _beat(ledger: Ledger, id: int, cancel: CancelToken, wait: Callable[[float], bool]) -> None:
    beaten = time.monotonic()
    while not wait(LOOK_SECONDS):
        with contextlib.suppress(ExegesisError):
            if ledger.asked_to_cancel(id):
                cancel.cancel()
            if time.monotonic() - beaten > HEARTBEAT_SECONDS:
                beaten = time.monotonic()
                ledger.beat(id)


def one_line(error: BaseException) -> str:
    """An error as one line for the list of jobs."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ExegesisError) else f"{type(error).__name__}: {text}".rstrip(": ")
