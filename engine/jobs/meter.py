"""How far a run is and how long it will take, by the model evaluations of its units; and what it is at, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic

from engine.jobs.kinds import Unit

KNOWN = 0.03
"""Of the evaluations ahead: before so many are done, nobody can tell how long the others will take."""


class Meter:
    """Units are weighed by the evaluations that are planned for them; those under way count as far as they are."""

    def __init__(self, ahead: Iterable[Unit] = ()) -> None:
        self._whole = sum(map(_rows, ahead))
        self._done, self._seconds = 0, 0.0
        self._now: Sequence[Unit] = ()
        self._ran = 0
        self._told = (0, 0)
        self._begun = 0.0

    def begin(self, units: Sequence[Unit]) -> None:
        """These are computed together now."""
        self._now, self._ran, self._told, self._begun = units, 0, (0, 0), monotonic()

    def hear(self, done: int, total: int) -> None:
        """How many of the `total` evaluations that run together now are done; the next ones begin with 0 again."""
        if not self._told[1]:
            self._begun = monotonic()  # what came before was loading the model, which comes once
        self._ran += max(0, done - self._told[0])
        self._told = (0, total) if done == total else (done, total)

    def end(self, computed: bool) -> None:
        """They are over. Those that failed or were found say nothing about the rest."""
        if computed:
            self._done += sum(map(_rows, self._now))
            self._seconds += monotonic() - self._begun
        else:
            self.found(self._now)
        self._now = ()

    def given_up(self) -> None:
        """They are still to be done, one by one."""
        self._now = ()

    def found(self, units: Iterable[Unit]) -> None:
        """These need not be computed."""
        self._whole -= sum(map(_rows, units))

    def under_way(self) -> int:
        """How many of the units that are computed together the work done so far would make."""
        return min(int(self._share() * len(self._now)), max(0, len(self._now) - 1))

    def seconds_left(self) -> float | None:
        """None while too little is done to tell."""
        here = self._share() * sum(map(_rows, self._now))
        done, seconds = self._done + here, self._seconds
        if here:
            seconds += monotonic() - self._begun
        if not done or done < KNOWN * self._whole:
            return None
        return seconds / done * max(0.0, self._whole - done)

    def words(self) -> str:
        """Which units these are, and how far."""
        done, total = self._told
        counted = next((unit.step.counted for unit in self._now if unit.step), "model evaluations")
        more = f", {done:,} of {total:,} {counted}" if 0 < done < total else ""
        return told(self._now) + more

    def _share(self) -> float:
        return min(1.0, self._ran / max(1, sum(map(_rows, self._now))))


def told(units: Sequence[Unit]) -> str:
    """What is done, and on which examples of how many."""
    if not units:
        return ""
    first, last = units[0], units[-1]
    if first.step is None or last.step is None or not first.step.place:
        return first.label if len(units) == 1 else f"{first.label} and {len(units) - 1} more"
    of = f"of {last.step.of:,}"
    if len(units) == 1:
        return f"{first.step.title}, example {first.step.place:,} {of}"
    return f"{first.step.title}, examples {first.step.place:,} to {last.step.place:,} {of}"


def _rows(unit: Unit) -> int:
    return 1 if unit.step is None else max(1, unit.step.rows)
