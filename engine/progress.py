"""How long work reports its progress and is told to stop, without knowing who listens."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from engine.errors import Cancelled

Report = Callable[[int, int, str], None]
"""Called with (units done, units in all, what is being done)."""


def silent(done: int, total: int, label: str) -> None:
    """The report of somebody who does not listen."""


@dataclass
class CancelToken:
    """A flag that another thread raises; the work looks at it between units."""

    _event: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        self._event.set()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        """Raises `Cancelled` once the flag is up."""
        if self.cancelled:
            raise Cancelled("Stopped on request. Finished parts are kept and will not be computed again.")


_token: ContextVar[CancelToken | None] = ContextVar("exegesis_cancel_token", default=None)


@contextlib.contextmanager
def cancellable(token: CancelToken | None) -> Iterator[None]:
    """Everything that runs inside, however deep, can be stopped by `token` (None: as outside)."""
    before = _token.set(token or _token.get())
    try:
        yield
    finally:
        _token.reset(before)


_report: ContextVar[Report] = ContextVar("exegesis_report", default=silent)


@contextlib.contextmanager
def reporting(report: Report | None) -> Iterator[None]:
    """What runs inside, however deep, tells `report` (None: as outside) how many model evaluations are done."""
    before = _report.set(report or _report.get())
    try:
        yield
    finally:
        _report.reset(before)


def tell(done: int, total: int, label: str) -> None:
    """Tells whoever listens to the work of this thread."""
    _report.get()(done, total, label)


def token_here() -> CancelToken:
    """The token by which the work of this thread is stopped; where there is none, one that nobody raises."""
    return _token.get() or CancelToken()


def check_cancelled() -> None:
    """Raises `Cancelled` if the work of this thread is to stop."""
    token = _token.get()
    if token is not None:
        token.check()
