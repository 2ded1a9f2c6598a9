"""A Gaussian-process prior over the odd part of a game, with Shapley values in closed form.

With x ∈ {-1, 1}^n for a coalition (1 = kept) the prior covariance of g(S) = (v(S) - v(N\\S)) / 2 is

    k(x, y) = λ x·y / n  +  c sinh(Σ_i b_i x_i y_i) / sinh(Σ_i b_i)  +  η (1[x = y] - 1[x = -y]).

The first term leaves the linear part free. The second holds every interaction of odd order: its Fourier
coefficient of a set T has a variance proportional to Π_{i∈T} tanh b_i, because Π_i (1 + z_i tanh b_i) is
exp(b·z) / Π_i cosh b_i for z_i = ±1, and sinh takes the odd orders. So high orders shrink, and interactions of
features that do not interact shrink most. The third is a free value per coalition, which no interaction explains.
b, c and η maximize the evidence p(g | b, c, η) (Rasmussen and Williams (2006), eq. 5.8 and 5.9).

The Shapley value is linear in g. That of a Fourier term χ_T, |T| odd, is 2/|T| for the members of T, hence

    cov(φ_i, g(y)) = 2 λ y_i / n + c a_i ∫₀¹ Π_{j≠i} (1 + t a_j) + Π_{j≠i} (1 - t a_j) dt / D + η W_i(y)

with a_j = y_j tanh b_j, D = sinh(Σ b) / Π cosh b, and W the Shapley weights of a pair. The integrand is a
polynomial, so Gauss-Legendre quadrature is exact. φ's posterior mean is cov(φ, g) K⁻¹ g.

The even part e(S) = (v(S) + v(N\\S)) / 2 has the same prior with cosh for sinh in the numerator, the terms of even
order, and a free constant instead of the free linear part. φ does not depend on e, but e shows which features interact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.polynomial.legendre import leggauss

from engine.explainers.shapley.coalitions import odd_weights, signs
from engine.lazy import scipy

FREE = 1e4
"""λ: the variance of the linear part, in units of the mean square of g."""
STEPS, STEP_DECAY = 15, 0.85
FEATURE_STEP, COMMON_STEP = 1.0, 2.0
"""Maximum length of the first step in the log scale of one feature, and in the two log scales of all features."""
FLAT = 0.3
"""Gradient of the evidence, in nats, at which a step has half of its full length."""
SPREAD = 1.0
"""Prior standard deviation of log b, between games and between features."""
NODES = 64
BLOCK = 512
LOW_NOISE = np.log(1e-8)
LARGEST_TOTAL = 300.0
"""Σb beyond which exp(-2 Σb), the smallest of the exponentials, may leave the range of a float."""


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior's scales, for a g whose mean square is 1."""

    log_b: Float[np.ndarray, "feature"]
    log_c: float
    log_noise: float

    @property
    def b(self) -> Float[np.ndarray, "feature"]:
        return np.exp(self.log_b)

    @property
    def c(self) -> float:
        return float(np.exp(self.log_c))

    @property
    def noise(self) -> float:
        return float(np.exp(self.log_noise))

    def order(self, share: float = 0.99) -> int:
        """Return the odd order up to which the interactions hold `share` of the second term's prior variance."""
        sizes = np.array([1.0])
        for w in np.tanh(self.b):
            sizes = np.convolve(sizes, [1.0, w])
        odd = np.cumsum(sizes[1::2])
        return int(2 * np.searchsorted(odd, share * odd[-1]) + 1)


def typical_prior(n: int, strength: float = 0.2, noise: float = 1e-3) -> Prior:
    """Return the starting point of the search: interactions weaken quickly with their order, whatever n is."""
    return Prior(np.full(n, np.log(strength * min(1.0, 12 / n))), 0.0, float(np.log(noise)))


def interaction_kernel(
    x: Float[np.ndarray, "pair feature"], y: Float[np.ndarray, "other feature"], b: Float[np.ndarray, "feature"]
) -> tuple[Float[np.ndarray, "pair other"], Float[np.ndarray, "pair other"]]:
    """Compute sinh(x·diag(b)·y) / sinh(Σb) and its cosh counterpart, without overflow."""
    up, down, scale = _exponentials(x, y, b)
    sinh, cosh = up - down, np.add(up, down, out=up)
    sinh /= scale
    cosh /= scale
    return sinh, cosh


def interaction_sums(
    x: Float[np.ndarray, "pair feature"],
    y: Float[np.ndarray, "other feature"],
    b: Float[np.ndarray, "feature"],
    weights: Float[np.ndarray, "other sum"],
) -> tuple[Float[np.ndarray, "pair sum"], Float[np.ndarray, "pair sum"]]:
    """Compute `sinh @ weights, cosh @ weights` of `interaction_kernel`, without building the two kernels."""
    up, down, scale = _exponentials(x, y, b)
    above, below = up @ weights / scale, down @ weights / scale
    return above - below, above + below


def _exponentials(
    x: Float[np.ndarray, "pair feature"], y: Float[np.ndarray, "other feature"], b: Float[np.ndarray, "feature"]
) -> tuple[Float[np.ndarray, "pair other"], Float[np.ndarray, "pair other"], float]:
    """Compute exp(±x·diag(b)·y - Σb), and 1 - exp(-2 Σb)."""
    up, total = (x * b) @ y.T, float(b.sum())
    down = -total - up if total > LARGEST_TOTAL else None
    up -= total
    np.exp(up, out=up)
    return up, np.exp(-2 * total) / up if down is None else np.exp(down, out=down), float(-np.expm1(-2 * total))


def covariance(x: Float[np.ndarray, "pair feature"], prior: Prior) -> Float[np.ndarray, "pair pair"]:
    """Return the covariance K between observed pairs."""
    k = prior.c * interaction_kernel(x, x, prior.b)[0] + linear_kernel(x)
    k[np.diag_indices(len(x))] += prior.noise
    return k


def linear_kernel(x: Float[np.ndarray, "pair feature"]) -> Float[np.ndarray, "pair pair"]:
    """Return the first term of k between observed pairs."""
    return FREE / x.shape[1] * (x @ x.T)


def shapley_covariance(
    keep: Bool[np.ndarray, "pair feature"], prior: Prior, free: float = FREE
) -> Float[np.ndarray, "pair feature"]:
    """Return cov(φ_i, g(y)) of the module's second formula, for all pairs y."""
    x = signs(keep)
    interactions = prior.c * interaction_shapley(x, prior.b)
    return interactions + 2 * free / x.shape[1] * x + prior.noise * odd_weights(keep)


def interaction_shapley(
    x: Float[np.ndarray, "pair feature"], b: Float[np.ndarray, "feature"]
) -> Float[np.ndarray, "pair feature"]:
    """Return the integral of the module's second formula, including a_i and 1 / D."""
    nodes, share = leggauss(min(x.shape[1] // 2 + 1, NODES))
    t, share, w, total = (nodes + 1) / 2, share / 2, np.tanh(b)[:, None], b.sum()
    log_d = total + np.log(-np.expm1(-2 * total) / 2) - (np.logaddexp(b, -b) - np.log(2)).sum()
    up, down = np.log1p(t * w), np.log1p(-t * w)
    level, slope = (up + down).sum(axis=0) / 2, x @ ((up - down) / 2)
    same, flipped = np.exp(level + slope - log_d), np.exp(level - slope - log_d)
    plus, minus = share / (1 + t * w), share / (1 - t * w)
    member, other = same @ plus.T + flipped @ minus.T, same @ minus.T + flipped @ plus.T
    return x * w[:, 0] * np.where(x > 0, member, other)


def posterior_shapley(
    keep: Bool[np.ndarray, "pair feature"], g: Float[np.ndarray, "pair"], prior: Prior
) -> tuple[Float[np.ndarray, "feature"], Float[np.ndarray, "pair"]]:
    """Return the posterior mean of φ and the dual weights K⁻¹ g, which `predict` uses."""
    dual = np.linalg.solve(covariance(signs(keep), prior), g)
    return shapley_covariance(keep, prior).T @ dual, dual


def predict(
    keep: Bool[np.ndarray, "pair feature"],
    observed: Bool[np.ndarray, "other feature"],
    dual: Float[np.ndarray, "other"],
    prior: Prior,
) -> Float[np.ndarray, "pair"]:
    """Predict g at `keep` by the linear part and the interactions, in blocks that bound the memory."""
    y, linear = signs(observed), FREE / keep.shape[1] * (dual @ signs(observed))
    blocks = (signs(keep[start : start + BLOCK]) for start in range(0, len(keep), BLOCK))
    sums = dual[:, None]
    return np.concatenate([prior.c * interaction_sums(x, y, prior.b, sums)[0][:, 0] + x @ linear for x in blocks])


def fit_prior(
    x: Float[np.ndarray, "pair feature"], g: Float[np.ndarray, "pair"], even: Float[np.ndarray, "pair"] | None = None
) -> Prior:
    """Fit the scales to high evidence, by a fixed number of ascent steps of decreasing length.

    A step is proportional to a small gradient and bounded for a large one. The scales are therefore a smooth function
    of g: rounding in the model's values moves them by as little, and two processors agree. (Steps by the gradient's
    sign, as Rprop takes them, turn a difference of 1e-7 in g into 2e-4 of the largest score.)
    """
    n = x.shape[1]
    start = typical_prior(n)
    theta = np.concatenate([start.log_b, [start.log_c, start.log_noise]])
    lowest = np.concatenate([np.full(n, -8.0), [-12.0, LOW_NOISE]])
    highest = np.concatenate([np.full(n, 1.0), [8.0, 2.0]])
    step = np.concatenate([np.full(n, FEATURE_STEP), [COMMON_STEP, COMMON_STEP]])
    linear = linear_kernel(x)
    for _ in range(STEPS):
        prior = Prior(theta[:n], float(theta[n]), float(theta[n + 1]))
        gradient = log_evidence(x, g, prior, start, even, linear)[1]
        theta = np.clip(theta + step * gradient / (np.abs(gradient) + FLAT), lowest, highest)
        step *= STEP_DECAY
    return Prior(theta[:n], float(theta[n]), float(theta[n + 1]))


def log_evidence(
    x: Float[np.ndarray, "pair feature"],
    g: Float[np.ndarray, "pair"],
    prior: Prior,
    center: Prior,
    even: Float[np.ndarray, "pair"] | None = None,
    linear: Float[np.ndarray, "pair pair"] | None = None,
) -> tuple[float, Float[np.ndarray, "scale"]]:
    """Compute log p(g, even | scales) + log p(scales), up to a constant, and its gradient.

    -inf, with a zero gradient, if K is not positive definite.

    `linear`: what `linear_kernel` returns, which no scale changes.
    """
    n = x.shape[1]
    sinh, cosh = interaction_kernel(x, x, prior.b)
    mean = prior.log_b.mean()
    apart, shift = (prior.log_b - mean) / SPREAD**2, (mean - center.log_b.mean()) / SPREAD**2
    evidence = -(SPREAD**2) * (apart @ apart + shift**2) / 2
    gradient = np.concatenate([-apart - shift / n, [0.0, 0.0]])
    try:
        parts = [_part_evidence(x, g, prior, sinh, cosh, linear_kernel(x) if linear is None else linear)]
        if even is not None:
            parts.append(_part_evidence(x, even, prior, cosh, sinh, FREE))
    except np.linalg.LinAlgError:
        return -np.inf, np.zeros(n + 2)
    for value, slopes in parts:
        evidence, gradient = evidence + value, gradient + slopes
    return float(evidence), gradient


def _part_evidence(
    x: Float[np.ndarray, "pair feature"],
    values: Float[np.ndarray, "pair"],
    prior: Prior,
    kernel: Float[np.ndarray, "pair pair"],
    slope_kernel: Float[np.ndarray, "pair pair"],
    free: Float[np.ndarray, "pair pair"] | float,
) -> tuple[float, Float[np.ndarray, "scale"]]:
    """Compute log p(values | scales) of the odd or even part, and its gradient. `slope_kernel`: of the other part."""
    b = prior.b
    k = prior.c * kernel + free
    k.flat[:: len(k) + 1] += prior.noise
    half_log_det, inverse = _half_log_det_and_inverse(k)
    dual = inverse @ values
    slope = np.outer(dual, dual)
    slope -= inverse
    slope /= 2
    along_c = prior.c * float(np.vdot(slope, kernel))
    by_b = prior.c * (x * ((slope * slope_kernel) @ x)).sum(axis=0) * b - along_c * b / np.tanh(b.sum())
    evidence = -values @ dual / 2 - half_log_det
    return float(evidence), np.concatenate([by_b, [along_c, prior.noise * np.trace(slope)]])


def _half_log_det_and_inverse(k: Float[np.ndarray, "pair pair"]) -> tuple[float, Float[np.ndarray, "pair pair"]]:
    """Return half the log-determinant and the inverse of a symmetric matrix, by one Cholesky decomposition in place.

    Errors: LinAlgError if it is not positive definite.
    """
    lapack = scipy.linalg.lapack
    factor, failed = lapack.dpotrf(k.T, lower=1, overwrite_a=1)  # the same matrix in Fortran's order
    if failed:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    half_log_det = float(np.log(np.diag(factor)).sum())
    lower, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)  # zero above the diagonal
    inverse = lower + lower.T
    inverse.flat[:: len(k) + 1] /= 2
    return half_log_det, inverse
