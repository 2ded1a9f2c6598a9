"""TrueSkill over many orders of the same matches at once.

The numbers are those of the `trueskill` package, whose schedule of messages this follows step by step; here each
message is an array over replicates, so that two hundred orders or a thousand resamples take the time of a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

MOST_SWEEPS = 10
SMALL_CHANGE = 1e-4
"""The package's own bounds on the sweeps over the differences of one match."""
NO_MATCH = -1


@dataclass(frozen=True)
class SkillSetting:
    """Skills start at mu, sigma; beta is the spread of one performance; tau the drift of a skill before each match."""

    mu: float = 0.0
    sigma: float = 0.5
    beta: float = 25 / 6
    tau: float = 0.0
    draw_probability: float = 0.10


HEADLINE = SkillSetting()
"""A method's skill does not drift, so the order of the votes hardly matters."""
SMAT = SkillSetting(tau=25 / 300)
"""Fernandes et al. (2022), appendix B: the package's own drift, whose intervals widen with votes."""

Replicas = Float[np.ndarray, "replicate method"]


def rate(
    ranks: Int[np.ndarray, "match method"], orders: Int[np.ndarray, "replicate step"], setting: SkillSetting = HEADLINE
) -> tuple[Replicas, Replicas]:
    """Mean and standard deviation of each method's skill after the matches of each replicate, in its order.

    `ranks`: 1 is best, equal ranks are ties; only their order counts. `orders` name matches; `NO_MATCH` is none.
    Source: Herbrich, Minka and Graepel (2007), TrueSkill, sections 2 and 3.
    """
    *_, (mu, variance) = played(ranks, orders, setting)
    return mu, np.sqrt(variance)


def played(
    ranks: Int[np.ndarray, "match method"], orders: Int[np.ndarray, "replicate step"], setting: SkillSetting = HEADLINE
) -> Iterator[tuple[Replicas, Replicas]]:
    """Mean and variance of each skill before any match and after each step, in arrays that are used again."""
    shape = (len(orders), ranks.shape[1])
    mu, variance = np.full(shape, setting.mu), np.full(shape, setting.sigma**2)
    yield mu, variance
    for step in range(orders.shape[1]):
        now = orders[:, step] != NO_MATCH
        if now.any():
            mu[now], variance[now] = _after_match(mu[now], variance[now], ranks[orders[now, step]], setting)
        yield mu, variance


def _after_match(
    mu: Replicas, variance: Replicas, ranks: np.ndarray, setting: SkillSetting
) -> tuple[Replicas, Replicas]:
    """Skills after one match in each replicate; the players stand in the order of their ranks meanwhile."""
    order = np.argsort(ranks, axis=1, kind="stable")
    placed = np.take_along_axis(ranks, order, axis=1)
    skill = np.take_along_axis(mu, order, axis=1)
    spread = np.take_along_axis(variance, order, axis=1) + setting.tau**2
    match = _Match(skill, spread + setting.beta**2, placed[:, 1:] == placed[:, :-1], setting)
    match.run()
    precision, shift = match.told()
    damping = 1 / (1 + setting.beta**2 * precision)
    new_precision = 1 / spread + damping * precision
    new_skill = (skill / spread + damping * shift) / new_precision
    back = np.argsort(order, axis=1)
    return np.take_along_axis(new_skill, back, axis=1), np.take_along_axis(1 / new_precision, back, axis=1)


class _Match:
    """Differences between neighbours in the ranking; a message is a pair: precision, and precision times mean."""

    def __init__(self, mean: Replicas, variance: Replicas, ties: Bool[np.ndarray, "replicate pair"], s: SkillSetting):
        from scipy.special import ndtri

        self.own = np.stack([1 / variance, mean / variance])
        pairs = (2, *ties.shape)
        self.left, self.right, self.cut = np.zeros(pairs), np.zeros(pairs), np.zeros(pairs)
        self.ties = ties
        self.margin = float(ndtri((s.draw_probability + 1) / 2)) * np.sqrt(2) * s.beta
        self.moving = np.ones(len(ties), dtype=bool)

    def run(self) -> None:
        """Sweeps to and fro until nothing moves, and the last messages to both ends."""
        last = self.ties.shape[1] - 1
        for _ in range(MOST_SWEEPS):
            change = np.zeros(len(self.ties))
            if last == 0:
                change = self._truncate(0)
            for pair in range(last):
                change = np.maximum(change, self._truncate(pair))
                self._tell_right(pair)
            for pair in range(last, 0, -1):
                change = np.maximum(change, self._truncate(pair))
                self._tell_left(pair)
            self.moving &= change > SMALL_CHANGE
            if not self.moving.any():
                break
        self.moving[:] = True
        self._tell_left(0)
        self._tell_right(last)

    def told(self) -> tuple[Replicas, Replicas]:
        """What the differences say of each player's performance: precision, and precision times mean."""
        total = np.zeros_like(self.own)
        total[:, :, :-1] += self.left
        total[:, :, 1:] += self.right
        return total[0], total[1]

    def _better(self, pair: int) -> np.ndarray:
        """The performance of the better placed of a pair, without what this pair says of it."""
        return self.own[:, :, pair] + (self.right[:, :, pair - 1] if pair else 0)

    def _worse(self, pair: int) -> np.ndarray:
        held = self.own[:, :, pair + 1]
        return held + (self.left[:, :, pair + 1] if pair + 1 < self.ties.shape[1] else 0)

    def _truncate(self, pair: int) -> Float[np.ndarray, "replicate"]:
        """The difference cut to what was seen, a win or a draw; how much its belief changed."""
        better, worse = self._better(pair), self._worse(pair)
        precision = 1 / (1 / better[0] + 1 / worse[0])
        shift = precision * (better[1] / better[0] - worse[1] / worse[0])
        root = np.sqrt(precision)
        v, w = _moments(shift / root, self.margin * root, self.ties[:, pair])
        new = np.stack([precision, shift + root * v]) / (1 - w)
        before = np.stack([precision, shift]) + self.cut[:, :, pair]
        self._put(self.cut, pair, new - np.stack([precision, shift]))
        change = np.maximum(np.abs(new[1] - before[1]), np.sqrt(np.abs(new[0] - before[0])))
        return np.where(self.moving, change, 0)

    def _tell_right(self, pair: int) -> None:
        """worse = better - difference"""
        better, cut = self._better(pair), self.cut[:, :, pair]
        self._put(self.right, pair, _sum(better, cut, -1))

    def _tell_left(self, pair: int) -> None:
        """better = worse + difference"""
        worse, cut = self._worse(pair), self.cut[:, :, pair]
        self._put(self.left, pair, _sum(worse, cut, +1))

    def _put(self, messages: np.ndarray, pair: int, new: np.ndarray) -> None:
        messages[:, :, pair] = np.where(self.moving, new, messages[:, :, pair])


def _sum(one: np.ndarray, other: np.ndarray, sign: int) -> np.ndarray:
    """The message of `one + sign * other`."""
    precision = one[0] * other[0] / (one[0] + other[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = one[1] / one[0] + sign * np.where(other[0] > 0, other[1] / other[0], 0)
    return np.stack([precision, precision * mean])


def _moments(
    t: Float[np.ndarray, "replicate"], margin: Float[np.ndarray, "replicate"], tie: Bool[np.ndarray, "replicate"]
) -> tuple[Float[np.ndarray, "replicate"], Float[np.ndarray, "replicate"]]:
    """The additive and the multiplicative correction of a truncated Gaussian (Herbrich et al., 2007, figure 2)."""
    win_v = _hazard(t - margin)
    win_w = win_v * (win_v + t - margin)
    size = np.abs(t)
    high, low = margin - size, -margin - size
    mass = np.maximum(_cdf(high) - _cdf(low), np.finfo(float).tiny)
    draw_v = (_pdf(low) - _pdf(high)) / mass
    draw_w = draw_v**2 + (high * _pdf(high) - low * _pdf(low)) / mass
    return np.where(tie, np.sign(t) * draw_v, win_v), np.where(tie, draw_w, win_w)


def _hazard(x: np.ndarray) -> np.ndarray:
    from scipy.special import log_ndtr

    return np.exp(-(x**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(x))


def _cdf(x: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(x)


def _pdf(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
