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
Lined = Float[np.ndarray, "place replicate"]
"""Methods from the best rank to the worst: all replicates of one place lie side by side, which is quick."""
Message = Float[np.ndarray, "2 replicate"]
"""A precision, and that precision times the mean."""


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
    ranks: Int[np.ndarray, "match method"],
    orders: Int[np.ndarray, "replicate step"],
    setting: SkillSetting = HEADLINE,
    taus: Float[np.ndarray, "replicate"] | None = None,
) -> Iterator[tuple[Replicas, Replicas]]:
    """Mean and variance of each skill before any match and after each step, in arrays that are used again.

    `taus`: a drift of its own for each replicate, instead of the setting's.
    """
    drift = np.full(len(orders), setting.tau) if taus is None else taus
    lines = np.argsort(ranks, axis=1, kind="stable")
    placed = np.take_along_axis(ranks, lines, axis=1)
    ties = placed[:, 1:] == placed[:, :-1]
    mu = np.full((ranks.shape[1], len(orders)), setting.mu)
    variance = np.full(mu.shape, setting.sigma**2)
    yield mu.T, variance.T
    for step in range(orders.shape[1]):
        now = np.flatnonzero(orders[:, step] != NO_MATCH)
        if len(now):
            matches = orders[now, step]
            where = (np.ascontiguousarray(lines[matches].T), now)
            spread = variance[where] + drift[now] ** 2
            mu[where], variance[where] = _after_match(mu[where], spread, ties[matches].T, setting)
        yield mu.T, variance.T


def _after_match(
    skill: Lined, spread: Lined, ties: Bool[np.ndarray, "pair replicate"], setting: SkillSetting
) -> tuple[Lined, Lined]:
    """Skills after one match in each replicate, and their variances."""
    match = _Match(skill, spread + setting.beta**2, np.ascontiguousarray(ties), setting)
    match.run()
    precision, shift = match.told()
    damping = 1 / (1 + setting.beta**2 * precision)
    new_precision = 1 / spread + damping * precision
    return (skill / spread + damping * shift) / new_precision, 1 / new_precision


class _Match:
    """The messages between neighbours in the ranking, each a precision and that precision times the mean."""

    def __init__(self, mean: Lined, variance: Lined, ties: Bool[np.ndarray, "pair replicate"], s: SkillSetting):
        from scipy.special import ndtri

        self.own = np.stack([1 / variance, mean / variance], axis=1)
        pairs = (len(ties), 2, ties.shape[1])
        self.left, self.right, self.cut = np.zeros(pairs), np.zeros(pairs), np.zeros(pairs)
        self.ties = ties
        self.margin = float(ndtri((s.draw_probability + 1) / 2)) * np.sqrt(2) * s.beta
        self.moving = np.ones(ties.shape[1], dtype=bool)
        self.all_move = True
        self.change = np.zeros((2, ties.shape[1]))

    def run(self) -> None:
        """Sweeps to and fro until nothing moves, and the last messages to both ends."""
        last = len(self.ties) - 1
        for _ in range(MOST_SWEEPS):
            self.change[:] = 0
            self._sweep(last)
            self.moving &= (self.change > [[SMALL_CHANGE**2], [SMALL_CHANGE]]).any(axis=0)
            self.all_move = bool(self.moving.all())
            if not self.moving.any():
                break
        self.all_move = True
        self._tell_left(0)
        self._tell_right(last)

    def told(self) -> tuple[Lined, Lined]:
        """What the differences say of each player's performance: precision, and precision times mean."""
        total = np.zeros_like(self.own)
        total[:-1] += self.left
        total[1:] += self.right
        return total[:, 0], total[:, 1]

    def _sweep(self, last: int) -> None:
        if last == 0:
            self._truncate(0)
        for pair in range(last):
            self._truncate(pair)
            self._tell_right(pair)
        for pair in range(last, 0, -1):
            self._truncate(pair)
            self._tell_left(pair)

    def _better(self, pair: int) -> Message:
        """The performance of the better placed of a pair, without what this pair says of it."""
        return self.own[pair] + self.right[pair - 1] if pair else self.own[0]

    def _worse(self, pair: int) -> Message:
        held = self.own[pair + 1]
        return held + self.left[pair + 1] if pair + 1 < len(self.ties) else held

    def _truncate(self, pair: int) -> None:
        """The difference cut to what was seen, a win or a draw; and how much that changed."""
        better, worse = self._better(pair), self._worse(pair)
        precision = better[0] * worse[0] / (better[0] + worse[0])
        mean = better[1] / better[0] - worse[1] / worse[0]
        root = np.sqrt(precision)
        v, w = _moments(mean * root, self.margin * root, self.ties[pair])
        rest = 1 / (1 - w)
        new = np.stack([precision * w * rest, (precision * mean * w + root * v) * rest])
        np.maximum(self.change, np.abs(new - self.cut[pair]), out=self.change, where=self.all_move or self.moving)
        self._put(self.cut, pair, new)

    def _tell_right(self, pair: int) -> None:
        """worse = better - difference"""
        self._put(self.right, pair, _sum(self._better(pair), self.cut[pair], -1))

    def _tell_left(self, pair: int) -> None:
        """better = worse + difference"""
        self._put(self.left, pair, _sum(self._worse(pair), self.cut[pair], +1))

    def _put(self, messages: np.ndarray, pair: int, new: Message) -> None:
        """Replicates that came to rest keep their messages, as the package stops there."""
        np.copyto(messages[pair], new, where=True if self.all_move else self.moving)


def _sum(one: Message, other: Message, sign: int) -> Message:
    """The message of `one + sign * other`."""
    together = one[0] + other[0]
    return np.stack([one[0] * other[0], other[0] * one[1] + sign * one[0] * other[1]]) / together


def _moments(
    t: Float[np.ndarray, "replicate"], margin: Float[np.ndarray, "replicate"], tie: Bool[np.ndarray, "replicate"]
) -> tuple[Float[np.ndarray, "replicate"], Float[np.ndarray, "replicate"]]:
    """The additive and the multiplicative correction of a truncated Gaussian (Herbrich et al., 2007, figure 2)."""
    beyond = t - margin
    v = _hazard(beyond)
    w = v * (v + beyond)
    drawn = np.flatnonzero(tie)
    if len(drawn):
        v[drawn], w[drawn] = _drawn_moments(t[drawn], margin[drawn])
    return v, w


def _drawn_moments(t: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from scipy.special import ndtr

    size = np.abs(t)
    high, low = margin - size, -margin - size
    mass = np.maximum(ndtr(high) - ndtr(low), np.finfo(float).tiny)
    high_density, low_density = _density(high), _density(low)
    v = (low_density - high_density) / mass
    return np.sign(t) * v, v**2 + (high * high_density - low * low_density) / mass


def _hazard(x: np.ndarray) -> np.ndarray:
    """Density over mass of a standard normal below `x`, in full precision at both ends."""
    from scipy.special import erfcx

    return np.sqrt(2 / np.pi) / np.asarray(erfcx(x * -np.sqrt(0.5)))


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
