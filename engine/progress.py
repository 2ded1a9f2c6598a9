"""Progress reports and cancellation of long-running work, independent of the user interface."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from engine.errors import Cancelled

Report = Callable[[int, int, str], None]
"""Called with (units done, units in all, label of the current work)."""


def silent(done: int, total: int, label: str) -> None:
    """A report that does nothing."""


@dataclass
class CancelToken:
    """A flag that another thread sets; the work checks it between units."""

    _event: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        self._event.set()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        """Raise `Cancelled` if the flag is set."""
        if self.cancelled:
            raise Cancelled("Stopped on request. Finished parts are kept and will not be computed again.")


_token: ContextVar[CancelToken | None] = ContextVar("exegesis_cancel_token", default=None)


@contextlib.contextmanager
def cancellable(token: CancelToken | None) -> Iterator[None]:
    """Let `token` cancel all work in the block; None keeps the outer token."""
    before = _token.set(token or _token.get())
    try:
        yield
    finally:
        _token.reset(before)


_report: ContextVar[Report] = ContextVar("exegesis_report", default=silent)


@contextlib.contextmanager
def reporting(report: Report | None) -> Iterator[None]:
    """Send the number of model evaluations done in the block to `report`; None keeps the outer one."""
    before = _report.set(report or _report.get())
    try:
        yield
    finally:
        _report.reset(before)


def report_here() -> Report:
    """Return the report of this thread's work, or a silent one."""
    return _report.get()


def tell(done: int, total: int, label: str) -> None:
    """Report progress of the work of this thread."""
    _report.get()(done, total, label)


def token_here() -> CancelToken:
    """Return the cancel token of this thread's work, or one that is never set."""
    return _token.get() or CancelToken()


def check_cancelled() -> None:
    """Raise `Cancelled` if the work of this thread is cancelled."""
    token = _token.get()
    if token is not None:
        token.check()
