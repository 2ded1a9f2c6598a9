"""Vectorized TrueSkill: many orders of the same matches are rated at once.

The results equal those of the `trueskill` package, whose message schedule this module follows step by step (the tests
compare the two). The package is not used because it rates one match of one order after the other: a study needs 200
orders and 1,000 resamples of all its votes. Here each message is an array over replicates, so all of them take the time
of a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import erfcx, ndtr, ndtri

MAX_SWEEPS = 10
MIN_CHANGE = 1e-4
"""The package's own limits of the sweeps over the differences of one match."""
NO_MATCH = -1


@dataclass(frozen=True)
class SkillSetting:
    """Prior skill `mu`, `sigma`; spread `beta` of one performance; drift `tau` of a skill before each match."""

    mu: float = 0.0
    sigma: float = 0.5
    beta: float = 25 / 6
    tau: float = 0.0
    draw_probability: float = 0.10


HEADLINE = SkillSetting()
"""Skills do not drift, so the order of the votes hardly matters."""
SMAT = SkillSetting(tau=25 / 300)
"""Fernandes et al. (2022), appendix B: the package's default drift; intervals widen with votes."""

Replicas = Float[np.ndarray, "replicate method"]
ByPlace = Float[np.ndarray, "place replicate"]
"""Methods from the best rank to the worst; the replicates of one place are contiguous, which is fast."""
Message = Float[np.ndarray, "2 replicate"]
"""A precision, and the precision times the mean."""


def rate(
    ranks: Int[np.ndarray, "match method"], orders: Int[np.ndarray, "replicate step"], setting: SkillSetting = HEADLINE
) -> tuple[Replicas, Replicas]:
    """Mean and standard deviation of each skill after each replicate's matches, played in its order.

    `ranks`: 1 is best, equal ranks are ties; only their order matters. `orders`: row numbers of `ranks`, or `NO_MATCH`.
    Source: Herbrich, Minka and Graepel (2007), TrueSkill, sections 2 and 3.
    """
    *_, (mu, variance) = play(ranks, orders, setting)
    return mu, np.sqrt(variance)


def play(
    ranks: Int[np.ndarray, "match method"],
    orders: Int[np.ndarray, "replicate step"],
    setting: SkillSetting = HEADLINE,
    taus: Float[np.ndarray, "replicate"] | None = None,
) -> Iterator[tuple[Replicas, Replicas]]:
    """Yield mean and variance of each skill before the first match and after each step, in reused arrays.

    `taus`: one drift per replicate, in place of the setting's.
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
            mu[where], variance[where] = _play_match(mu[where], spread, ties[matches].T, setting)
        yield mu.T, variance.T


def _play_match(
    skill: ByPlace, spread: ByPlace, ties: Bool[np.ndarray, "pair replicate"], setting: SkillSetting
) -> tuple[ByPlace, ByPlace]:
    """Skills and their variances after one match in each replicate."""
    match = _MatchMessages(skill, spread + setting.beta**2, np.ascontiguousarray(ties), setting)
    match.run()
    precision, shift = match.performance_messages()
    damping = 1 / (1 + setting.beta**2 * precision)
    new_precision = 1 / spread + damping * precision
    return (skill / spread + damping * shift) / new_precision, 1 / new_precision


class _MatchMessages:
    """Messages between neighbors in the ranking of one match."""

    def __init__(self, mean: ByPlace, variance: ByPlace, ties: Bool[np.ndarray, "pair replicate"], s: SkillSetting):
        self.own = np.stack([1 / variance, mean / variance], axis=1)
        pairs = (len(ties), 2, ties.shape[1])
        self.left, self.right, self.cut = np.zeros(pairs), np.zeros(pairs), np.zeros(pairs)
        self.ties = ties
        self.margin = float(ndtri((s.draw_probability + 1) / 2)) * np.sqrt(2) * s.beta
        self.moving = np.ones(ties.shape[1], dtype=bool)
        self.all_move = True
        self.change = np.zeros((2, ties.shape[1]))

    def run(self) -> None:
        """Sweep back and forth until nothing moves, then send the last messages to both ends."""
        last = len(self.ties) - 1
        for _ in range(MAX_SWEEPS):
            self.change[:] = 0
            self._sweep(last)
            self.moving &= (self.change > [[MIN_CHANGE**2], [MIN_CHANGE]]).any(axis=0)
            self.all_move = bool(self.moving.all())
            if not self.moving.any():
                break
        self.all_move = True
        self._send_left(0)
        self._send_right(last)

    def performance_messages(self) -> tuple[ByPlace, ByPlace]:
        """The sum of all messages to each performance: precision, and precision times mean."""
        total = np.zeros_like(self.own)
        total[:-1] += self.left
        total[1:] += self.right
        return total[:, 0], total[:, 1]

    def _sweep(self, last: int) -> None:
        if last == 0:
            self._truncate(0)
        for pair in range(last):
            self._truncate(pair)
            self._send_right(pair)
        for pair in range(last, 0, -1):
            self._truncate(pair)
            self._send_left(pair)

    def _better(self, pair: int) -> Message:
        """Performance of the better placed of a pair, without this pair's own message."""
        return self.own[pair] + self.right[pair - 1] if pair else self.own[0]

    def _worse(self, pair: int) -> Message:
        own = self.own[pair + 1]
        return own + self.left[pair + 1] if pair + 1 < len(self.ties) else own

    def _truncate(self, pair: int) -> None:
        """Truncate the difference to the outcome, a win or a draw, and record how much that changed."""
        better, worse = self._better(pair), self._worse(pair)
        precision = better[0] * worse[0] / (better[0] + worse[0])
        mean = better[1] / better[0] - worse[1] / worse[0]
        root = np.sqrt(precision)
        v, w = _moments(mean * root, self.margin * root, self.ties[pair])
        rest = 1 / (1 - w)
        new = np.stack([precision * w * rest, (precision * mean * w + root * v) * rest])
        np.maximum(self.change, np.abs(new - self.cut[pair]), out=self.change, where=self.all_move or self.moving)
        self._put(self.cut, pair, new)

    def _send_right(self, pair: int) -> None:
        """worse = better - difference"""
        self._put(self.right, pair, _sum(self._better(pair), self.cut[pair], -1))

    def _send_left(self, pair: int) -> None:
        """better = worse + difference"""
        self._put(self.left, pair, _sum(self._worse(pair), self.cut[pair], +1))

    def _put(self, messages: np.ndarray, pair: int, new: Message) -> None:
        """Store the messages of replicates that still move: the package stops there too."""
        np.copyto(messages[pair], new, where=True if self.all_move else self.moving)


def _sum(one: Message, other: Message, sign: int) -> Message:
    """Message of `one + sign * other`."""
    total = one[0] + other[0]
    return np.stack([one[0] * other[0], other[0] * one[1] + sign * one[0] * other[1]]) / total


def _moments(
    t: Float[np.ndarray, "replicate"], margin: Float[np.ndarray, "replicate"], tie: Bool[np.ndarray, "replicate"]
) -> tuple[Float[np.ndarray, "replicate"], Float[np.ndarray, "replicate"]]:
    """Additive and multiplicative correction of a truncated Gaussian (Herbrich et al., 2007, figure 2)."""
    beyond = t - margin
    v = _hazard(beyond)
    w = v * (v + beyond)
    draws = np.flatnonzero(tie)
    if len(draws):
        v[draws], w[draws] = _draw_moments(t[draws], margin[draws])
    return v, w


def _draw_moments(t: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size = np.abs(t)
    high, low = margin - size, -margin - size
    mass = np.maximum(ndtr(high) - ndtr(low), np.finfo(float).tiny)
    high_density, low_density = _density(high), _density(low)
    v = (low_density - high_density) / mass
    return np.sign(t) * v, v**2 + (high * high_density - low * low_density) / mass


def _hazard(x: np.ndarray) -> np.ndarray:
    """Density over mass of a standard normal below `x`, precise at both ends."""
    return np.sqrt(2 / np.pi) / np.asarray(erfcx(x * -np.sqrt(0.5)))


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
