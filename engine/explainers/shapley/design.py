"""Which coalitions to evaluate: complementary pairs, first the most informative ones, then a stratified sample."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.explainers.shapley.coalitions import all_pairs
from engine.explainers.shapley.surrogate import interaction_kernel, shapley_covariance, signs, typical_prior

DESIGNED = 512
"""Pairs chosen one by one; beyond them a sample does as well, and choosing costs their square."""
ENUMERABLE = 12
POOL = 2048
MOST_PAIRS = 10**300
"""Where counting stops: beyond a thousand features the binomials leave the range of a float."""
STRENGTH, NOISE, LINEAR = 0.4, 0.1, 100.0
"""The design's prior: stronger interactions than the typical game's, so that it also serves the odd ones out."""


def pairs_to_evaluate(n: int, count: int, seed: int) -> Bool[np.ndarray, "pair feature"]:
    """`count` different complementary pairs, one coalition of each; the full one first.

    The design is the same for every seed but for the order of the features, which the seed draws.
    """
    generator = np.random.default_rng(seed)
    if count >= 1 << (n - 1):
        return all_pairs(n)
    chosen = informative_pairs(n, min(count, DESIGNED))[:, generator.permutation(n)]
    return np.concatenate([chosen, sampled_pairs(n, count - len(chosen), generator, chosen)])


@lru_cache(maxsize=64)
def informative_pairs(n: int, count: int) -> Bool[np.ndarray, "pair feature"]:
    """Greedy A-optimal design: each next pair lowers Σ_i var(φ_i | evaluated pairs) most, under a fixed prior.

    Not adaptive, so all evaluations can run in one batch. Source of the criterion: Chaloner and Verdinelli (1995),
    Bayesian Experimental Design, section 2.2. The variances are updated by one pivoted Cholesky row a step. Features
    are exchangeable under the prior, so many pairs tie: seeded factors decide, by gaps of 1e-7 and more, which double
    precision keeps apart on any processor.
    """
    pool = candidates(n)
    prior = typical_prior(n, STRENGTH, NOISE)
    x = signs(pool)
    gain = shapley_covariance(pool, prior, free=LINEAR)
    left = np.full(len(pool), prior.c + LINEAR + prior.noise)
    rows = np.zeros((count, len(pool)))
    tie = 1 + 1e-3 * np.random.default_rng(0).random(len(pool))
    chosen = np.zeros(count, dtype=np.int64)
    for step in range(count):
        worth = (gain**2).sum(axis=1) / left * tie
        worth[chosen[:step]] = -1
        pick = int(np.argmax(worth)) if step else 0
        column = prior.c * interaction_kernel(x, x[pick : pick + 1], prior.b)[0][:, 0] + LINEAR / n * (x @ x[pick])
        column[pick] += prior.noise
        row = (column - rows[:step, pick] @ rows[:step]) / math.sqrt(left[pick])
        rows[step], chosen[step] = row, pick
        gain -= np.outer(row, gain[pick] / math.sqrt(left[pick]))
        left = np.maximum(left - rows[step] ** 2, prior.noise / 2)
    return pool[chosen]


def candidates(n: int) -> Bool[np.ndarray, "pair feature"]:
    """All pairs of up to 12 features; else singles and a spread of sizes. The full coalition is row 0."""
    if n <= ENUMERABLE:
        return all_pairs(n)
    generator = np.random.default_rng(n)
    full, left_out = np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)
    count = max(POOL, 4 * n) - n - 1
    small = generator.integers(2, n // 2 + 1, size=count // 2)
    size = np.concatenate([small, generator.binomial(n, 0.5, size=count - len(small)).clip(1, n - 1)])
    drawn = generator.random((count, n)).argsort(axis=1).argsort(axis=1) < size[:, None]
    return np.concatenate([full, distinct(np.concatenate([left_out, drawn]))])


def sampled_pairs(
    n: int, count: int, generator: np.random.Generator, taken: Bool[np.ndarray, "other feature"]
) -> Bool[np.ndarray, "pair feature"]:
    """`count` pairs that are not in `taken`: sizes as the Shapley kernel weighs them, whole sizes where they fit."""
    if count == 0:
        return np.zeros((0, n), dtype=bool)
    known = {row.tobytes() for row in canonical(taken)}
    sizes = np.minimum(taken.sum(axis=1), n - taken.sum(axis=1))
    free = pairs_by_size(n) - np.bincount(sizes, minlength=n // 2 + 1)[1:]
    quota = shared_out(count, kernel_by_size(n), free)
    parts = [draw_size(n, s + 1, int(q), generator, known) for s, q in enumerate(quota) if q]
    return np.concatenate(parts)


def draw_size(
    n: int, size: int, count: int, generator: np.random.Generator, known: set[bytes]
) -> Bool[np.ndarray, "pair feature"]:
    """`count` new pairs whose smaller side has `size` members, uniformly; `known` grows by them."""
    found: list[np.ndarray] = []
    while len(found) < count:
        block = max(64, 2 * (count - len(found)))
        rows = canonical(generator.random((block, n)).argsort(axis=1).argsort(axis=1) < size)
        for row in rows:
            name = row.tobytes()
            if name not in known and len(found) < count:
                known.add(name)
                found.append(row)
    return np.array(found)


def pairs_by_size(n: int) -> Float[np.ndarray, "size"]:
    """How many pairs have a smaller side of 1, 2, ... members."""
    return np.array([min(math.comb(n, s), MOST_PAIRS) / (2 if 2 * s == n else 1) for s in range(1, n // 2 + 1)])


def kernel_by_size(n: int) -> Float[np.ndarray, "size"]:
    """The Shapley kernel's mass on each size of pair, up to a constant (Lundberg and Lee (2017), theorem 2)."""
    sizes = np.arange(1, n // 2 + 1)
    return 1 / (sizes * (n - sizes)) / np.where(2 * sizes == n, 2, 1)


def shared_out(
    count: int, weight: Float[np.ndarray, "size"], free: Float[np.ndarray, "size"]
) -> Int[np.ndarray, "size"]:
    """`count` places in proportion to the weights, no size above what it has free."""
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


def canonical(rows: Bool[np.ndarray, "pair feature"]) -> Bool[np.ndarray, "pair feature"]:
    """Of each pair the coalition that holds feature 0."""
    return np.where(rows[:, :1], rows, ~rows)


def distinct(rows: Bool[np.ndarray, "pair feature"]) -> Bool[np.ndarray, "other feature"]:
    """The pairs without repeats, in their first order; the full pair is left out."""
    rows = canonical(rows)
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    return rows[first][~rows[first].all(axis=1)]
