"""The head that everything beside the board is about."""

from __future__ import annotations

from components.attention.look import BoardLook, Head
from components.attention.scores import HeadMap
from components.attention.told import strongest_of
from engine.heads.readings import HeadReading


def shown_head(look: BoardLook, scores: HeadMap | None, reading: HeadReading) -> Head:
    """The head that is locked, else the strongest by the score."""
    layers, heads = reading.slope.shape
    if look.head is not None and look.head[0] < layers and look.head[1] < heads:
        return look.head
    return strongest_of(scores, look, layers, heads)
