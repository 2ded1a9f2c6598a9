"""What sessions wait for is computed in threads of its own: once for all who ask, and no longer than somebody waits."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from engine.progress import CancelToken, reporting
from engine.runtime import turns

T = TypeVar("T")
Tick = Callable[[str], None]
"""Called now and then with how far the work is. What it raises ends its caller's wait, not the work of others."""

GRACE_SECONDS = 3.0
"""A page that is drawn again asks again sooner than this, and loses nothing."""
LOOK_SECONDS = 0.2


class Watched(CancelToken):
    """Goes up by itself, and for good, once nobody has watched for `GRACE_SECONDS`."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._watchers, self._left = 0, time.monotonic()

    @property
    def cancelled(self) -> bool:
        with self._lock:
            if not self._watchers and time.monotonic() - self._left > GRACE_SECONDS:
                self.cancel()
            return super().cancelled

    def join(self) -> bool:
        """Whether there is still something to watch; `leave` then ends it."""
        with self._lock:
            joined = not super().cancelled
            self._watchers += joined
            return joined

    def leave(self) -> None:
        with self._lock:
            self._watchers, self._left = self._watchers - 1, time.monotonic()


class Computation(Generic[T]):
    """One computation under way, and what came of it."""

    def __init__(self, key: str, compute: Callable[[CancelToken], T]) -> None:
        self.token, self.over = Watched(), threading.Event()
        self._key, self._compute = key, compute
        self._made: list[T] = []
        self._error: BaseException | None = None
        self._rows = (0, 0)
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def words(self) -> str:
        """How far it is: its place in the queue, or its seconds and what the engine says."""
        before = turns().place(self._thread.ident)
        if before:
            return f"waiting for the device, place {before} in the queue"
        done, total = self._rows
        seconds = f"{time.monotonic() - self._started:.0f} s"
        return f"{seconds}, {done:,} of {total:,} evaluations" if 0 < done < total else seconds

    def answer(self) -> T:
        """What it made, once it is over; its error is raised for everybody who asked."""
        if self._error is not None:
            raise self._error
        return self._made[0]

    def _run(self) -> None:
        try:
            with reporting(self._report):
                self._made.append(self._compute(self.token))
        except BaseException as error:
            self._error = error
        finally:
            with _lock:
                if _running.get(self._key) is self:
                    del _running[self._key]
            self.over.set()

    def _report(self, done: int, total: int, label: str) -> None:
        self._rows = done, total


def shared(key: str, compute: Callable[[CancelToken], T], tick: Tick) -> T:
    """What `compute` makes of its token. Who asks for the same key meanwhile shares it."""
    with _watching(key, compute) as work:
        while not work.over.wait(LOOK_SECONDS):
            tick(work.words())
        return work.answer()


@contextlib.contextmanager
def _watching(key: str, compute: Callable[[CancelToken], T]) -> Iterator[Computation[T]]:
    work = _joined(key, compute)
    try:
        yield work
    finally:
        work.token.leave()


def _joined(key: str, compute: Callable[[CancelToken], T]) -> Computation[T]:
    with _lock:
        work = _running.get(key)
        if work is None or not work.token.join():
            work = _running[key] = Computation(key, compute)
            work.token.join()
            work.start()
        return work


_lock = threading.Lock()
_running: dict[str, Computation[Any]] = {}
