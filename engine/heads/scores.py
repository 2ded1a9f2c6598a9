"""Scores of attention heads, from their attention alone.

Attention is `[layer head query key]`; NaN marks keys that a query may not attend to (a causal model's future), which is
not the same as an attention of 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.metrics.ranking import spearman

Attention = Float[np.ndarray, "layer head query key"]
PerHead = Float[np.ndarray, "layer head"]


@dataclass(frozen=True)
class HeadScore:
    """A score of each head. `signed`: whether it can be negative; otherwise it is at least 0."""

    id: str
    title: str
    unit: str
    about: str
    citation: str
    signed: bool = False


IMPORTANCE, OFF, AGREEMENT = "importance", "off", "agreement"
"""Ids of scores; the last two need more passes than reading the heads."""
SCORES = {
    score.id: score
    for score in (
        HeadScore(
            "distance", "Attention distance", "tokens or patches",
            "Mean distance between a query and what it attends to. Attention to and from special tokens is left out.",
            "Vig and Belinkov (2019), section 4.4; for patches Dosovitskiy et al. (2021), figure 7",
        ),
        HeadScore(
            "entropy", "Entropy", "nats",
            "How spread out the attention of a head is: 0 if each query attends to one position.",
            "Clark et al. (2019), What does BERT look at?, section 3.3",
        ),
        HeadScore(
            "special", "Attention to special tokens", "share",
            "The share of attention that goes from tokens or patches to special tokens such as [CLS] and [SEP].",
            "Clark et al. (2019), What does BERT look at?, section 3.2",
        ),
        HeadScore(
            IMPORTANCE, "Importance for the class", "logit",
            "How strongly the logit of the class would react to the head's scale: the size of its derivative. It is "
            "computed for heads that are switched off, too.",
            "Michel et al. (2019), Are sixteen heads really better than one?, section 4.1",
        ),
        HeadScore(
            OFF, "Fall when switched off", "probability",
            "By how much the probability of the class (of a regression head, the score) falls when the head is "
            "switched off: above 0 where the head speaks for the class, below 0 where it speaks against it.",
            "Michel et al. (2019), Are sixteen heads really better than one?, section 3.2",
            signed=True,
        ),
    )
}  # fmt: skip
"""The scores by which a map of layers and heads is colored and sorted."""
AGREES = HeadScore(
    AGREEMENT, "Agreement with an attribution", "Spearman's rho",
    "Whether a head's map orders the tokens or patches as an attribution does, by the size of its scores.",
    "Jain and Wallace (2019), Attention is not explanation, section 4.1",
    signed=True,
)  # fmt: skip


def attention_distance(
    attention: Attention, special: Bool[np.ndarray, "seq"], grid: tuple[int, int] | None = None
) -> PerHead:
    """Return the mean distance between query and key, weighted by attention: in tokens, or in patches with a grid.

    `sum a_ij d_ij / sum a_ij` over all queries and keys that are not special tokens (Vig and Belinkov, 2019). Patches:
    Euclidean distance of their centers. NaN if a head attends to special tokens only.
    """
    places = np.flatnonzero(~special)
    far = _distances(places, grid)

    def of_layer(layer: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head"]:
        among = np.nan_to_num(layer[:, places][:, :, places].astype(np.float64))
        total = among.sum((1, 2))
        return np.divide((among * far).sum((1, 2)), total, out=np.full(len(total), np.nan), where=total > 0)

    return _by_layer(attention, of_layer)


def entropy(attention: Attention) -> PerHead:
    """Return the mean entropy of the queries' attention, in nats: from 0 to the log of the number of keys."""

    def of_layer(layer: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head"]:
        p = np.nan_to_num(layer.astype(np.float64))
        return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1).mean(-1) + 0.0

    return _by_layer(attention, of_layer)


def special_share(attention: Attention, special: Bool[np.ndarray, "seq"]) -> PerHead:
    """Return the attention of other tokens to special tokens, averaged over queries; NaN without special tokens."""
    if not special.any():
        return np.full(attention.shape[:2], np.nan)

    def of_layer(layer: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head"]:
        received = np.nan_to_num(layer[:, ~special][:, :, special].astype(np.float64))
        return received.sum(-1).mean(-1)

    return _by_layer(attention, of_layer)


def received(
    attention: Attention, features: Int[np.ndarray, "feature"], query: int | None = None
) -> Float[np.ndarray, "layer head feature"]:
    """Return the attention that each feature receives: the mean over queries that may attend to it, or of one query.

    NaN if that query may not attend to the feature.
    """
    if query is not None:
        return attention[:, :, query, features].astype(np.float64)
    return np.stack([np.nanmean(layer[:, :, features], axis=1, dtype=np.float64) for layer in attention])


def agreement_with(maps: Float[np.ndarray, "layer head feature"], scores: Float[np.ndarray, "feature"]) -> PerHead:
    """Return Spearman's rho between each head's map and an attribution's absolute scores (attention has no sign).

    From -1 to 1; NaN if a map is constant. Features that a map's query may not attend to are left out.
    """
    other = np.abs(scores)

    def rho(own: Float[np.ndarray, "feature"]) -> float:
        visible = ~np.isnan(own)
        value = spearman(own[visible], other[visible]) if visible.any() else None
        return np.nan if value is None else value

    return np.array([[rho(own) for own in layer] for layer in maps])


def _by_layer(attention: Attention, of_layer: Callable[[np.ndarray], np.ndarray]) -> PerHead:
    # A layer at a time in double precision: all of them would be gigabytes for long texts.
    return np.stack([of_layer(layer) for layer in attention])


def _distances(places: Int[np.ndarray, "feature"], grid: tuple[int, int] | None) -> Float[np.ndarray, "query key"]:
    if grid is None:
        return np.abs(places[:, None] - places).astype(np.float64)
    row, column = np.divmod(np.arange(len(places)), grid[1])
    return np.hypot(row[:, None] - row, column[:, None] - column)
