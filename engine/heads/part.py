"""Which positions of an input a matrix shows: all, one text's view of the other, with special tokens or without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.errors import ExegesisError, UsageError, unknown
from engine.heads.reading import HeadReading
from engine.heads.scores import Attention

BETWEEN = ("all", "a_to_b", "b_to_a")
"""Attention between all positions, or from the queries of one text of a pair to the keys of the other."""
NAMES = ("the first text", "the second text")
WITHOUT_SPECIAL = "Special tokens are left out; the rest is as the model has it, so that rows sum to less than 1."
OTHER_TEXT = "Only attention from {} to {} is shown, so that rows sum to less than 1."
UNSEEN = "This model reads from left to right: no token of the first text may attend to the second."


@dataclass(frozen=True)
class Part:
    """Positions of the queries and of the keys that are shown, both rising, and what a person must be told of it."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    note: str = ""


def part_of(reading: HeadReading, between: str = BETWEEN[0], special: bool = True) -> Part:
    """The part of a reading to show. `special`: with the special tokens; nothing is normalised without them.

    A special token of a pair goes with the text that it opens or closes: those before the second text with the first.
    """
    if between not in BETWEEN:
        raise unknown("between", between, BETWEEN)
    kept = ~reading.special | special
    if between == BETWEEN[0]:
        every = _positions(kept)
        return Part(every, every, "" if special or not reading.special.any() else WITHOUT_SPECIAL)
    sides = _sides(reading)
    queries, keys = (0, 1) if between == "a_to_b" else (1, 0)
    told = [OTHER_TEXT.format(NAMES[queries], NAMES[keys])]
    if reading.causal and queries == 0:
        told.append(UNSEEN)
    return Part(_positions(kept & (sides == queries)), _positions(kept & (sides == keys)), " ".join(told))


def cut(attention: Attention, part: Part) -> Float[np.ndarray, "layer head row column"]:
    """What the part shows of attention: itself where that is all of it, else a copy."""
    n = attention.shape[-1]
    if len(part.rows) == len(part.columns) == n:
        return attention
    return attention[:, :, list(part.rows)][..., list(part.columns)]


def _sides(reading: HeadReading) -> Int[np.ndarray, "seq"]:
    """0 where a position belongs to the first text, 1 where to the second."""
    segments = np.array([token.segment for token in reading.of.tokens])
    if reading.of.grid is not None:
        raise UsageError("between: must be 'all' for a picture, which has no second text.")
    missing = [name for number, name in enumerate(NAMES) if not (segments == number).any()]
    if missing == [NAMES[1]]:
        raise UsageError(
            "between: must be 'all' where there is no second text, or none of its tokens fits into the model. "
            "Give a pair, or choose 'all'."
        )
    if missing:
        raise ExegesisError(f"between: {missing[0]} has no tokens. Write one, or choose 'all'.")
    return (np.arange(len(segments)) >= int((segments == 1).argmax())).astype(int)


def _positions(kept: Bool[np.ndarray, "seq"]) -> tuple[int, ...]:
    found = tuple(np.flatnonzero(kept).tolist())
    if not found:
        raise ExegesisError(
            "special: this input has special tokens only, so that nothing is left without them. Show them, or give "
            "another input."
        )
    return found
