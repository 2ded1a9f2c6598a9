"""Turns at a device among the threads of one process: first come, first served, and people before jobs.

Processes do not line up with each other: between them the operating system and the driver share the device.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

OVERTAKEN = 4
"""So many of those in front come before one in the background who waits: it is slowed down, never stopped."""
_LOOK_SECONDS = 0.1

_background: ContextVar[bool] = ContextVar("exegesis_background", default=False)


@contextlib.contextmanager
def in_background() -> Iterator[None]:
    """Who asks for a turn inside, however deep, lets those pass behind whom a person waits."""
    token = _background.set(True)
    try:
        yield
    finally:
        _background.reset(token)


def behind() -> bool:
    """Whether the caller works in the background."""
    return _background.get()


@dataclass(eq=False)
class _Place:
    """One who asked, in front or in the background."""

    thread: int
    behind: bool
    called: threading.Event = field(default_factory=threading.Event)


class Turns:
    """A fair lock with two lines. Use it as a context manager; it is not re-entrant."""

    def __init__(self) -> None:
        self._at: _Place | None = None
        self._front, self._behind = deque[_Place](), deque[_Place]()
        self._overtaken = 0
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait behind the one who has the turn."""
        with self._lock:
            return len(self._front) + len(self._behind)

    def place(self, thread: int | None = None) -> int | None:
        """How many are before `thread` (default: the caller): 0 has the turn, None is not in the line."""
        wanted = threading.get_ident() if thread is None else thread
        with self._lock:
            order = [place for place in (self._at, *self._front, *self._behind) if place]
            return next((n for n, place in enumerate(order) if place.thread == wanted), None)

    def take(self, check: Callable[[], None] | None = None) -> None:
        """Waits for the turn. `check` is called now and then while waiting; if it raises, the place is given up."""
        mine = _Place(threading.get_ident(), behind())
        with self._lock:
            (self._behind if mine.behind else self._front).append(mine)
            self._call_next()
        self._wait(mine, check)

    def lend(self, check: Callable[[], None] | None = None) -> float:
        """Who has the turn in the background lets those in front pass, and is then the first behind them.

        Returns the seconds that it was away. If `check` raises meanwhile, the turn is over.
        """
        started = time.perf_counter()
        with self._lock:
            at = self._at
            if at is None or not at.behind or not self._front:
                return 0.0
            mine = _Place(at.thread, behind=True)
            self._behind.appendleft(mine)
            self._at = None
            self._call_next()
        self._wait(mine, check)
        return time.perf_counter() - started

    def give(self) -> None:
        """Ends the caller's turn, if it has not ended while it was lent; the next one in line has it."""
        with self._lock:
            if self._at is not None and self._at.thread == threading.get_ident():
                self._at = None
                self._call_next()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *error: object) -> None:
        self.give()

    def _wait(self, mine: _Place, check: Callable[[], None] | None) -> None:
        try:
            while not mine.called.wait(_LOOK_SECONDS if check else None):
                if check:
                    check()
        except BaseException:
            self._leave(mine)
            raise

    def _leave(self, mine: _Place) -> None:
        with self._lock:
            if self._at is mine:
                self._at = None
            else:
                (self._behind if mine.behind else self._front).remove(mine)
            self._call_next()

    def _call_next(self) -> None:
        if self._at is None and (self._front or self._behind):
            self._at = self._next()
            self._at.called.set()

    def _next(self) -> _Place:
        if self._front and not (self._behind and self._overtaken >= OVERTAKEN):
            self._overtaken = self._overtaken + 1 if self._behind else 0
            return self._front.popleft()
        self._overtaken = 0
        return self._behind.popleft()
