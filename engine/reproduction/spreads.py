"""How much the means of models differ, free of the noise of their examples, so that it is 0 where they are equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from engine.metrics.results import Interval
from engine.reproduction.intervals import normal, with_room

MOST = 4 / 3
"""How far a variance of four means from 0 to 1 can be moved at most, as a multiple of the share of examples moved."""

Column = Float[np.ndarray, "example model"]


def variances(
    columns: Sequence[Column], weights: Sequence[int | float], chances: Sequence[float]
) -> tuple[float, tuple[Interval, ...]]:
    """The weighted sum of the variances between the models' means, and an interval for each chance of error.

    The variance of the means themselves is too large by the noise of each example with itself; left out, the mean of
    the products of all pairs of different examples is right on average (Hoeffding's U-statistic, 1948).
    """
    products = [weight * _products(own) for own, weight in zip(columns, weights, strict=True)]
    value, error = _mean_of_pairs(np.sum(products, axis=0))
    reach = MOST * sum(map(abs, weights))
    rows = np.concatenate(columns, axis=1)
    found = [(value - normal(chance) * error, value + normal(chance) * error) for chance in chances]
    ends = (value - reach, value + reach)
    return value, tuple(with_room(rows, one, ends, chance) for one, chance in zip(found, chances, strict=True))


def _products(own: Column) -> Float[np.ndarray, "example example"]:
    """Of each two examples: what they say together of the variance between the models."""
    apart = own - own.mean(axis=1, keepdims=True)
    found = apart @ apart.T / (own.shape[1] - 1)
    np.fill_diagonal(found, 0.0)
    return found


def _mean_of_pairs(products: Float[np.ndarray, "example example"]) -> tuple[float, float]:
    """The mean over pairs of different examples, and its standard error.

    The jackknife's (Arvesen, 1969) knows what single examples add. Where models are equal that is nothing, and only
    what pairs add is left: Hoeffding's second term, which makes the error too large rather than too small.
    """
    n, total, own = len(products), products.sum(), products.sum(axis=1)
    value = float(total / (n * (n - 1)))
    if n < 3:
        return value, 0.0  # no pair is left without one of them; the room for what is not seen is the interval
    without = (total - 2 * own) / ((n - 1) * (n - 2))
    single = (n - 1) / n * ((without - without.mean()) ** 2).sum()
    pairs = 2 * (products**2).sum() / (n * (n - 1)) ** 2
    return value, float(np.sqrt(single + pairs))
