"""An attack while it runs: what its steps came to so far, for every session that watches it."""

from __future__ import annotations

import threading

import numpy as np

from engine.attacks.trail import Moment, Trail


class Live:
    """Collects the moments of one attack; the attacking thread adds, pages read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: list[tuple[int, float, float, float]] = []
        self.steps = 0

    def add(self, moment: Moment) -> None:
        """The values of a step, where they are numbers."""
        values = [float(own[0]) for own in (moment.objective, moment.rank_change, moment.probability)]
        with self._lock:
            self.steps = moment.steps
            if np.isfinite(values).all():
                self._points.append((moment.step, values[0], values[1], values[2]))

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        with self._lock:
            return self._points[-1][0] / self.steps if self._points and self.steps else 0.0

    @property
    def words(self) -> str:
        """How far that is; empty before the first step."""
        with self._lock:
            return f"step {self._points[-1][0]:,} of {self.steps:,}" if self._points else ""

    def trail(self) -> Trail:
        """The steps so far, thinned. Of each it is not known yet whether the class was another."""
        with self._lock:
            points = np.array(self._points, dtype=np.float64).reshape(-1, 4)
        kept = np.ones(len(points), dtype=bool)
        made = Trail(points[:, 0].astype(np.int64), points[:, 1], points[:, 2], points[:, 3], kept)
        return made.thinned([]) if len(points) else made


_lock = threading.Lock()
_live: dict[str, Live] = {}


def live_of(key: str) -> Live:
    """That of a cache key; a new one where nothing runs under it."""
    with _lock:
        return _live.setdefault(key, Live())


def forget(key: str) -> None:
    """Takes it away, when the attack is over."""
    with _lock:
        _live.pop(key, None)
