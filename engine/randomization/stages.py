"""The stages of a check: which parts are random in each, from the model as it is to the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.randomization.parts import parts_in_order, told
from engine.randomization.plan import MODES, Plan

ORIGINAL: tuple[str, ...] = ()
"""The parts that are random in the model as it is."""


@dataclass(frozen=True)
class Stage:
    """One point of a curve. `block`: the part that is randomized last, a block's number from 1, "head" or "embeddings".

    `number`: its place along the curve, from 1. `parts`: all that is random in it.
    """

    mode: str
    block: str
    number: int
    parts: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"{told(self.parts)} randomized"


def stages_of(plan: Plan, blocks: int) -> tuple[Stage, ...]:
    """Those of each mode in order. Cascading and independent share their first, of which the maps are made once."""
    order = parts_in_order(blocks, plan.head, plan.embeddings)
    return tuple(stage for mode in plan.modes for stage in _in_mode(mode, order))


def _in_mode(mode: str, order: Sequence[str]) -> list[Stage]:
    cascading = mode == MODES[0]
    return [
        Stage(mode, part, place + 1, tuple(order[: place + 1]) if cascading else (part,))
        for place, part in enumerate(order)
    ]
