"""95 % intervals of a mean over examples, by resampling them."""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Float

Interval = tuple[float, float]

LEVEL = 0.95
RESAMPLES = 2000
NORMAL = 1.959964
"""The two-sided quantile of the normal distribution."""


def interval(values: Float[np.ndarray, "example"], seed: int = 0, share: bool = False) -> Interval | None:
    """Of the mean, in its unit; None of fewer than two examples. Equal values have an interval without width.

    `share`: values lie from 0 to 1. Then examples that are all at one end leave room for some that are not: as much as
    Wilson's (1927) interval leaves where all of them are hits, or none.

    The bias-corrected and accelerated bootstrap (Efron, 1987; DiCiccio and Efron, 1996, section 2): values such as
    falls of a probability are skewed. Of few examples it is too narrow, so that the normal quantile gives way to
    sqrt(n / (n - 1)) times Student's t, as Hesterberg (2015, The American Statistician 69) expands percentiles. The
    draws depend on the seed and on how many examples there are, so that methods are resampled alike.
    """
    if len(values) < 2:
        return None
    if (values == values[0]).all():
        return _of_equal(float(values[0]), len(values), share)
    means = np.sort(_counts(len(values), seed) @ values / len(values))
    low, high = np.quantile(means, _levels(values, means)).clip(values.min(), values.max())
    return float(low), float(high)


def resampled(values: Float[np.ndarray, "example cell"], seed: int = 0) -> Float[np.ndarray, "resample cell"]:
    """The means over examples in each resample, for intervals of what is no mean itself."""
    return _counts(len(values), seed) @ values / len(values)


def _of_equal(value: float, n: int, share: bool) -> Interval:
    room = NORMAL**2 / (n + NORMAL**2) if share and value in (0.0, 1.0) else 0.0
    return (value, value + room) if value == 0 else (value - room, value)


def _levels(values: Float[np.ndarray, "example"], means: Float[np.ndarray, "resample"]) -> Float[np.ndarray, "2"]:
    """Which quantiles of the resampled means bound the interval."""
    from scipy.special import ndtr, ndtri

    mean, gaps = values.mean(), values - values.mean()
    below = ((means < mean).mean() + (means <= mean).mean()) / 2
    bias = ndtri(np.clip(below, 1 / len(means), 1 - 1 / len(means)))
    acceleration = (gaps**3).sum() / (6 * (gaps**2).sum() ** 1.5)
    pushed = bias + np.array([-1, 1]) * _reach(len(values))
    return ndtr(bias + pushed / (1 - acceleration * pushed))


@functools.cache
def _reach(n: int) -> float:
    from scipy.stats import t

    return float(np.sqrt(n / (n - 1)) * t.ppf((1 + LEVEL) / 2, n - 1))


@functools.lru_cache(maxsize=4)
def _counts(n: int, seed: int) -> Float[np.ndarray, "resample example"]:
    """How often each example is in each resample."""
    return np.random.default_rng([seed, n]).multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(np.float64)
