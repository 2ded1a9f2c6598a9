"""Coalitions of features, their weights in the Shapley value, and the exact value from all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from engine.errors import ExegesisError, not_allowed

EXACT_LIMIT = 14


def all_coalitions(n: int) -> Bool[np.ndarray, "coalition feature"]:
    """Every subset of n features; row k holds feature i where bit i of k is set."""
    return ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(bool)


def all_pairs(n: int) -> Bool[np.ndarray, "pair feature"]:
    """One coalition of each complementary pair, the full one first."""
    rows = all_coalitions(n)
    return rows[rows[:, 0]][::-1]


def shapley_weights(keep: Bool[np.ndarray, "coalition feature"]) -> Float[np.ndarray, "coalition feature"]:
    """W with φ = Wᵀ v over all coalitions: (s-1)!(n-s)!/n! for members, -s!(n-s-1)!/n! for the others.

    Source: Shapley (1953), eq. 13.
    """
    from scipy.special import gammaln  # late: the list of explainers does without scipy

    n, size = keep.shape[1], keep.sum(axis=1).astype(np.float64)
    member = np.exp(gammaln(np.maximum(size, 1)) + gammaln(n - size + 1) - gammaln(n + 1))
    other = np.exp(gammaln(size + 1) + gammaln(np.maximum(n - size, 1)) - gammaln(n + 1))
    return np.where(keep, member[:, None], -other[:, None])


def odd_weights(keep: Bool[np.ndarray, "pair feature"]) -> Float[np.ndarray, "pair feature"]:
    """The same over complementary pairs, to be multiplied by g(S) = (v(S) - v(N\\S)) / 2."""
    return 2 * shapley_weights(keep)


def exact(
    n: int, values: Callable[[Bool[np.ndarray, "coalition feature"]], Float[np.ndarray, "coalition"]]
) -> Float[np.ndarray, "feature"]:
    """Shapley values from all 2^n coalitions, n <= 14; they sum to v(N) - v(∅). Unit of v.

    Source: Shapley (1953), eq. 13.
    """
    if not 1 <= n <= EXACT_LIMIT:
        raise not_allowed(
            "n", f"between 1 and {EXACT_LIMIT} features (2^n evaluations)", n, "Use kernel_shap or a shorter text."
        )
    keep = all_coalitions(n)
    return shapley_weights(keep).T @ checked(values(keep), len(keep))


def checked(values: np.ndarray, expected: int) -> Float[np.ndarray, "coalition"]:
    """The game's values as float64, one a coalition and finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (expected,):
        raise not_allowed("values", f"one number for each of {expected} coalitions", array.shape)
    if not np.isfinite(array).all():
        raise ExegesisError("values: the model gave a value that is not finite; check its weights and its precision.")
    return array
