"""How well a map finds what is known to matter: its scores against the true features, beside a map by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from engine.errors import UsageError
from engine.metrics.ranking import ranking


@dataclass(frozen=True)
class TruthScores:
    """Of one map, or what a map by chance gets in expectation. `size` of the `n` features are true: the set L.

    Ranks count from 1, the highest score; low ranks and high shares are good. Of one map, `exact` and `pointing`
    are 0 or 1.
    """

    n: int
    size: int
    overlap: float
    """The share of L among the |L| features with the highest scores, from 0 to 1."""
    exact: float
    """Whether the |L| features with the highest scores are L."""
    pointing: float
    """Whether the feature with the highest score is in L."""
    mean_rank: float
    """The smallest r whose top r contain L, from |L| to n. Its mean over examples gave it the name."""
    mean_of_ranks: float
    """The mean of the ranks of L, from (|L| + 1) / 2 to n - (|L| - 1) / 2."""

    @property
    def mean_rank_pct(self) -> float:
        """`mean_rank` as a share of all features, from |L| / n to 1."""
        return self.mean_rank / self.n


def truth_scores(
    scores: Float[np.ndarray, "*shape"], truth: Bool[np.ndarray, "*shape"], seed: Sequence[int] = (0,)
) -> TruthScores:
    """Of the map of one example: a score a feature, in a grid or a row, without special tokens.

    The highest score counts as the most important, for signed maps too. Ties: `engine.metrics.ranking`, so that a
    map of equal scores is judged by chance. The pointing game is that of Zhang et al. (2018), section 4.1, without
    their tolerance of 15 pixels: a patch is coarse enough. Overlap and mean rank: section 6 of the design.
    """
    if reason := unscored(truth):
        raise UsageError(f"truth: {reason}")
    true = truth.ravel()[ranking(scores.ravel(), seed)]
    ranks, size = np.flatnonzero(true) + 1, int(true.sum())
    found = int(true[:size].sum())
    return TruthScores(
        n=len(true),
        size=size,
        overlap=found / size,
        exact=float(found == size),
        pointing=float(true[0]),
        mean_rank=float(ranks[-1]),
        mean_of_ranks=float(ranks.mean()),
    )


def truth_mass(scores: Float[np.ndarray, "*shape"], truth: Bool[np.ndarray, "*shape"]) -> float | None:
    """The share of `sum |a|` that lies on the true features, from 0 to 1, high is good; None of a map of zeros.

    Source: Arras, Osman and Samek (2022), CLEVR-XAI, relevance mass accuracy. They leave the sign to the method; here
    it does not count, so that methods with and without signs are held against each other.
    """
    if reason := unscored(truth):
        raise UsageError(f"truth: {reason}")
    size = np.abs(scores)
    total = float(size.sum())
    return float(size[truth].sum()) / total if total else None


def truth_by_chance(n: int, size: int) -> TruthScores:
    """What all orders of the features get on average, `size` of `n` being true."""
    return TruthScores(
        n=n,
        size=size,
        overlap=size / n,
        exact=1 / math.comb(n, size),
        pointing=size / n,
        mean_rank=size * (n + 1) / (size + 1),
        mean_of_ranks=(n + 1) / 2,
    )


def unscored(truth: Bool[np.ndarray, "*shape"], feature: str = "feature") -> str | None:
    """Why no map can be held against this truth; None where one can. `feature`: what one is called."""
    if not truth.any():
        return f"no {feature} is true, so there is nothing to find."
    return f"every {feature} is true, so any map finds them." if truth.all() else None
