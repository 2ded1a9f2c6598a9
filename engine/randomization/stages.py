"""The stages of a check: which parts of the model are random in each. And the methods that it is meant for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.randomization.plan import MODES, RandomizationPlan
from engine.registry import explainer
from engine.word_units import BASELINE

HEAD = "head"
EMBEDDINGS = "embeddings"
ORIGINAL: tuple[str, ...] = ()
"""The parts that are random in the model as it is."""
WHY_NOT = {
    "perturbation": "it looks at the model's answers alone, not at its parameters",
    "ensemble": "it has members that look at the model's answers alone",
}
"""Why the thesis leaves methods of a family out."""


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
        return f"{parts_words(self.parts)} randomized"


def stages_of(plan: RandomizationPlan, blocks: int) -> tuple[Stage, ...]:
    """The stages of each mode in order. Both modes share their first stage, whose maps are made once."""
    order = parts_in_order(blocks, plan.head, plan.embeddings)
    return tuple(
        Stage(mode, part, place + 1, order[: place + 1] if mode == MODES[0] else (part,))
        for mode in plan.modes
        for place, part in enumerate(order)
    )


def parts_in_order(blocks: int, head: bool, embeddings: bool) -> tuple[str, ...]:
    """The parts as a cascade destroys them, from the answer to the input. Blocks are counted from 1, the first."""
    between = [str(number) for number in range(blocks, 0, -1)]
    return (*([HEAD] if head else []), *between, *([EMBEDDINGS] if embeddings else []))


def parts_words(parts: Sequence[str]) -> str:
    """Parts in words, for people: "blocks 4 to 6, the head and the embeddings"."""
    blocks = sorted(int(part) for part in parts if part.isdecimal())
    named = [f"the {part}" for part in parts if not part.isdecimal()]
    if blocks:
        together = blocks == list(range(blocks[0], blocks[-1] + 1))
        many = f"{blocks[0]} to {blocks[-1]}" if together else ", ".join(map(str, blocks))
        named.insert(0, f"block {blocks[0]}" if len(blocks) == 1 else f"blocks {many}")
    return " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:]))) or "nothing"


def not_applicable(method: str, kind: str = "text") -> str:
    """The reason why the thesis (section 4) leaves such a method out; empty where the check is meant for it."""
    return WHY_NOT.get(explainer(method, kind).family, "")


def is_baseline(method: str, kind: str = "text") -> bool:
    """Whether it knows nothing of the model: then it is drawn anew at each stage, and shows what chance gives."""
    return explainer(method, kind).family == BASELINE
