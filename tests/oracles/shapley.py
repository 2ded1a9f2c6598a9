"""Shapley values straight from their definition: the mean marginal contribution over all orders of the features."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

Game = Callable[[np.ndarray], np.ndarray]


def shapley_by_permutations(n: int, game: Game) -> np.ndarray:
    """Shapley values by walking all n! orders (n <= 7). Source: Shapley (1953), eq. 13."""
    phi = np.zeros(n)
    orders = list(itertools.permutations(range(n)))
    for order in orders:
        chain = np.zeros((n + 1, n), dtype=bool)
        for step, feature in enumerate(order):
            chain[step + 1] = chain[step]
            chain[step + 1, feature] = True
        phi[list(order)] += np.diff(game(chain))
    return phi / len(orders)


def table_game(values: np.ndarray) -> Game:
    """The game whose coalition S has the value at index sum of 2^i over i in S."""
    powers = 1 << np.arange(len(values).bit_length() - 1)
    return lambda keep: values[keep @ powers]


def unanimity_game(members: list[int]) -> Game:
    """The game that is worth 1 once all members are in: each member's Shapley value is 1 / len(members)."""
    return lambda keep: keep[:, members].all(axis=1).astype(np.float64)
