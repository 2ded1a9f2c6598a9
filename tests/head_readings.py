"""Readings of heads with attention that is made up: what is drawn of them needs no model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.heads.flow import AttentionFlow, FlowPath, Sources, StrongestPaths
from engine.heads.matrices import LEVELS, MASKED, QuantizedAttention
from engine.heads.readings import HeadReading
from engine.heads.scores import Attention, attention_distance, entropy, special_share
from engine.result import Explanation, Prediction, Provenance, Token

WORDS = ["[CLS]", "The", "film", "is", "good", "and", "the", "cast", "is", "not", "bad", "[SEP]"]
CAUSAL = WORDS[1:9]
LARGE, GRID = (12, 12, 197), (14, 14)
"""Layers, heads and positions of a ViT-Base, and its patches."""
LABELS = ("negative", "positive")


def text_tokens(words: Sequence[str], second: int | None = None) -> tuple[Token, ...]:
    """Words in brackets are special; those from `second` on are of the second text."""
    made, at = [], 0
    for place, word in enumerate(words):
        special = word.startswith("[")
        segment = -1 if special else int(second is not None and place >= second)
        made.append(Token(word, at, at + len(word), segment, special))
        at += len(word) + 1
    return tuple(made)


def patch_tokens(grid: tuple[int, int]) -> tuple[Token, ...]:
    """[CLS] and the patches, row by row."""
    names = [f"row {row + 1}, column {column + 1}" for row in range(grid[0]) for column in range(grid[1])]
    return (Token("[CLS]", 0, 0, -1, True), *(Token(name, 0, 0, 0, False) for name in names))


def noise(layers: int, heads: int, length: int, seed: int = 0) -> Attention:
    """Rows that sum to 1, some heads sharper than others; it compresses badly."""
    drawn = np.random.default_rng(seed).random((layers, heads, length, length), dtype=np.float32)
    sharp = np.linspace(1, 12, layers * heads, dtype=np.float32).reshape(layers, heads, 1, 1)
    raised = drawn**sharp + np.float32(1e-3)
    return (raised / raised.sum(-1, keepdims=True)).astype(np.float16)


def reading(
    attention: Attention, tokens: Sequence[Token], grid: tuple[int, int] | None = None, causal: bool = False
) -> HeadReading:
    """A reading of that attention; where it is causal the future is masked and the rest sums to 1 again."""
    if causal:
        attention = np.where(np.tri(attention.shape[-1], dtype=bool), attention, 0).astype(np.float32)
        attention = attention / attention.sum(-1, keepdims=True)
        attention = np.where(np.tri(attention.shape[-1], dtype=bool), attention, np.nan).astype(np.float16)
    special = np.array([token.special for token in tokens])
    slope = np.random.default_rng(1).normal(0, 0.1, attention.shape[:2])
    scores = {
        "distance": attention_distance(attention, special, grid),
        "entropy": entropy(attention),
        "special": special_share(attention, special),
        "importance": np.abs(slope),
    }
    reads = np.zeros(len(tokens))
    reads[-1 if causal else 0] = 1
    return HeadReading(
        explained(tokens, grid), attention, scores, slope, np.nan_to_num(attention).mean(1), reads, causal
    )


def text_reading() -> HeadReading:
    """Six layers of twelve heads; 1.2 attends to itself."""
    made = noise(6, 12, len(WORDS))
    made[1, 2] = np.eye(len(WORDS))
    return reading(made, text_tokens(WORDS))


def causal_reading() -> HeadReading:
    return reading(noise(6, 12, len(CAUSAL)), text_tokens(CAUSAL), causal=True)


def picture_reading() -> HeadReading:
    return reading(noise(*LARGE), patch_tokens(GRID), GRID)


def explained(tokens: Sequence[Token], grid: tuple[int, int] | None) -> Explanation:
    return Explanation(
        tokens=tuple(tokens),
        scores=np.zeros(len(tokens)),
        prediction=Prediction(LABELS, (0.0, 1.0), (0.27, 0.73)),
        provenance=Provenance("model-a", "0123abcd", "random", 1, {}, 1, LABELS[1], 0, "float32", "cpu"),
        evaluations=1,
        seconds=0.1,
        grid=grid,
    )


def strongest_path(flow: AttentionFlow, sources: Sources = None) -> FlowPath:
    """The way with the largest product of weights, from anywhere in the input or from one of some positions."""
    paths = StrongestPaths(flow, sources)
    return paths.through(len(flow.weights), int(paths.shares[-1].argmax()))


def dequantize(quantized: QuantizedAttention) -> Attention:
    """The attention that the levels stand for; NaN where a query may not attend."""
    values = quantized.levels * (quantized.scale[..., None, None] / LEVELS)
    return np.where(quantized.levels == MASKED, np.nan, values).astype(np.float32)
