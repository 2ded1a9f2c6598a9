"""First come, first served at a device."""

from __future__ import annotations

import threading
from collections import deque


class Turns:
    """A fair lock: whoever asked first is served first. Use it as a context manager; it is not re-entrant."""

    def __init__(self) -> None:
        self._line: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait behind the one who has the turn."""
        with self._lock:
            return max(0, len(self._line) - 1)

    def __enter__(self) -> None:
        mine = threading.Event()
        with self._lock:
            self._line.append(mine)
            if len(self._line) == 1:
                mine.set()
        mine.wait()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._line.popleft()
            if self._line:
                self._line[0].set()
