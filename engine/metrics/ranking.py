"""Ranking of features by score: ranks, ties, the size of a share, and rank correlation; the same rules for all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

TIES = 0x7135
"""Separates the draws that break ties from those of methods with the same seed."""
LEVEL = 0.05
"""Share of inputs for which some map exceeds the limit by chance: one in twenty."""
EXACT = 7
"""Maximum number of features of which all orders are enumerated: 5,040."""
DRAWS = 4_000
AT_ONCE = 500
ROUNDING = 1e-9

FeatureScores = Float[np.ndarray, "feature"]
Orders = Int[np.ndarray, "draw feature"]


def rank_features(scores: FeatureScores, seed: Sequence[int]) -> Int[np.ndarray, "feature"]:
    """Return the indices of the features, highest score first, for signed and unsigned scores alike.

    Equal scores are in a random order that depends only on `seed` (a seed and the identity of the input): not on the
    position, which would favor maps that are flat where important words tend to be, and not on the method, so that two
    flat maps have the same order.
    """
    chance = np.random.default_rng([TIES, *seed]).permutation(len(scores))
    return np.lexsort((chance, -np.asarray(scores, dtype=np.float64)))


def count_of_percent(percent: int, n: int) -> int:
    """Return how many of `n` features are `percent` of them: 0 for 0, else max(1, round(k n)), halves to even."""
    return 0 if percent == 0 or n == 0 else max(1, round(percent * n / 100))


def average_ranks(scores: FeatureScores) -> FeatureScores:
    """Return ranks from 1 for the lowest score to n for the highest; equal scores share the mean of their ranks.

    Equals `scipy.stats.rankdata`, in half of its time for one map, and without the second that importing `scipy.stats`
    takes, which would slow down pages that rank cached maps.
    """
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


def is_constant(scores: FeatureScores) -> bool:
    """Whether all scores are equal; True for a single score."""
    return bool((scores == scores[0]).all())


def spearman(a: FeatureScores, b: FeatureScores) -> float | None:
    """Return Spearman's rho: the correlation of the ranks, equal scores sharing their average rank (Spearman, 1904).

    From -1 to 1; None if a map is constant, because it has no order. `scipy.stats.spearmanr` agrees to rounding, but
    takes four times as long for two maps, and a search compares the maps of a whole data set.
    """
    if is_constant(a) or is_constant(b):
        return None
    return spearman_of_pairs([a, b])[0]


def spearman_of_pairs(maps: Sequence[FeatureScores]) -> list[float]:
    """Return Spearman's rho of each pair of maps, none of them constant, in the order of `itertools.combinations`."""
    centered = [ranks - ranks.mean() for ranks in map(average_ranks, maps)]
    return [
        float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0)) for x, y in itertools.combinations(centered, 2)
    ]


def top_k_overlap(a: FeatureScores, b: FeatureScores, k: int) -> float:
    """Return the share of the k features with the highest scores that both maps have in common, from 0 to 1.

    The mean over all orders of equal scores, independent for each map: with a shared order, maps would agree on
    features that neither of them distinguishes.
    """
    return float(top_k_probability(a, k) @ top_k_probability(b, k)) / k


def top_k_probability(scores: FeatureScores, k: int) -> FeatureScores:
    """Return the probability of each feature to be among the k highest, with ties in random order; sums to k."""
    edge = np.sort(scores)[-k]
    above, at = scores > edge, scores == edge
    return above + at * (k - above.sum()) / at.sum()


def rho_limit(
    maps: Float[np.ndarray, "map feature"], scores: FeatureScores, grid: tuple[int, int] | None = None
) -> float | None:
    """Return the rank correlation that the best of many maps reaches by chance when compared with one map.

    By chance, the largest absolute Spearman's rho of these maps with the scores exceeds the limit in at most `LEVEL` of
    all cases. None if no rho is significant: too few features, or no map or scores with an order.

    The scores are permuted over the features in all ways that are possible by chance, or in many of them, and the
    largest rank correlation of any map is recorded. So the limit holds for all maps jointly, whatever they have in
    common and however their values tie (Westfall and Young, 1993, Resampling-based multiple testing; Nichols and
    Holmes, 2002, for maps whose neighbors are alike). Texts: the scores in any order. Pictures (`grid`): shifted over
    the picture, with joined edges, and mirrored, because neighboring patches are alike: if patches were permuted
    separately, maps would exceed the limit too often.
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
    """Return ranks, standardized so that their inner products are rank correlations."""
    ranks = np.stack([average_ranks(one) for one in maps])
    ranks -= ranks.mean(1, keepdims=True)
    return ranks / np.linalg.norm(ranks, axis=1, keepdims=True)


def _permutations(n: int) -> Iterator[Orders]:
    """Yield all orders of a few features, else a sample of orders that includes the given one."""
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
