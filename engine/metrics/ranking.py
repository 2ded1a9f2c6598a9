"""The order of features by their scores, and how many of them a share is: one rule for all metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

TIES = 0x7135
"""Keeps the draws that break ties apart from those of methods that draw with the same seed."""


def ranking(scores: Float[np.ndarray, "feature"], seed: Sequence[int]) -> Int[np.ndarray, "feature"]:
    """Places of the features, highest score first; unsigned scores likewise.

    Equal scores stand in a random order that depends on `seed` (a seed and what tells the input from others) and on
    nothing else: not on the position, which would favour maps that are flat where the important words tend to stand,
    and not on the method, so that two flat maps are ordered alike.
    """
    chance = np.random.default_rng([TIES, *seed]).permutation(len(scores))
    return np.lexsort((chance, -np.asarray(scores, dtype=np.float64)))


def number_of(percent: int, n: int) -> int:
    """How many of `n` features are `percent` of them: 0 for 0, else max(1, round(k n)), a half to the even number."""
    return 0 if percent == 0 or n == 0 else max(1, round(percent * n / 100))
