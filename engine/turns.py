"""First come, first served at a device, among the threads of one process.

Processes do not line up with each other: between them the operating system and the driver share the device.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

_LOOK_SECONDS = 0.1


class Turns:
    """A fair lock: whoever asked first is served first. Use it as a context manager; it is not re-entrant."""

    def __init__(self) -> None:
        self._line: deque[tuple[int, threading.Event]] = deque()
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait behind the one who has the turn."""
        with self._lock:
            return max(0, len(self._line) - 1)

    def place(self, thread: int | None = None) -> int | None:
        """How many are before `thread` (default: the caller): 0 has the turn, None is not in the line."""
        wanted = threading.get_ident() if thread is None else thread
        with self._lock:
            return next((n for n, (ident, _) in enumerate(self._line) if ident == wanted), None)

    def take(self, check: Callable[[], None] | None = None) -> None:
        """Waits for the turn. `check` is called now and then while waiting; if it raises, the place is given up."""
        mine = threading.get_ident(), threading.Event()
        with self._lock:
            self._line.append(mine)
            self._call_first()
        try:
            while not mine[1].wait(_LOOK_SECONDS if check else None):
                if check:
                    check()
        except BaseException:
            self._leave(mine)
            raise

    def give(self) -> None:
        """Ends the turn; the next one in line has it."""
        with self._lock:
            self._line.popleft()
            self._call_first()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *error: object) -> None:
        self.give()

    def _leave(self, mine: tuple[int, threading.Event]) -> None:
        with self._lock:
            self._line.remove(mine)
            self._call_first()

    def _call_first(self) -> None:
        if self._line:
            self._line[0][1].set()
