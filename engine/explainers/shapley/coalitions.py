"""Coalitions of features: their weights in the Shapley value, the exact value from all of them, samples of their pairs.

A pair is a coalition and its complement, represented by a row for one of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.errors import ExegesisError, not_allowed
from engine.lazy import scipy

EXACT_LIMIT = 14
FEW = 32
"""Number of missing pairs up to which `2 * FEW` are drawn at once, since some are drawn twice."""
MAX_PAIRS = 10**300
"""Upper limit of counts: beyond a thousand features the binomials leave the range of a float."""


def all_coalitions(n: int) -> Bool[np.ndarray, "coalition feature"]:
    """Return every subset of n features; row k holds feature i if bit i of k is set."""
    return ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(bool)


def all_pairs(n: int) -> Bool[np.ndarray, "pair feature"]:
    """Return one coalition of each complementary pair, the full one first."""
    rows = all_coalitions(n)
    return rows[rows[:, 0]][::-1]


def signs(keep: Bool[np.ndarray, "pair feature"]) -> Float[np.ndarray, "pair feature"]:
    """Return 1 for kept and -1 for removed features."""
    return 2.0 * keep - 1.0


def shapley_weights(keep: Bool[np.ndarray, "coalition feature"]) -> Float[np.ndarray, "coalition feature"]:
    """Return W with φ = Wᵀ v over all coalitions: (s-1)!(n-s)!/n! for members, -s!(n-s-1)!/n! for the others.

    Source: Shapley (1953), eq. 13.
    """
    gammaln = scipy.special.gammaln
    n, size = keep.shape[1], keep.sum(axis=1).astype(np.float64)
    member = np.exp(gammaln(np.maximum(size, 1)) + gammaln(n - size + 1) - gammaln(n + 1))
    other = np.exp(gammaln(size + 1) + gammaln(np.maximum(n - size, 1)) - gammaln(n + 1))
    return np.where(keep, member[:, None], -other[:, None])


def odd_weights(keep: Bool[np.ndarray, "pair feature"]) -> Float[np.ndarray, "pair feature"]:
    """Return weights over complementary pairs, to be multiplied by g(S) = (v(S) - v(N\\S)) / 2."""
    return 2 * shapley_weights(keep)


def exact(
    n: int, values: Callable[[Bool[np.ndarray, "coalition feature"]], Float[np.ndarray, "coalition"]]
) -> Float[np.ndarray, "feature"]:
    """Compute Shapley values from all 2^n coalitions, n <= 14; they sum to v(N) - v(∅). Unit of v.

    Source: Shapley (1953), eq. 13.
    """
    if not 1 <= n <= EXACT_LIMIT:
        raise not_allowed(
            "n", f"between 1 and {EXACT_LIMIT} features (2^n evaluations)", n, "Use kernel_shap or a shorter text."
        )
    keep = all_coalitions(n)
    return shapley_weights(keep).T @ check_values(values(keep), len(keep))


def check_values(values: np.ndarray, expected: int) -> Float[np.ndarray, "coalition"]:
    """Return the game's values as float64. Errors: not one per coalition, or not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (expected,):
        raise not_allowed("values", f"one number for each of {expected} coalitions", array.shape)
    if not np.isfinite(array).all():
        raise ExegesisError("values: the model gave a value that is not finite; check its weights and its precision.")
    return array


def sample_pairs(
    n: int, count: int, generator: np.random.Generator, taken: Bool[np.ndarray, "other feature"]
) -> Bool[np.ndarray, "pair feature"]:
    """Sample `count` pairs that are not in `taken`: sizes weighted by the Shapley kernel, taken whole if they fit."""
    if count == 0:
        return np.zeros((0, n), dtype=bool)
    existing = {*_names(taken)}
    sizes = np.minimum(taken.sum(axis=1), n - taken.sum(axis=1))
    free = pairs_by_size(n) - np.bincount(sizes, minlength=n // 2 + 1)[1:]
    quota = allocate(count, kernel_by_size(n), free)
    parts = [draw_pairs_of_size(n, s + 1, int(q), generator, existing) for s, q in enumerate(quota) if q]
    return np.concatenate(parts)


def draw_pairs_of_size(
    n: int, size: int, count: int, generator: np.random.Generator, existing: set[bytes]
) -> Bool[np.ndarray, "pair feature"]:
    """Draw `count` new pairs whose smaller side has `size` members, uniformly, and add them to `existing`."""
    names: list[bytes] = []
    while missing := count - len(names):
        for rows in (missing, missing) if missing > FEW else (2 * FEW,):
            if len(names) == count:  # the second part is rarely needed; skipping it keeps later draws the same
                cast(np.random.PCG64, generator.bit_generator).advance(rows * n)
                break
            drawn = _names(smallest(generator.random((rows, n)), size))
            new = [name for name in drawn if name not in existing][: count - len(names)]
            names += new
            existing.update(new)
    return np.frombuffer(b"".join(names), dtype=bool).reshape(count, n)


def smallest(keys: Float[np.ndarray, "row feature"], size: int) -> Bool[np.ndarray, "row feature"]:
    """Whether each key is among the `size` smallest of its row; keys must differ."""
    return keys <= np.partition(keys, size - 1, axis=1)[:, size - 1, None]


def _names(rows: Bool[np.ndarray, "pair feature"]) -> dict[bytes, None]:
    """Return the pairs as bytes, without duplicates, in their order."""
    each = np.ascontiguousarray(canonical_pairs(rows)).view(f"V{rows.shape[1]}")
    return dict.fromkeys(each[:, 0].tolist())


def pairs_by_size(n: int) -> Float[np.ndarray, "size"]:
    """Return the number of pairs whose smaller side has 1, 2, ... members."""
    return np.array([min(math.comb(n, s), MAX_PAIRS) / (2 if 2 * s == n else 1) for s in range(1, n // 2 + 1)])


def kernel_by_size(n: int) -> Float[np.ndarray, "size"]:
    """Return the Shapley kernel's mass on each size of pair, up to a constant (Lundberg and Lee (2017), theorem 2)."""
    sizes = np.arange(1, n // 2 + 1)
    return 1 / (sizes * (n - sizes)) / np.where(2 * sizes == n, 2, 1)


def allocate(count: int, weight: Float[np.ndarray, "size"], free: Float[np.ndarray, "size"]) -> Int[np.ndarray, "size"]:
    """Allocate `count` places in proportion to the weights, at most `free` per size."""
    places = np.zeros(len(free))
    open_ = free > 0
    while (left := min(count, free.sum()) - places.sum()) > 1e-9:
        share = left * weight * open_ / (weight * open_).sum()
        places = np.minimum(places + share, free)
        open_ = places < free - 1e-9
    whole = np.floor(places + 1e-9)
    rest = round(min(count, float(free.sum())) - whole.sum())
    whole[np.argsort(whole - places, kind="stable")[:rest]] += 1
    return whole.astype(np.int64)


def canonical_pairs(rows: Bool[np.ndarray, "pair feature"]) -> Bool[np.ndarray, "pair feature"]:
    """Return the coalition of each pair that holds feature 0."""
    return np.where(rows[:, :1], rows, ~rows)


def distinct_pairs(rows: Bool[np.ndarray, "pair feature"]) -> Bool[np.ndarray, "other feature"]:
    """Return the pairs without duplicates, in order of first occurrence; the full pair is left out."""
    rows = canonical_pairs(rows)
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    return rows[first][~rows[first].all(axis=1)]
