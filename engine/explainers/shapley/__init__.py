"""Shapley values of any game, exact or within a budget of evaluations. Pure NumPy: no model, no torch.

A game v assigns a value to each set S of kept features. `exact` evaluates all 2^n sets. `plan`, `solve` and
`kernel_shap` need far fewer, by five ideas:

1. **Pairs.** The Shapley value depends only on the odd part g(S) = (v(S) - v(N\\S)) / 2 (Fumagalli et al. (2026),
   An Odd Estimator for Shapley Values). In Fourier terms g = Σ_{|T| odd} ĝ_T χ_T and φ_i = Σ_{T∋i} 2 ĝ_T / |T|.
   A pair S, N\\S gives g(S), which halves the number of unknowns.
2. **A surrogate of every odd order.** k-additive regression (Pelegrina et al. 2023) fits ĝ_T for |T| <= k by least
   squares; it needs more pairs than terms and blows up just before. Here ĝ has a Gaussian prior whose variance falls
   with |T| and differs by feature, at rates that maximize the evidence (`surrogate`). No order is chosen: with few
   pairs the estimate is a shrunken paired KernelSHAP, with more it takes in interactions of order 3, 5, ..., and
   with all coalitions it is exact. φ's posterior mean is in closed form at the cost of one solve.
3. **A design.** The pairs are those that lower Σ var(φ_i) most under a typical prior (`design`), each at most once.
   It does not depend on values, so one batch evaluates all pairs, and the design is cached between calls.
4. **Log odds.** For a probability, a second surrogate predicts the log odds (`log_odds`), in which features interact
   less: a classifier adds up evidence and squashes the sum. Its predictions at pairs that were not evaluated, minus
   those of the first surrogate, enter the regression of the next point, at no model evaluation.
5. **Residuals.** Beyond 3,072 pairs, the residual of the surrogate is estimated by weighted least squares in the
   Shapley kernel (regression adjustment as in Witter et al. 2025), which keeps the estimate consistent.

Σφ = v(N) - v(∅) holds to rounding.

No package implements this: shap's `KernelExplainer` and shapiq's paired KernelSHAP fit only the first order, and
Captum's `KernelShap` samples without pairs. At equal budgets the best other estimator, including those of shapiq 1.8,
has 2.8 to 4.2 times the error at 12 features, and 0.9 to 1.4 times on a text of 30 and one of 60 tokens of a small
model (the benchmarks `shapley_error` and `shapley_error_models`). None evaluates the coalitions of many inputs in
shared passes.

Measured during development, on 10 sentences of another fine-tuning of MiniLM with 2 or 3 seeds: compared with evenly
sampled levels, the design lowers the error by a fifth to two fifths; compared with one common scale, a scale for each
feature lowers it by 4 to 20%. Left out, because they gained next to nothing: a linear control variate, such as the
gradient (the linear part of g is hardly shrunk; one within 35% of φ lowers the error by 1 to 3%, and with order "1"
nothing changes at all), choosing later pairs by the values of earlier ones, scales fitted to the even part too (0 to
5%), a free value whose variance depends on the size, the best of several designs.

Tried on version 3 and left out (the first three: mean error over 20 sentences of five models, 12 features, 64 to 256
evaluations). Other covariances of the log odds (products of neighboring words, a geometric decay in the order, a linear
part with a learned scale) change the error by -3 to 3%, and an ε of 0.001 to 0.05 raises it by 1 to 13%. Scales from
500 pairs, as an oracle, lower it by 2 to 5%, so better scales would help little. The gradient of the log odds in a soft
mask, at 24 coalitions of eight sentences of four models, correlates with the effect of a word by 0.03 to 0.48 (by 0.22
to 0.72 if the mask is half soft), and costs as much as three evaluations. With 16,384 unseen pairs the error of a
constructed game of 30 and 60 features is 13 to 21% lower at 512 and 1,024 evaluations, 1 to 5% at 128, but the solve
takes two to three times as long; 32,768 do not help on a text of a real model. Below one pair per feature, single
coalitions of random sizes have an error of 0.43 instead of 0.70 at 60 features and 64 evaluations, but 0.34 instead of
0.19 at 30.

Such surrogates cannot reach a quarter of the error of the best other estimator. Given the size (not the sign) of every
Fourier coefficient of the log odds as its prior variance, the log odds' process has 0.74, 0.75, 0.78 and 0.71 times the
error at 64 to 512 evaluations (14 inputs of four models, 12 features): a factor of 2.8 would become 3.7, and anything
learned from values is less informative. The error falls as the evaluations to the power of 1.2 at 12 features, of 0.5
at 30 and of 0.4 at 60 tokens, so a factor of four requires the information of 1.3, 9 and 25 times as many evaluations.
The model's states do not provide it either. The last hidden state, predicted by the same process and mapped to the
value by the exact head, changes the error by -3 to 0% (ten sentences of models of two classes), and the sum before the
last block's first layer norm by -5 to 4%. With the last of six blocks recomputed from predicted states, the error is
0.7 to 1.4 times as large at 64 evaluations and 0.7 to 1.0 times at 256; with the last three, at half an evaluation per
coalition, 0.5 to 1.3 and 0.8 to 0.9 times (three sentences). On three texts of 30 tokens of `t5-mini-context` the
prediction at unseen pairs correlates with the truth by 0.71 and 0.80 (128 and 256 evaluations), from the last hidden
state by 0.71 and 0.79, with half of the model recomputed by 0.73 and 0.80.

Also left out: a separate variance for each interaction (Student's t by EM; 1 to 6% higher at 64 evaluations, 3 to 8%
lower at 512), the posterior mean of the probability instead of the probability at the mean log odds (0 to 2% higher),
weights of the two surrogates, or a linear correction, from leave-one-out errors (-3 to 1%, and nothing), averages of
several priors (-5 to 7%), and, below one pair per feature, the chain of coalitions of a permutation with a process of
single log odds (0.35 instead of 0.69 on a constructed game of 60 features at 64 evaluations, but 1.0 to 1.6 instead of
0.6 to 0.9 on two texts of 60 and two of 45 tokens). One idea helps if a model has more than two classes: predicting the
log probabilities of all classes together, on the scales of the target's log odds, and taking their softmax. The error
is then 0.83 to 0.90 times the current one (17 inputs of 12 features, four models), 0.86 to 0.94 times for `scenes-vit`
with 60 superpixels, and the same if only two classes compete (four inputs of generated NLI).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float

from engine.errors import not_allowed, unknown
from engine.explainers.shapley.coalitions import (
    EXACT_LIMIT,
    all_coalitions,
    all_pairs,
    check_values,
    distinct_pairs,
    exact,
    kernel_by_size,
    odd_weights,
    pairs_by_size,
    sample_pairs,
    signs,
)
from engine.explainers.shapley.log_odds import fit_log_odds, unseen_pairs
from engine.explainers.shapley.surrogate import (
    fit_prior,
    interaction_kernel,
    posterior_shapley,
    predict,
    shapley_covariance,
    typical_prior,
)

__all__ = [
    "EXACT_LIMIT",
    "ORDERS",
    "ShapleyEstimate",
    "CoalitionPlan",
    "all_coalitions",
    "exact",
    "kernel_shap",
    "least_budget",
    "plan",
    "solve",
]


ORDERS = ("auto", "1")
DESIGNED = 512
"""Maximum number of pairs chosen one by one; beyond it a sample is as good, and the cost of choosing is quadratic."""
FITTED = 3072
"""Maximum number of pairs of the Gaussian process, whose solve is cubic; further pairs correct it by regression."""
TUNED = 128
"""Number of pairs, the most informative first, on which the scales are fitted; at least twice the features."""
SMALLEST = 1e-9
"""Root mean square of g below which log odds would differ only by rounding."""
MANY = 16
"""Pairs per feature above which a regression solves the normal equations, at a quarter of the cost."""
ENUMERABLE = 12
POOL = 2048
STRENGTH, NOISE, LINEAR = 0.4, 0.1, 100.0
"""Prior of the design: stronger interactions than in a typical game, so that it also suits unusual games."""


@dataclass(frozen=True, eq=False)
class CoalitionPlan:
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
class ShapleyEstimate:
    """Shapley values in the game's unit; they sum to v_full - v_empty."""

    phi: Float[np.ndarray, "feature"]
    v_empty: float
    v_full: float
    evaluations: int
    order: int
    """Highest order of interaction that the estimate models; n if it is exact."""
    notes: tuple[str, ...]


def least_budget(n: int) -> int:
    """Return the smallest budget that `plan` accepts: n + 2, or all 2^n coalitions if they are fewer."""
    return min(2**n, n + 2)


def plan(n: int, budget: int, seed: int = 0, order: str = "auto") -> CoalitionPlan:
    """Choose at most `budget` different coalitions of n features, including the empty and the full one.

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
        return CoalitionPlan(choose_pairs(n, count, seed), order)
    full = np.ones((1, n), dtype=bool)
    return CoalitionPlan(np.concatenate([full, sample_pairs(n, count - 1, np.random.default_rng(seed), full)]), order)


def choose_pairs(n: int, count: int, seed: int) -> Bool[np.ndarray, "pair feature"]:
    """Return `count` different complementary pairs, one coalition of each; the full one first.

    The designed pairs are the same for every seed up to the order of the features; further pairs are sampled.
    """
    generator = np.random.default_rng(seed)
    if count >= 1 << (n - 1):
        return all_pairs(n)
    chosen = informative_pairs(n, min(count, DESIGNED))[:, generator.permutation(n)]
    return np.concatenate([chosen, sample_pairs(n, count - len(chosen), generator, chosen)])


@lru_cache(maxsize=64)
def informative_pairs(n: int, count: int) -> Bool[np.ndarray, "pair feature"]:
    """Greedy A-optimal design: each pair lowers Σ_i var(φ_i | earlier pairs) most, under a fixed prior.

    Not adaptive, so all evaluations can run in one batch. Source of the criterion: Chaloner and Verdinelli (1995),
    Bayesian Experimental Design, section 2.2. The variances are updated by one pivoted Cholesky row per step. Features
    are exchangeable under the prior, so many pairs tie: seeded factors break the ties, by gaps of at least 1e-7, which
    double precision resolves on any processor.
    """
    pool = candidate_pairs(n)
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


def candidate_pairs(n: int) -> Bool[np.ndarray, "pair feature"]:
    """Return the pairs to choose from: all for up to 12 features, else those that leave out one feature and a spread of
    sizes. The full coalition is row 0."""
    if n <= ENUMERABLE:
        return all_pairs(n)
    generator = np.random.default_rng(n)
    full, left_out = np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)
    count = max(POOL, 4 * n) - n - 1
    small = generator.integers(2, n // 2 + 1, size=count // 2)
    size = np.concatenate([small, generator.binomial(n, 0.5, size=count - len(small)).clip(1, n - 1)])
    spread = generator.random((count, n)).argsort(axis=1).argsort(axis=1) < size[:, None]
    return np.concatenate([full, distinct_pairs(np.concatenate([left_out, spread]))])


def solve(plan: CoalitionPlan, values: Float[np.ndarray, "coalition"], probabilities: bool = False) -> ShapleyEstimate:
    """Estimate the Shapley values from the values of the coalitions `plan.keep`, in their order.

    `probabilities`: the values are probabilities, whose log odds are easier to predict.
    """
    value = check_values(values, 2 * len(plan.pairs))
    if probabilities and not ((value >= 0) & (value <= 1)).all():
        raise not_allowed("values", "between 0 and 1 with probabilities=True", f"{value.min()} to {value.max()}")
    with_, without = np.split(value, 2)
    odd = (with_ - without) / 2
    if plan.complete:
        phi, order = odd_weights(plan.pairs).T @ odd, plan.n
    else:
        phi, order = estimate(plan, odd, (with_ + without) / 2 if probabilities else None)
    v_full, v_empty = float(with_[0]), float(without[0])
    phi = phi + (v_full - v_empty - phi.sum()) / plan.n
    return ShapleyEstimate(phi, v_empty, v_full, len(value), order, notes_on(plan))


def kernel_shap(
    n: int,
    evaluate: Callable[[Bool[np.ndarray, "coalition feature"]], Float[np.ndarray, "coalition"]],
    budget: int,
    seed: int = 0,
    order: str = "auto",
    probabilities: bool = False,
) -> ShapleyEstimate:
    """Run `plan`, one call of `evaluate`, and `solve`."""
    coalitions = plan(n, budget, seed, order)
    return solve(coalitions, evaluate(coalitions.keep), probabilities)


def estimate(
    plan: CoalitionPlan, odd: Float[np.ndarray, "pair"], even: Float[np.ndarray, "pair"] | None
) -> tuple[Float[np.ndarray, "feature"], int]:
    """Return φ from the odd part g of the game at the planned pairs, and the highest order of interaction modeled.

    `even`: the even part of a game of probabilities; None for any other game.
    """
    scale = float(np.sqrt((odd**2).mean()))
    if scale == 0:
        return np.zeros(plan.n), 1
    if plan.order == "1":
        return regression(plan.pairs, odd, designed=1), 1
    g, x = odd / scale, signs(plan.pairs)
    tuned, observed = max(TUNED, 2 * plan.n), plan.pairs[:FITTED]
    prior = fit_prior(x[:tuned], g[:tuned])
    phi, dual = posterior_shapley(observed, g[:FITTED], prior)
    pairs, designed = plan.pairs, FITTED
    if even is not None and len(g) <= FITTED and scale > SMALLEST:
        predict_odd = fit_log_odds(plan.pairs, even + odd, even - odd, tuned)
        unseen = unseen_pairs(plan.pairs)
        pairs, designed = np.concatenate([plan.pairs, unseen]), len(g)
        g = np.concatenate([g, predict_odd(unseen) / scale])
    if len(g) > len(observed):
        residual = g - predict(pairs, observed, dual, prior)
        phi = smooth_posterior(phi, observed, dual, prior.noise) + regression(pairs, residual, designed)
    return scale * phi, prior.order()


def smooth_posterior(
    phi: Float[np.ndarray, "feature"],
    observed: Bool[np.ndarray, "pair feature"],
    dual: Float[np.ndarray, "pair"],
    noise: float,
) -> Float[np.ndarray, "feature"]:
    """Return φ of the smooth part alone; the unexplained values are then part of the residual."""
    return phi - noise * odd_weights(observed).T @ dual


def regression(
    pairs: Bool[np.ndarray, "pair feature"], g: Float[np.ndarray, "pair"], designed: int
) -> Float[np.ndarray, "feature"]:
    """Paired KernelSHAP: least squares in the Shapley kernel under Σφ = 2 g(N).

    The first `designed` pairs represent only themselves; the others also represent the unseen pairs of their size.
    Sources: Lundberg and Lee (2017), theorem 2; Covert and Lee (2021), section 3.2 and 4.2.
    """
    n, total = pairs.shape[1], 2 * g[0]
    weight = np.sqrt(pair_weights(pairs, designed))[1:, None]
    half = signs(pairs[1:]) / 2
    mean = half.mean(axis=1, keepdims=True)
    left = g[1:] - total * mean[:, 0]
    x, y = weight * (half - mean), weight[:, 0] * left
    if len(x) > MANY * n:  # well conditioned but for the direction in which Σφ changes, which stays 0
        x, y = x.T @ x, x.T @ y
    return np.linalg.lstsq(x, y, rcond=None)[0] + total / n


def pair_weights(pairs: Bool[np.ndarray, "pair feature"], designed: int) -> Float[np.ndarray, "pair"]:
    """Return the Shapley kernel of each pair times the number of pairs that it represents; 0 for the full one."""
    n = pairs.shape[1]
    size = np.minimum(pairs.sum(axis=1), n - pairs.sum(axis=1))
    count = np.concatenate([[1.0], pairs_by_size(n)])
    kernel = np.concatenate([[0.0], kernel_by_size(n)]) / count
    chosen, sampled = (np.bincount(part, minlength=len(count)) for part in (size[:designed], size[designed:]))
    stands_for = (count - chosen) / np.maximum(sampled, 1)
    return kernel[size] * np.where(np.arange(len(pairs)) < designed, 1.0, stands_for[size])


def notes_on(plan: CoalitionPlan) -> tuple[str, ...]:
    """Return notes for a reader of the estimate."""
    if plan.complete:
        return ("Exact: all coalitions were evaluated.",)
    if len(plan.pairs) <= plan.n:
        return (f"Coarse: {2 * len(plan.pairs)} evaluations, {2 * plan.n + 2} cover each feature alone and left out.",)
    return ()
