"""Progress and remaining time of a run, from the model evaluations of its units; a sentence on its work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic

from engine.jobs.kinds import WorkUnit

MIN_SHARE = 0.03
"""Share of the evaluations ahead that must be done before the time for the others can be estimated."""


class RunEstimate:
    """Progress and time left of a run. A unit weighs as much as the evaluations that are planned for it.

    Units under way count in proportion to the evaluations that are done.
    """

    def __init__(self, ahead: Iterable[WorkUnit] = ()) -> None:
        self._whole = sum(map(_rows, ahead))
        self._done, self._seconds = 0, 0.0
        self._current: Sequence[WorkUnit] = ()
        self._evaluated = 0
        self._latest = (0, 0)
        self._begun = 0.0

    def begin(self, units: Sequence[WorkUnit]) -> None:
        """Start the clock for units that are computed together."""
        self._current, self._evaluated, self._latest, self._begun = units, 0, (0, 0), monotonic()

    def report(self, done: int, total: int) -> None:
        """Note that `done` of the `total` evaluations that run together are done; the next ones begin at 0 again."""
        if not self._latest[1]:
            self._begun = monotonic()  # what came before was loading the model, which comes once
        self._evaluated += max(0, done - self._latest[0])
        self._latest = (0, total) if done == total else (done, total)

    def end(self, computed: bool) -> None:
        """Close the current units. Those that failed or were cached say nothing about the rest."""
        if computed:
            self._done += sum(map(_rows, self._current))
            self._seconds += monotonic() - self._begun
        else:
            self.skip(self._current)
        self._current = ()

    def give_up(self) -> None:
        """Drop the current units: they are still to be done, one by one."""
        self._current = ()

    def skip(self, units: Iterable[WorkUnit]) -> None:
        """Leave out units that need not be computed."""
        self._whole -= sum(map(_rows, units))

    def units_under_way(self) -> int:
        """Number of current units that the evaluations done so far would complete."""
        return min(int(self._share() * len(self._current)), max(0, len(self._current) - 1))

    def seconds_left(self) -> float | None:
        """The estimated seconds; None while too little is done."""
        here = self._share() * sum(map(_rows, self._current))
        done, seconds = self._done + here, self._seconds
        if here:
            seconds += monotonic() - self._begun
        if not done or done < MIN_SHARE * self._whole:
            return None
        return seconds / done * max(0.0, self._whole - done)

    def label(self) -> str:
        """The current units, and how far they are."""
        done, total = self._latest
        counted = next((unit.step.counted for unit in self._current if unit.step), "model evaluations")
        more = f", {done:,} of {total:,} {counted}" if 0 < done < total else ""
        return units_label(self._current) + more

    def _share(self) -> float:
        return min(1.0, self._evaluated / max(1, sum(map(_rows, self._current))))


def units_label(units: Sequence[WorkUnit]) -> str:
    """The work of these units, and their places among all examples."""
    if not units:
        return ""
    first, last = units[0], units[-1]
    if first.step is None or last.step is None or not first.step.place:
        return first.label if len(units) == 1 else f"{first.label} and {len(units) - 1} more"
    of = f"of {last.step.of:,}"
    if len(units) == 1:
        return f"{first.step.title}, example {first.step.place:,} {of}"
    return f"{first.step.title}, examples {first.step.place:,} to {last.step.place:,} {of}"


def _rows(unit: WorkUnit) -> int:
    return 1 if unit.step is None else max(1, unit.step.rows)
