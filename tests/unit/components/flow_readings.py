"""Readings of heads made by hand, for the tests of the flow that is drawn of them."""

from __future__ import annotations

import dataclasses

import numpy as np

from engine.heads.readings import HeadReading
from engine.request import Example
from engine.result import Explanation, Token
from tests.unit.components.making import explanation

TEXT = "The plot is thin, yet the acting is superb."
CLS, THIN, SUPERB = 0, 4, 10
"""Positions of that text."""
GRID = (8, 8)


def text_reading(text: str = TEXT, layers: int = 6, seed: int = 0) -> HeadReading:
    """[CLS] reads all at the end; "superb" and "thin" are looked at most."""
    return reading_of(explanation(Example(text)), layers, seed)


def picture_reading(grid: tuple[int, int] = GRID, layers: int = 4, seed: int = 0) -> HeadReading:
    """[CLS] and the patches of a grid."""
    rows, columns = grid
    cls = Token("[CLS]", 0, 0, -1, True)
    patches = [
        Token(f"row {1 + at // columns}, column {1 + at % columns}", 0, 0, 0, False) for at in range(rows * columns)
    ]
    made = explanation(Example(TEXT))
    tokens = (cls, *patches)
    return reading_of(dataclasses.replace(made, tokens=tokens, scores=np.zeros(len(tokens)), grid=grid), layers, seed)


def picture() -> np.ndarray:
    """What the model sees: a light disc on dark ground, 64 x 64."""
    rows, columns = np.mgrid[:64, :64]
    seen = np.full((64, 64, 3), (30, 60, 90), np.uint8)
    seen[(rows - 24) ** 2 + (columns - 36) ** 2 < 200] = (240, 200, 80)
    return seen


def reading_of(made: Explanation, layers: int, seed: int = 0, heads: int = 2) -> HeadReading:
    """Attention by chance, peaked, with two positions that many look at."""
    n, random = len(made.tokens), np.random.default_rng(seed)
    raw = random.exponential(size=(layers, heads, n, n)) ** 3
    raw[..., [THIN % n, SUPERB % n]] *= 6
    attention = (raw / raw.sum(-1, keepdims=True)).astype(np.float16)
    per_head = np.zeros((layers, heads))
    weighted = (attention.astype(np.float64) * random.random(attention.shape)).mean(1)
    reads = np.eye(n)[CLS]
    return HeadReading(made, attention, {}, per_head, weighted, reads, causal=False)
