"""What happens along an attack, step by step: thinned when it is kept, since curves have no more points than pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

KEPT = 101
"""About how many steps of a trail are kept."""


@dataclass(frozen=True, eq=False)
class Trail:
    """One example's attack. `step` 0 is the seeded start; `objective` is what is maximised, in the unit of the map.

    `rank_change` from 0 to 1; `probability` of the class that was predicted (a score, for a regression head).
    """

    step: Int[np.ndarray, "point"]
    objective: Float[np.ndarray, "point"]
    rank_change: Float[np.ndarray, "point"]
    probability: Float[np.ndarray, "point"]
    class_kept: Bool[np.ndarray, "point"]

    def thinned(self, always: Sequence[int], most: int = KEPT) -> Trail:
        """At most about so many points, evenly; the last one and the steps named always."""
        every = -(-len(self.step) // most)
        keep = (self.step % every == 0) | np.isin(self.step, [*always, self.step[-1]])
        return Trail(**{name: values[keep] for name, values in vars(self).items()})


@dataclass(frozen=True, eq=False)
class Moment:
    """All examples that are attacked together, after a step; one whose attack is over has its last values.

    Of several starts it is the first: which is the best is known at the end.
    """

    step: int
    steps: int
    objective: Float[np.ndarray, "example"]
    rank_change: Float[np.ndarray, "example"]
    probability: Float[np.ndarray, "example"]


Watch = Callable[[Moment], None]
"""Called after each step, by the thread that attacks: keep it short."""


class Trails:
    """Collects the trails of items that are attacked together, each from as many `starts`, one after the other."""

    NAMES = ("objective", "rank_change", "probability", "class_kept")

    def __init__(self, items: int, steps: int, watch: Watch | None, starts: int = 1) -> None:
        self._points: list[list[tuple[float, ...]]] = [[] for _ in range(items)]
        self._steps, self._watch, self._starts = steps, watch, starts

    def add(self, step: int, items: Sequence[int], values: Float[np.ndarray, "item 4"]) -> None:
        """The values of these items after a step; only finite ones are kept."""
        for item, own in zip(items, values.tolist(), strict=True):
            if np.isfinite(own).all():
                self._points[item].append((step, *own))
        if self._watch is not None:
            self._watch(self._moment(step))

    def of(self, item: int) -> Trail:
        """The trail of one item."""
        points = np.array(self._points[item], dtype=np.float64).reshape(-1, 5)
        return Trail(points[:, 0].astype(np.int64), points[:, 1], points[:, 2], points[:, 3], points[:, 4] == 1)

    def _moment(self, step: int) -> Moment:
        first = self._points[:: self._starts]
        last = np.array([own[-1] if own else (step, *[np.nan] * 4) for own in first])
        return Moment(step, self._steps, last[:, 1], last[:, 2], last[:, 3])
