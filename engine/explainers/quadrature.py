"""Rules of integration over [0, 1]: where to evaluate, and with which weights."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from engine.errors import unknown

Rule = tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]
RULES = ("clenshaw_curtis", "gauss_legendre", "trapezoid", "riemann")


def nodes(rule: str, n: int) -> Rule:
    """Positions in [0, 1] and weights (sum 1) of `n` evaluations; `riemann` is the right sum."""
    if rule not in RULES:
        raise unknown("quadrature", rule, RULES)
    if n == 1 and rule != "gauss_legendre":
        return np.ones(1), np.ones(1)
    return _MAKERS[rule](n)


def _clenshaw_curtis(n: int) -> Rule:
    """The nodes of 2n - 1 hold those of n, bit for bit. Source: Trefethen (2008), section 2; Waldvogel (2006)."""
    last = n - 1
    angle = np.pi * np.arange(n) / last
    j = np.arange(1, last // 2 + 1)
    share = np.where(2 * j == last, 1.0, 2.0) / (4 * j**2 - 1)
    weights = (1 - np.cos(2 * np.outer(angle, j)) @ share) / last
    weights[[0, -1]] /= 2
    return (1 - np.cos(angle)) / 2, weights


def _gauss_legendre(n: int) -> Rule:
    x, weights = np.polynomial.legendre.leggauss(n)
    return (x + 1) / 2, weights / 2


def _trapezoid(n: int) -> Rule:
    weights = np.full(n, 1 / (n - 1))
    weights[[0, -1]] /= 2
    return np.linspace(0, 1, n), weights


def _riemann(n: int) -> Rule:
    return np.arange(1, n + 1) / n, np.full(n, 1 / n)


_MAKERS = {
    "clenshaw_curtis": _clenshaw_curtis,
    "gauss_legendre": _gauss_legendre,
    "trapezoid": _trapezoid,
    "riemann": _riemann,
}
