"""A reading of all heads made by hand, and the state of the page that shows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.attention_look import BoardLook
from components.attention_state import AttentionState
from components.focus import Focus
from engine.heads.reading import HeadReading
from engine.request import Example
from tests.unit.components.making import explanation

EXAMPLE = Example("good food bad service here")
"""[CLS], five words, [SEP]."""


def state(look: BoardLook | None = None, **more: object) -> AttentionState:
    focus = Focus("model-a", EXAMPLE.text)
    return AttentionState(kind="text", focus=focus, look=look or BoardLook(), **more)  # type: ignore[arg-type]


def reading(maps: Sequence[Sequence[Sequence[float]]], causal: bool = False) -> HeadReading:
    """`maps`: for each layer and head what the five words receive, alike from every query."""
    of = explanation(EXAMPLE, method="random")
    n, features = len(of.tokens), of.features
    given = np.array(maps, dtype=np.float32)
    layers, heads = given.shape[:2]
    attention = np.zeros((layers, heads, n, n), dtype=np.float16)
    attention[..., features] = given[:, :, None]
    if causal:
        attention[..., ~np.tri(n, dtype=bool)] = np.nan
    slope = np.arange(layers * heads, dtype=np.float64).reshape(layers, heads) - 1
    flat = np.full((layers, heads), 0.5)
    return HeadReading(
        of=of,
        attention=attention,
        scores={"distance": flat, "entropy": flat, "special": np.full_like(flat, np.nan), "importance": abs(slope)},
        slope=slope,
        weighted=np.zeros((layers, n, n), dtype=np.float32),
        reads=np.eye(n)[0],
        causal=causal,
    )
