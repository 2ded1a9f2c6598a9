"""Two versions of a text side by side: which of their tokens or words are the same, and what stands for what."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.result import Token
from engine.word_units import Unit

Piece = Token | Unit
Name = tuple[str, bool]
"""A piece's text, and whether it is special."""
Kind = Literal["kept", "changed", "inserted", "deleted"]
TEXTS = 2
"""The first text and the second one of a pair."""


@dataclass(frozen=True)
class AlignedColumn:
    """A place in both versions, or in one: `deleted` stands only in the parent, `inserted` only in the child.

    `text`: 0 in the first text, 1 in the second of a pair.
    """

    parent: int | None
    child: int | None
    kind: Kind
    text: int = 0


def align(parent: Sequence[Piece], child: Sequence[Piece]) -> tuple[AlignedColumn, ...]:
    """Every piece of both versions once, in reading order; the first text with the first, the second with the second.

    Pieces with the same text are kept: those that both versions begin and end with, and between these difflib's
    longest matching blocks (Ratcliff and Metzener, 1988). Between the blocks, pieces stand opposite each other in
    turn as changed, and what is over is deleted or inserted.
    """
    versions = zip(_by_text(parent), _by_text(child), strict=True)
    return tuple(
        AlignedColumn(*opposite, text)
        for text, (before, after) in enumerate(versions)
        for opposite in _opposite(parent, before, child, after)
    )


def _by_text(pieces: Sequence[Piece]) -> list[list[int]]:
    """Positions by text. A special token belongs to the text before it, the first ones to the first."""
    found: list[list[int]] = [[] for _ in range(TEXTS)]
    current = 0
    for position, piece in enumerate(pieces):
        current = current if piece.special else piece.segment
        found[current].append(position)
    return found


def _opposite(
    parent: Sequence[Piece], before: Sequence[int], child: Sequence[Piece], after: Sequence[int]
) -> Iterator[tuple[int | None, int | None, Kind]]:
    names = [(parent[i].text, parent[i].special) for i in before], [(child[i].text, child[i].special) for i in after]
    for tag, start, end, first, last in _steps(*names):
        old, new = before[start:end], after[first:last]
        both = min(len(old), len(new))
        kind: Kind = "kept" if tag == "equal" else "changed"
        yield from ((i, j, kind) for i, j in zip(old[:both], new[:both], strict=True))
        yield from ((i, None, "deleted") for i in old[both:])
        yield from ((None, j, "inserted") for j in new[both:])


def _steps(old: Sequence[Name], new: Sequence[Name]) -> list[tuple[str, int, int, int, int]]:
    """Edit operations from the old names to the new ones, as difflib's opcodes."""
    # Else one word changed in "good good good good" would be found as the longest block shifted by one.
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    ends = len(old) - tail, len(new) - tail
    # Without autojunk: it would overlook the frequent tokens of long texts.
    between = difflib.SequenceMatcher(None, old[head : ends[0]], new[head : ends[1]], autojunk=False).get_opcodes()
    return [
        ("equal", 0, head, 0, head),
        *((tag, head + start, head + end, head + first, head + last) for tag, start, end, first, last in between),
        ("equal", ends[0], len(old), ends[1], len(new)),
    ]


def _shared(old: Sequence[Name], new: Sequence[Name]) -> int:
    """Length of the common prefix."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))
