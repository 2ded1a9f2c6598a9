"""Shapley values of a game within a budget of evaluations: plan the coalitions, evaluate them, solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from engine.errors import not_allowed, unknown
from engine.explainers.shapley.coalitions import checked, odd_weights
from engine.explainers.shapley.design import kernel_by_size, pairs_by_size, pairs_to_evaluate, sampled_pairs
from engine.explainers.shapley.surrogate import fit_prior, posterior_shapley, predict, signs

ORDERS = ("auto", "1")
FITTED = 3072
"""Pairs that the Gaussian process takes, its solve being cubic in them; further ones correct it by regression."""
TUNED = 128
"""Pairs, the most informative first, on which its scales are chosen; twice the features where that is more."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The coalitions to evaluate: `pairs`, the full one first, then their complements in the same order."""

    pairs: Bool[np.ndarray, "pair feature"]
    order: str

    @property
    def n(self) -> int:
        return self.pairs.shape[1]

    @property
    def keep(self) -> Bool[np.ndarray, "coalition feature"]:
        return np.concatenate([self.pairs, ~self.pairs])

    @property
    def complete(self) -> bool:
        """Whether these are all 2^n coalitions."""
        return 2 * len(self.pairs) == 2**self.n


@dataclass(frozen=True, eq=False)
class Estimate:
    """Shapley values in the game's unit; they sum to v_full - v_empty."""

    phi: Float[np.ndarray, "feature"]
    v_empty: float
    v_full: float
    evaluations: int
    order: int
    """Highest order of interaction that the estimate models; n where it is exact."""
    notes: tuple[str, ...]

    @property
    def additivity_gap(self) -> float:
        """|Σφ - (v_full - v_empty)|."""
        return abs(float(self.phi.sum()) - (self.v_full - self.v_empty))


def least_budget(n: int) -> int:
    """The smallest budget that `plan` takes: n + 2, or all 2^n coalitions where they are fewer."""
    return min(2**n, n + 2)


def plan(n: int, budget: int, seed: int = 0, order: str = "auto") -> Plan:
    """At most `budget` different coalitions of n features, the empty and the full one included.

    `order` is "auto" (all orders of interaction, as the evidence weighs them) or "1" (paired KernelSHAP).
    """
    if n < 1:
        raise not_allowed("n", "at least 1 feature", n, "Give a text with at least one token.")
    if order not in ORDERS:
        raise unknown("order", order, ORDERS)
    if budget < least_budget(n):
        step = "Raise the number of evaluations or shorten the text."
        raise not_allowed("budget", f"at least {least_budget(n)} evaluations for {n} features", budget, step)
    count = budget // 2
    if order == "auto" or count >= 1 << (n - 1):
        return Plan(pairs_to_evaluate(n, count, seed), order)
    full = np.ones((1, n), dtype=bool)
    return Plan(np.concatenate([full, sampled_pairs(n, count - 1, np.random.default_rng(seed), full)]), order)


def solve(plan: Plan, values: Float[np.ndarray, "coalition"]) -> Estimate:
    """The Shapley values that follow from the values of `plan.keep`, in its order."""
    value = checked(values, 2 * len(plan.pairs))
    with_, without = np.split(value, 2)
    odd = (with_ - without) / 2
    if plan.complete:
        phi, order = odd_weights(plan.pairs).T @ odd, plan.n
    else:
        phi, order = estimate(plan, odd)
    v_full, v_empty = float(with_[0]), float(without[0])
    phi = phi + (v_full - v_empty - phi.sum()) / plan.n
    return Estimate(phi, v_empty, v_full, len(value), order, remarks(plan))


def kernel_shap(
    n: int,
    evaluate: Callable[[Bool[np.ndarray, "coalition feature"]], Float[np.ndarray, "coalition"]],
    budget: int,
    seed: int = 0,
    order: str = "auto",
) -> Estimate:
    """`plan` and `solve` around one call of `evaluate`."""
    planned = plan(n, budget, seed, order)
    return solve(planned, evaluate(planned.keep))


def estimate(plan: Plan, odd: Float[np.ndarray, "pair"]) -> tuple[Float[np.ndarray, "feature"], int]:
    """φ from the odd part g of the game at the planned pairs, and the order of interaction it models."""
    scale = float(np.sqrt((odd**2).mean()))
    if scale == 0:
        return np.zeros(plan.n), 1
    if plan.order == "1":
        return regression(plan.pairs, odd, known=1), 1
    g, x = odd / scale, signs(plan.pairs)
    tuned, seen = max(TUNED, 2 * plan.n), plan.pairs[:FITTED]
    prior = fit_prior(x[:tuned], g[:tuned])
    phi, dual = posterior_shapley(seen, g[:FITTED], prior)
    if len(g) > FITTED:
        residual = g - predict(plan.pairs, seen, dual, prior)
        phi = posterior_without_noise(phi, seen, dual, prior.noise) + regression(plan.pairs, residual, FITTED)
    return scale * phi, prior.order()


def posterior_without_noise(
    phi: Float[np.ndarray, "feature"],
    seen: Bool[np.ndarray, "pair feature"],
    dual: Float[np.ndarray, "pair"],
    noise: float,
) -> Float[np.ndarray, "feature"]:
    """φ of the smooth part alone: the unexplained values are then in the residual."""
    return phi - noise * odd_weights(seen).T @ dual


def regression(
    pairs: Bool[np.ndarray, "pair feature"], g: Float[np.ndarray, "pair"], known: int
) -> Float[np.ndarray, "feature"]:
    """Paired KernelSHAP: least squares in the Shapley kernel under Σφ = 2 g(N).

    The first `known` pairs were chosen and stand for themselves; the others stand for their size's unseen ones.
    Sources: Lundberg and Lee (2017), theorem 2; Covert and Lee (2021), section 3.2 and 4.2.
    """
    n, total = pairs.shape[1], 2 * g[0]
    weight = np.sqrt(pair_weights(pairs, known))[1:, None]
    half = signs(pairs[1:]) / 2
    mean = half.mean(axis=1, keepdims=True)
    left = g[1:] - total * mean[:, 0]
    return np.linalg.lstsq(weight * (half - mean), weight[:, 0] * left, rcond=None)[0] + total / n


def pair_weights(pairs: Bool[np.ndarray, "pair feature"], known: int) -> Float[np.ndarray, "pair"]:
    """The Shapley kernel of each pair times how many pairs of its size it stands for; 0 for the full one."""
    n = pairs.shape[1]
    size = np.minimum(pairs.sum(axis=1), n - pairs.sum(axis=1))
    count = np.concatenate([[1.0], pairs_by_size(n)])
    kernel = np.concatenate([[0.0], kernel_by_size(n)]) / count
    chosen, drawn = (np.bincount(part, minlength=len(count)) for part in (size[:known], size[known:]))
    stands_for = (count - chosen) / np.maximum(drawn, 1)
    return kernel[size] * np.where(np.arange(len(pairs)) < known, 1.0, stands_for[size])


def remarks(plan: Plan) -> tuple[str, ...]:
    """What a reader of the estimate should know."""
    if plan.complete:
        return ("exact: all coalitions were evaluated",)
    if len(plan.pairs) <= plan.n:
        return (f"coarse: {2 * len(plan.pairs)} evaluations, {2 * plan.n + 2} show every feature alone and left out",)
    return ()
