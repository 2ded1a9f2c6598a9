"""How the ranks of tokens or patches moved: pure, of what an attack found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

UP, DOWN, STAYS = "↑", "↓", "="
Order = Int[np.ndarray, "feature"]


@dataclass(frozen=True)
class Move:
    """A position of the input with its places, from 1, before and after."""

    position: int
    before: int
    after: int

    @property
    def arrow(self) -> str:
        """Up, towards the first place, or down, and by how many places."""
        by = self.before - self.after
        return STAYS if by == 0 else f"{UP if by > 0 else DOWN} {abs(by)}"


def moves(features: Sequence[int], before: Order, after: Order) -> list[Move]:
    """Each feature's move, the highest before first. `before`, `after`: places into `features`, highest first."""
    now = {at: place for place, at in enumerate(after.tolist(), start=1)}
    return [Move(int(features[at]), place, now[at]) for place, at in enumerate(before.tolist(), start=1)]


def top_before(found: Sequence[Move], k: int) -> list[Move]:
    """Those that were the k highest."""
    return [move for move in found if move.before <= k]


def top_after(found: Sequence[Move], k: int) -> list[Move]:
    """Those that are the k highest now, the highest first."""
    return sorted((move for move in found if move.after <= k), key=lambda move: move.after)
