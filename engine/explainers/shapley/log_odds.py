"""A surrogate of the log odds of a probability, which predicts the coalitions that were not evaluated.

A classifier adds up evidence and squashes the sum, so features interact less in its log odds than in its probability.
A Gaussian process (`surrogate`) for the odd and the even part of

    l(S) = log(p / (1 - p)),  p = ε + (1 - 2ε) v(S)

predicts l at any coalition, and v = (p - ε) / (1 - 2ε). ε bounds the slope of l, so that the rounding of a saturated
probability does not become a large difference, and 0 and 1 have finite log odds. The Shapley values of the predicted
game have no closed form: they are estimated by regression in the Shapley kernel on predictions at `unseen_pairs`, which
cost no model evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float

from engine.explainers.shapley.coalitions import all_pairs, canonical_pairs, sample_pairs, signs
from engine.explainers.shapley.surrogate import (
    BLOCK,
    FREE,
    Prior,
    covariance,
    fit_prior,
    interaction_kernel,
    interaction_sums,
)

EPSILON = 1e-5
"""ε of the module's formula."""
UNSEEN = 4096
"""Maximum number of unevaluated pairs that the surrogate predicts."""

OddPart = Callable[[Bool[np.ndarray, "pair feature"]], Float[np.ndarray, "pair"]]


def log_odds(values: Float[np.ndarray, "coalition"]) -> Float[np.ndarray, "coalition"]:
    """Compute l of the module's formula."""
    p = EPSILON + (1 - 2 * EPSILON) * values
    return np.log(p) - np.log1p(-p)


def probability(log_odds: Float[np.ndarray, "coalition"]) -> Float[np.ndarray, "coalition"]:
    """Invert `log_odds`."""
    return ((1 + np.tanh(log_odds / 2)) / 2 - EPSILON) / (1 - 2 * EPSILON)


def fit_log_odds(
    pairs: Bool[np.ndarray, "pair feature"],
    kept: Float[np.ndarray, "pair"],
    removed: Float[np.ndarray, "pair"],
    tuned: int,
) -> OddPart:
    """Fit the surrogate to the values of `pairs` and of their complements, its scales to the first `tuned` pairs.

    Returns its prediction of the odd part (v(S) - v(N\\S)) / 2.
    """
    x, (up, down) = signs(pairs), (log_odds(kept), log_odds(removed))
    odd, even = (up - down) / 2, (up + down) / 2
    center = even.mean()
    scale = np.sqrt((odd**2).mean() + even.var())
    odd, even = odd / scale, (even - center) / scale
    prior = fit_prior(x[:tuned], odd[:tuned], even[:tuned])
    odd_dual = np.linalg.solve(covariance(x, prior), odd)
    even_dual = np.linalg.solve(even_covariance(x, prior), even)
    duals = np.stack([odd_dual, even_dual], axis=1)
    linear, constant = FREE / x.shape[1] * (odd_dual @ x), FREE * even_dual.sum()

    def predict_block(y: Float[np.ndarray, "pair feature"]) -> Float[np.ndarray, "pair"]:
        sinh, cosh = interaction_sums(y, x, prior.b, duals)
        odd = scale * (prior.c * sinh[:, 0] + y @ linear)
        even = scale * (prior.c * cosh[:, 1] + constant) + center
        return (probability(even + odd) - probability(even - odd)) / 2

    def predict(keep: Bool[np.ndarray, "pair feature"]) -> Float[np.ndarray, "pair"]:
        blocks = range(0, len(keep), BLOCK)
        return np.concatenate([predict_block(signs(keep[start : start + BLOCK])) for start in blocks])

    return predict


def even_covariance(x: Float[np.ndarray, "pair feature"], prior: Prior) -> Float[np.ndarray, "pair pair"]:
    """Return the covariance K of the even part between evaluated pairs."""
    k = prior.c * interaction_kernel(x, x, prior.b)[1] + FREE
    k[np.diag_indices(len(x))] += prior.noise
    return k


def unseen_pairs(pairs: Bool[np.ndarray, "pair feature"]) -> Bool[np.ndarray, "other feature"]:
    """Return pairs that are not in `pairs`: all, or `UNSEEN` sampled in proportion to the Shapley kernel. Read-only."""
    return _unseen_pairs(pairs.shape[1], pairs.tobytes())


@lru_cache(maxsize=16)
def _unseen_pairs(n: int, seen: bytes) -> Bool[np.ndarray, "other feature"]:
    """Cached form of `unseen_pairs`: as no value of the game matters, texts of one length share pairs and design."""
    pairs = np.frombuffer(seen, dtype=bool).reshape(-1, n)
    if 1 << (n - 1) > UNSEEN:
        unseen = sample_pairs(n, UNSEEN, np.random.default_rng(n), pairs)
    else:
        every, codes = all_pairs(n), 1 << np.arange(n)
        unseen = every[~np.isin(every @ codes, canonical_pairs(pairs) @ codes)]
    unseen.flags.writeable = False
    return unseen
