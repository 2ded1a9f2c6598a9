"""What rank agreement chance gives, when many maps are compared with one: so that a person does not read noise.

The scores are moved over the features in every way that chance could have put them (or many of them), and the best
rank correlation that any map then has is noted: in at most one of twenty ways it is beyond the limit. So the limit
holds for all maps together, whatever they have in common and however their values tie (Westfall and Young, 1993,
Resampling-based multiple testing; Nichols and Holmes, 2002, for maps whose neighbours are alike).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from engine.metrics.agreement import average_ranks, is_constant

LEVEL = 0.05
"""One input in twenty has a map beyond the limit although nothing agrees."""
EXACT = 7
"""Features up to which all orders are looked at: 5,040."""
DRAWS = 4_000
AT_ONCE = 500
ROUNDING = 1e-9

Orders = Int[np.ndarray, "draw feature"]


def limit_of_rho(
    maps: Float[np.ndarray, "map feature"],
    scores: Float[np.ndarray, "feature"],
    grid: tuple[int, int] | None = None,
) -> float | None:
    """What Spearman's rho of the best of these maps with the scores, whatever its sign, exceeds by chance in at most
    `LEVEL` of all cases; None where no rho can be told from chance: few features, or nothing that has an order.

    Texts: the scores in any order. Pictures (`grid`): shifted over the picture, its edges joined, and mirrored,
    because neighbouring patches are alike and would agree too often if they were taken apart.
    """
    ordered = maps[[len(one) > 0 and not is_constant(one) for one in maps]]
    if not len(ordered) or is_constant(scores):
        return None
    ranked, own = _standard(ordered), _standard(scores[None])[0]
    return _exceeded(np.concatenate([np.abs(own[part] @ ranked.T).max(1) for part in _orders(len(scores), grid)]))


def _exceeded(largest: Float[np.ndarray, "draw"]) -> float | None:
    allowed = math.floor(LEVEL * len(largest) + ROUNDING)
    limit = np.partition(largest, -allowed - 1)[-allowed - 1] if allowed else 1.0
    return None if limit >= 1 - ROUNDING else float(limit) + ROUNDING


def _standard(maps: Float[np.ndarray, "map feature"]) -> Float[np.ndarray, "map feature"]:
    """Ranks whose products are rank correlations."""
    ranks = np.stack([average_ranks(one) for one in maps])
    ranks -= ranks.mean(1, keepdims=True)
    return ranks / np.linalg.norm(ranks, axis=1, keepdims=True)


def _orders(n: int, grid: tuple[int, int] | None) -> Iterator[Orders]:
    """The ways in which chance could have placed the scores, the one in which they are among them."""
    if grid is not None:
        yield _moved(grid)
    elif n <= EXACT:
        yield np.array(list(itertools.permutations(range(n))))
    else:
        chance = np.random.default_rng(n)
        yield np.arange(n)[None]
        for _ in range(DRAWS // AT_ONCE):
            yield chance.random((AT_ONCE, n)).argsort(1)


def _moved(grid: tuple[int, int]) -> Orders:
    places = np.arange(math.prod(grid)).reshape(grid)
    mirrored = (places, places[::-1], places[:, ::-1], places[::-1, ::-1])
    shifts = list(np.ndindex(*grid))
    return np.array([np.roll(one, shift, (0, 1)).ravel() for one in mirrored for shift in shifts])
