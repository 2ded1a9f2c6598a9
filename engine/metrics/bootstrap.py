"""95 % intervals of a mean over examples, by resampling them."""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Float

Interval = tuple[float, float]

LEVEL = 0.95
RESAMPLES = 2000


def interval(values: Float[np.ndarray, "example"], seed: int = 0, share: bool = False) -> Interval | None:
    """Of the mean, in its unit; None of fewer than two examples.

    `share`: each example counts as 1 or as 0, so that the mean is a share of them. Then it is the exact interval of
    Clopper and Pearson (1934), which leaves room even where all of them count, or none. Values between, such as means
    over several models, are resampled as any others.

    Resampling is by the bias-corrected and accelerated bootstrap (Efron, 1987; DiCiccio and Efron, 1996, section 2):
    values such as falls of a probability are skewed. Of few examples it is too narrow, so that the normal quantile
    gives way to sqrt(n / (n - 1)) times Student's t, as Hesterberg (2015, The American Statistician 69) expands
    percentiles. The draws depend on the seed and on how many examples there are, so that methods are resampled alike.
    Of equal values it has no width, for it cannot tell how far others lie: who shows it says so (`Score.doubt`).
    """
    if len(values) < 2:
        return None
    if share and np.isin(values, (0.0, 1.0)).all():
        return exact(int(values.sum()), len(values))
    if (values == values[0]).all():
        return float(values[0]), float(values[0])
    means = np.sort(_counts(len(values), seed) @ values / len(values))
    low, high = np.quantile(means, _levels(values, means)).clip(values.min(), values.max())
    return float(low), float(high)


def resampled(values: Float[np.ndarray, "example cell"], seed: int = 0) -> Float[np.ndarray, "resample cell"]:
    """The means over examples in each resample, for intervals of what is no mean itself."""
    return _counts(len(values), seed) @ values / len(values)


def exact(hits: int, n: int, chance: float = 1 - LEVEL) -> Interval:
    """Of a share, wrong with at most that chance: Clopper and Pearson's, of which each end is wrong in half of it."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, n - hits + 1, chance / 2)) if hits else 0.0
    return low, float(betaincinv(hits + 1, n - hits, 1 - chance / 2)) if hits < n else 1.0


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
