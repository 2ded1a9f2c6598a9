"""Answers of a study of guesses: which class was guessed, and which the model gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.study.tally import Kept

WITHOUT = "no explanation"
"""The condition in which people see the input alone; no method has this name."""
SUREST = 5
"""How sure one can be; 1 is least."""


@dataclass(frozen=True)
class Target:
    """What is to be guessed of an item: the class that the model gave. `correct`: it is the true one, where known."""

    label: int
    correct: bool | None = None


@dataclass(frozen=True)
class Guessed:
    """One answer. `condition`: the method whose explanation was seen, or `WITHOUT`. `seconds`: how long they looked.

    `label`: the class that was guessed, and `sure` how sure they were from 1 to 5; both None: cannot tell.
    `repeat` counts how often this person saw this item before.
    """

    annotator: str
    item: str
    condition: str
    label: int | None
    sure: int | None
    target: Target
    seconds: int | float = 0.0
    repeat: int = 0

    @property
    def right(self) -> bool:
        """Whether it is what the model said, true or not."""
        return self.label == self.target.label

    @property
    def explained(self) -> bool:
        return self.condition != WITHOUT


def as_guesses(votes: Sequence[Kept], targets: Mapping[str, Target]) -> list[Guessed]:
    """The votes of a study of guesses, those that cannot tell too."""
    return [_guessed(vote, targets[vote.item]) for vote in votes]


def _guessed(vote: Kept, target: Target) -> Guessed:
    condition = vote.order[0] if vote.order else WITHOUT
    label, sure = (vote.guess["label"], vote.guess["sure"]) if vote.guess else (None, None)
    return Guessed(vote.annotator, vote.item, condition, label, sure, target, vote.seconds, vote.repeat)
