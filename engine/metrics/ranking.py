"""The order of features by their scores: ranks, ties, how many a share is, and rank correlation; one rule for all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

TIES = 0x7135
"""Keeps the draws that break ties apart from those of methods that draw with the same seed."""
LEVEL = 0.05
"""One input in twenty has a map beyond the limit although nothing agrees."""
EXACT = 7
"""Features up to which all orders are looked at: 5,040."""
DRAWS = 4_000
AT_ONCE = 500
ROUNDING = 1e-9

FeatureScores = Float[np.ndarray, "feature"]
Orders = Int[np.ndarray, "draw feature"]


def rank_features(scores: FeatureScores, seed: Sequence[int]) -> Int[np.ndarray, "feature"]:
    """Places of the features, highest score first; unsigned scores likewise.

    Equal scores stand in a random order that depends on `seed` (a seed and what tells the input from others) and on
    nothing else: not on the position, which would favor maps that are flat where the important words tend to stand,
    and not on the method, so that two flat maps are ordered alike.
    """
    chance = np.random.default_rng([TIES, *seed]).permutation(len(scores))
    return np.lexsort((chance, -np.asarray(scores, dtype=np.float64)))


def count_of_percent(percent: int, n: int) -> int:
    """Return how many of `n` features are `percent` of them: 0 for 0, else max(1, round(k n)), halves to even."""
    return 0 if percent == 0 or n == 0 else max(1, round(percent * n / 100))


def average_ranks(scores: FeatureScores) -> FeatureScores:
    """1 for the lowest score, n for the highest; equal scores share the mean of their ranks.

    The numbers of `scipy.stats.rankdata`, in half of its time for one map, and without the second that importing
    `scipy.stats` takes: pages rank maps that are cached.
    """
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


def is_constant(scores: FeatureScores) -> bool:
    """Whether all scores are equal, also where there is only one."""
    return bool((scores == scores[0]).all())


def spearman(a: FeatureScores, b: FeatureScores) -> float | None:
    """Spearman's rho: the correlation of the ranks, equal scores sharing their average rank (Spearman, 1904).

    From -1 to 1; None where a map is constant, because it has no order. `scipy.stats.spearmanr` gives the same to
    rounding, but takes four times as long for two maps, and a search compares those of a whole data set.
    """
    if is_constant(a) or is_constant(b):
        return None
    return spearman_of_pairs([a, b])[0]


def spearman_of_pairs(maps: Sequence[FeatureScores]) -> list[float]:
    """Spearman's rho of each pair of maps, none of them constant, in the order of `itertools.combinations`."""
    centered = [ranks - ranks.mean() for ranks in map(average_ranks, maps)]
    return [
        float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0)) for x, y in itertools.combinations(centered, 2)
    ]


def top_k_overlap(a: FeatureScores, b: FeatureScores, k: int) -> float:
    """The share of the k features with the highest scores that both maps name, from 0 to 1.

    The mean over all orders of equal scores, drawn for each map apart: an order that both shared would let maps agree
    where neither of them tells features apart.
    """
    return float(top_k_probability(a, k) @ top_k_probability(b, k)) / k


def top_k_probability(scores: FeatureScores, k: int) -> FeatureScores:
    """Probability of each feature to be among the k highest, with ties in random order; sums to k."""
    edge = np.sort(scores)[-k]
    above, at = scores > edge, scores == edge
    return above + at * (k - above.sum()) / at.sum()


def rho_limit(
    maps: Float[np.ndarray, "map feature"], scores: FeatureScores, grid: tuple[int, int] | None = None
) -> float | None:
    """The rank correlation that chance gives when many maps are compared with one, so that nobody reads noise.

    Spearman's rho of the best of these maps with the scores, whatever its sign, exceeds it by chance in at most
    `LEVEL` of all cases; None where no rho can be told from chance: few features, or nothing that has an order.

    The scores are moved over the features in every way that chance could have put them (or many of them), and the best
    rank correlation that any map then has is noted. So the limit holds for all maps together, whatever they have in
    common and however their values tie (Westfall and Young, 1993, Resampling-based multiple testing; Nichols and
    Holmes, 2002, for maps whose neighbors are alike). Texts: the scores in any order. Pictures (`grid`): shifted over
    the picture, its edges joined, and mirrored, because neighboring patches are alike and would agree too often if
    they were taken apart.
    """
    ordered = maps[[len(one) > 0 and not is_constant(one) for one in maps]]
    if not len(ordered) or is_constant(scores):
        return None
    ranks, own = _standardize_ranks(ordered), _standardize_ranks(scores[None])[0]
    chances = _permutations(len(scores)) if grid is None else [_grid_shifts(grid)]
    largest = np.concatenate([np.abs(own[orders] @ ranks.T).max(1) for orders in chances])
    allowed = math.floor(LEVEL * len(largest) + ROUNDING)
    limit = np.partition(largest, -allowed - 1)[-allowed - 1] if allowed else 1.0
    return None if limit >= 1 - ROUNDING else float(limit) + ROUNDING


def _standardize_ranks(maps: Float[np.ndarray, "map feature"]) -> Float[np.ndarray, "map feature"]:
    """Ranks whose products are rank correlations."""
    ranks = np.stack([average_ranks(one) for one in maps])
    ranks -= ranks.mean(1, keepdims=True)
    return ranks / np.linalg.norm(ranks, axis=1, keepdims=True)


def _permutations(n: int) -> Iterator[Orders]:
    """All orders of a few features, else a sample of them with the given one."""
    if n <= EXACT:
        yield np.array(list(itertools.permutations(range(n))))
        return
    chance = np.random.default_rng(n)
    yield np.arange(n)[None]
    for _ in range(DRAWS // AT_ONCE):
        yield chance.random((AT_ONCE, n)).argsort(1)


def _grid_shifts(grid: tuple[int, int]) -> Orders:
    places = np.arange(math.prod(grid)).reshape(grid)
    mirrored = (places, places[::-1], places[:, ::-1], places[::-1, ::-1])
    shifts = list(np.ndindex(*grid))
    return np.array([np.roll(one, shift, (0, 1)).ravel() for one in mirrored for shift in shifts])
