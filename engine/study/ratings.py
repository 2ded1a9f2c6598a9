"""Ratings of methods: TrueSkill over shuffled orders, comparable intervals over annotators, and partial ranks.

TrueSkill is vectorized over orders of the same matches. `play` follows the message schedule of the `trueskill` package
step by step and gives the same results (the tests compare the two). The package is not used because it rates one match
of one order at a time, and a study needs 200 orders and 1,000 resamples of all its votes. Here each message is an array
over all replicates, which takes about as long as a few replicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import erfcx, ndtr, ndtri
from scipy.stats import t

from engine.errors import UsageError
from engine.progress import Report, silent
from engine.study.counted_votes import Ranking, rank_table, ranked_methods

MAX_SWEEPS = 10
MIN_CHANGE = 1e-4
"""The package's limits on the sweeps over the performance differences of one match."""
NO_MATCH = -1
TINY = float(np.finfo(float).tiny)

ORDERS = 200
RESAMPLES = 1000
RANDOM_STUDIES = 200
"""Number of studies of random votes. Their spread is the minimum standard error."""
SMAT_WIDTH = 1.96
"""Half-width of SMaT's intervals in standard deviations."""
ERROR_RATE = 0.05
"""Maximum share of studies of equal methods in which two intervals do not overlap."""

Interval = tuple[int | float, int | float]
"""Low and high end."""
Errors = Float[np.ndarray, "method method"]
"""Standard errors of each method's skill (diagonal) and of the difference of two skills (off the diagonal)."""


@dataclass(frozen=True)
class SkillSetting:
    """TrueSkill parameters.

    `mu`, `sigma`: mean and standard deviation of the prior skill. `beta`: standard deviation of one performance. `tau`:
    standard deviation of a skill's drift before each match. `draw_probability`: determines the margin of a tie.
    """

    mu: float = 0.0
    sigma: float = 0.5
    beta: float = 25 / 6
    tau: float = 0.0
    draw_probability: float = 0.10


HEADLINE = SkillSetting()
"""Skills do not drift, so the order of the votes hardly matters."""
SMAT = SkillSetting(tau=25 / 300)
"""The setting of Fernandes et al. (2022), appendix B: the package's default drift. Intervals widen with more votes."""

Replicas = Float[np.ndarray, "replicate method"]
ByPlace = Float[np.ndarray, "place replicate"]
"""Values from the best placed method to the worst. The replicates of one place are contiguous, which is fast."""
Message = Float[np.ndarray, "2 replicate"]
"""A Gaussian message: precision, and precision times mean."""


def play(
    ranks: Int[np.ndarray, "match method"],
    orders: Int[np.ndarray, "replicate step"],
    setting: SkillSetting = HEADLINE,
    taus: Float[np.ndarray, "replicate"] | None = None,
) -> Iterator[tuple[Replicas, Replicas]]:
    """Yield the mean and variance of each skill before the first match and after each step. The arrays are reused.

    `ranks`: 1 is best, equal ranks are ties; only the order matters. `orders`: matches of each replicate in the order
    of play, as rows of `ranks` or `NO_MATCH`. `taus`: one drift per replicate, which replaces the setting's `tau`.
    Source: Herbrich, Minka and Graepel (2007), TrueSkill, sections 2 and 3.
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
    """Return skills and their variances after one match in each replicate."""
    match = _MatchMessages(skill, spread + setting.beta**2, np.ascontiguousarray(ties), setting)
    match.run()
    precision, shift = match.performance_messages()
    damping = 1 / (1 + setting.beta**2 * precision)
    new_precision = 1 / spread + damping * precision
    return (skill / spread + damping * shift) / new_precision, 1 / new_precision


class _MatchMessages:
    """Messages between neighbors in the ranking of one match, for all replicates."""

    def __init__(self, mean: ByPlace, variance: ByPlace, ties: Bool[np.ndarray, "pair replicate"], s: SkillSetting):
        self.own = np.stack([1 / variance, mean / variance], axis=1)
        pairs = (len(ties), 2, ties.shape[1])
        self.left, self.right, self.cut = np.zeros(pairs), np.zeros(pairs), np.zeros(pairs)
        self.draws = [np.flatnonzero(pair) for pair in ties]
        self.margin = float(ndtri((s.draw_probability + 1) / 2)) * np.sqrt(2) * s.beta
        self.moving = np.ones(ties.shape[1], dtype=bool)
        self.all_move = True
        self.change = np.zeros((2, ties.shape[1]))

    def run(self) -> None:
        """Sweep back and forth until no message changes, then send the last messages to both ends."""
        last = len(self.draws) - 1
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
        """Return the sum of all messages to each performance, as precision and as precision times mean."""
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
        """Return the performance of the better placed method of a pair, without the message from this pair."""
        return self.own[pair] + self.right[pair - 1] if pair else self.own[0]

    def _worse(self, pair: int) -> Message:
        own = self.own[pair + 1]
        return own + self.left[pair + 1] if pair + 1 < len(self.draws) else own

    def _truncate(self, pair: int) -> None:
        """Truncate the performance difference to the outcome (win or draw), and record the change of the message."""
        better, worse = self._better(pair), self._worse(pair)
        precision = better[0] * worse[0] / (better[0] + worse[0])
        mean = better[1] / better[0] - worse[1] / worse[0]
        root = np.sqrt(precision)
        v, w = _moments(mean * root, self.margin * root, self.draws[pair])
        rest = 1 / (1 - w)
        new = np.empty_like(self.change)
        new[0] = precision * w * rest
        new[1] = (precision * mean * w + root * v) * rest
        np.maximum(self.change, np.abs(new - self.cut[pair]), out=self.change, where=self.all_move or self.moving)
        self._put(self.cut, pair, new)

    def _send_right(self, pair: int) -> None:
        """Send a message from a pair to its worse placed method: worse = better - difference."""
        self._put(self.right, pair, _sum(self._better(pair), self.cut[pair], -1))

    def _send_left(self, pair: int) -> None:
        """Send a message from a pair to its better placed method: better = worse + difference."""
        self._put(self.left, pair, _sum(self._worse(pair), self.cut[pair], +1))

    def _put(self, messages: np.ndarray, pair: int, new: Message) -> None:
        """Store the messages of replicates that have not converged. The package stops at the same point."""
        np.copyto(messages[pair], new, where=True if self.all_move else self.moving)


def _sum(one: Message, other: Message, sign: int) -> Message:
    """Return the message of `one + sign * other`."""
    total = np.empty_like(one)
    total[0] = one[0] * other[0]
    total[1] = other[0] * one[1] + sign * one[0] * other[1]
    total /= one[0] + other[0]
    return total


def _moments(
    t: Float[np.ndarray, "replicate"], margin: Float[np.ndarray, "replicate"], draws: Int[np.ndarray, "draw"]
) -> tuple[Float[np.ndarray, "replicate"], Float[np.ndarray, "replicate"]]:
    """Return the additive and multiplicative correction of a truncated Gaussian (Herbrich et al., 2007, figure 2).

    `draws`: replicates in which the pair is tied.
    """
    beyond = t - margin
    v = _hazard(beyond)
    w = v * (v + beyond)
    if len(draws):
        v[draws], w[draws] = _draw_moments(t[draws], margin[draws])
    return v, w


def _draw_moments(t: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size = np.abs(t)
    high, low = margin - size, -margin - size
    mass = np.maximum(ndtr(high) - ndtr(low), TINY)
    high_density, low_density = _density(high), _density(low)
    v = (low_density - high_density) / mass
    return np.sign(t) * v, v**2 + (high * high_density - low * low_density) / mass


def _hazard(x: np.ndarray) -> np.ndarray:
    """Return the density at `x` over the mass below `x` of a standard normal, precise in both tails."""
    return np.sqrt(2 / np.pi) / np.asarray(erfcx(x * -np.sqrt(0.5)))


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


@dataclass(frozen=True)
class Rating:
    """Skill of a method with its interval, and its possible ranks in the partial order, from `rank` to `last`.

    `spread`: standard deviation of the skill over orders of the same votes; 0 if the order does not matter.
    """

    method: str
    skill: float
    interval: Interval
    rank: int
    last: int
    spread: float


@dataclass(frozen=True)
class StudyRatings:
    """Headline ratings, ratings in SMaT's setting, and skills after 0, 1, 2, ... votes in the order of time."""

    ratings: tuple[Rating, ...]
    smat: tuple[Rating, ...]
    course: Float[np.ndarray, "vote method"]


def rate_methods(
    rankings: Sequence[Ranking],
    seed: int = 0,
    orders: int = ORDERS,
    resamples: int = RESAMPLES,
    report: Report = silent,
) -> StudyRatings:
    """Rate all methods. All orders of the votes are played in one pass.

    The headline skill is TrueSkill's with tau = 0, averaged over shuffled orders of all votes. Standard errors are from
    a bootstrap over annotators, each with all votes; with one annotator, single votes are resampled. The intervals are
    those of `comparable_intervals`. A few people may agree by luck, so no standard error is smaller than that of votes
    whose ranks are randomly permuted among the methods. Errors: fewer than two methods.
    """
    methods = ranked_methods(rankings)
    if len(methods) < 2:
        raise UsageError(f"votes: must rank at least two methods, got {len(methods)} in {len(rankings)} votes.")
    ranks, groups, rng = rank_table(rankings), _resampled_groups(rankings), np.random.default_rng(seed)
    votes = len(ranks)
    in_time = np.argsort([ranking.at for ranking in rankings], kind="stable")[None]
    shuffled = np.stack([rng.permutation(votes) for _ in range(orders)])
    resampled = _resample(groups, resamples, rng)
    # The votes of the random studies follow the real ones, study by study: each is a vote with permuted ranks.
    random_ranks = rng.permuted(np.tile(ranks, (RANDOM_STUDIES, 1)), axis=1)
    random_orders = votes * np.arange(1, RANDOM_STUDIES + 1)[:, None] + np.arange(votes)
    (skills, bootstrap, random, _, (smat,)), variances, course = _play_plans(
        np.concatenate([ranks, random_ranks]), (shuffled, resampled, random_orders, in_time, in_time), report
    )
    pieces = len(groups)
    widening = np.sqrt(pieces / max(pieces - 1, 1))  # the spread of a bootstrap is too small by this factor
    errors = np.maximum(standard_errors(bootstrap) * widening, standard_errors(random))
    intervals = comparable_intervals(skills.mean(0), errors, pieces)
    reach = SMAT_WIDTH * np.sqrt(variances[-1])
    smat_intervals = list(zip((smat - reach).tolist(), (smat + reach).tolist(), strict=True))
    return StudyRatings(
        _to_ratings(methods, skills.mean(0), intervals, skills.std(0)),
        _to_ratings(methods, smat, smat_intervals, np.zeros(len(methods))),
        course,
    )


def comparable_intervals(skills: Float[np.ndarray, "method"], errors: Errors, pieces: int) -> list[Interval]:
    """Return intervals with at least 95% coverage that can be compared with each other.

    If all methods are equal, two intervals fail to overlap in at most 5% of studies. Plain 95% intervals do not ensure
    this, because skills are relative to each other and a study compares many pairs. So all intervals are stretched by
    the smallest common factor for which methods with disjoint intervals differ significantly by Student's t, at a level
    of 5% divided by the number of pairs (Bonferroni) and with `pieces` - 1 degrees of freedom. `pieces`: number of
    independent units, people or votes.
    """
    single, paired = student_quantile(pieces, 1), student_quantile(pieces, len(skills) * (len(skills) - 1) // 2)
    own = np.diag(errors)
    pairs = [(i, j) for i, j in combinations(range(len(skills)), 2) if own[i] + own[j] > 0]
    stretch = max([single, *(paired * float(errors[i, j] / (own[i] + own[j])) for i, j in pairs)])
    reach = stretch * own
    return list(zip((skills - reach).tolist(), (skills + reach).tolist(), strict=True))


def student_quantile(pieces: int, comparisons: int) -> float:
    """Return the two-sided 5% quantile of Student's t for `comparisons` simultaneous comparisons (Bonferroni)."""
    return float(t.ppf(1 - ERROR_RATE / (2 * comparisons), max(pieces - 1, 1)))


def standard_errors(replicates: Float[np.ndarray, "resample method"]) -> Errors:
    """Return standard errors as standard deviations over resamples."""
    gaps = replicates[:, :, None] - replicates[:, None, :]
    errors = gaps.std(axis=0)
    np.fill_diagonal(errors, replicates.std(axis=0))
    return errors


def strictly_better(first: Interval, second: Interval) -> bool:
    """Whether the first interval lies above the second without touching it."""
    return first[0] > second[1]


def partial_ranks(intervals: Sequence[Interval]) -> tuple[int, ...]:
    """Return each method's rank, 1 + the number of strictly better methods.

    Source: Fernandes et al. (2022), table 4 and appendix B: a partial order of 95% intervals.
    """
    return tuple(1 + sum(strictly_better(other, own) for other in intervals) for own in intervals)


def last_ranks(intervals: Sequence[Interval]) -> tuple[int, ...]:
    """Return each method's last possible rank, before all strictly worse ones. SMaT prints both ends, as in `3-4`."""
    return tuple(len(intervals) - sum(strictly_better(own, other) for other in intervals) for own in intervals)


def count_differences(intervals: Sequence[Interval]) -> int:
    """Return the number of pairs whose intervals do not overlap."""
    return sum(strictly_better(first, second) for first in intervals for second in intervals)


def _to_ratings(
    methods: Sequence[str], skills: Float[np.ndarray, "method"], intervals: list[Interval], spread: np.ndarray
) -> tuple[Rating, ...]:
    first, last = partial_ranks(intervals), last_ranks(intervals)
    parts = zip(methods, skills.tolist(), intervals, first, last, spread.tolist(), strict=True)
    return tuple(Rating(*part) for part in parts)


def _play_plans(
    ranks: Int[np.ndarray, "match method"], plans: Sequence[np.ndarray], report: Report
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return the skills of each plan, the variances of all replicates, and the course of the second to last plan.

    A plan is an array of orders. The last plan has SMaT's drift; the others have none.
    """
    longest = max(plan.shape[1] for plan in plans)
    orders = np.concatenate([np.pad(p, ((0, 0), (0, longest - p.shape[1])), constant_values=NO_MATCH) for p in plans])
    taus = np.full(len(orders), HEADLINE.tau)
    taus[-1] = SMAT.tau
    course = []
    for step, state in enumerate(play(ranks, orders, HEADLINE, taus)):
        report(step, longest, "votes")
        course.append(state[0][-2].copy())
    skills, variances = state
    by_plan = np.split(skills, np.cumsum([len(plan) for plan in plans])[:-1])
    return by_plan, variances, np.stack(course[: plans[-2].shape[1] + 1])


def _resample(
    groups: Sequence[np.ndarray], resamples: int, rng: np.random.Generator
) -> Int[np.ndarray, "resample step"]:
    """Draw groups with replacement and return their votes in a shuffled order, padded with `NO_MATCH`."""
    samples = [
        rng.permutation(np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))]))
        for _ in range(resamples)
    ]
    orders = np.full((resamples, max(map(len, samples))), NO_MATCH)
    for row, order in enumerate(samples):
        orders[row, : len(order)] = order
    return orders


def _resampled_groups(rankings: Sequence[Ranking]) -> list[np.ndarray]:
    """Return the units of the bootstrap: the votes of each person, or single votes if there is only one person."""
    people = sorted({ranking.annotator for ranking in rankings})
    if len(people) < 2:
        return [np.array([i]) for i in range(len(rankings))]
    number = {name: i for i, name in enumerate(people)}
    owner = np.array([number[ranking.annotator] for ranking in rankings])
    return [np.flatnonzero(owner == i) for i in range(len(people))]
