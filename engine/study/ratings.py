"""Ratings of a study: TrueSkill over shuffled orders, intervals over annotators that can be compared, partial ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import t

from engine.errors import UsageError
from engine.study.rankings import Ranking, rank_table, ranked_methods
from engine.study.skill import HEADLINE, NO_MATCH, SMAT, play

ORDERS = 200
RESAMPLES = 1000
RANDOM_STUDIES = 200
"""Studies of random votes, whose spread is the least standard error."""
SMAT_WIDTH = 1.96
"""Standard deviations on each side of SMaT's intervals."""
ERROR_RATE = 0.05
"""Share of studies of equal methods in which the intervals of any two may not overlap."""

Interval = tuple[int | float, int | float]
"""Low and high end."""
Errors = Float[np.ndarray, "method method"]
"""Standard errors: of a method's skill on the diagonal, of the difference of two skills elsewhere."""


@dataclass(frozen=True)
class Rating:
    """A method's skill with its interval, and the first and last rank that it may have in the partial order.

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
    """The headline ratings, SMaT's ratings, and each method's skill after 0, 1, 2, ... votes in time order."""

    ratings: tuple[Rating, ...]
    smat: tuple[Rating, ...]
    course: Float[np.ndarray, "vote method"]


def rate_methods(
    rankings: Sequence[Ranking], seed: int = 0, orders: int = ORDERS, resamples: int = RESAMPLES
) -> StudyRatings:
    """Rate all methods in one pass: many orders of the votes take the time of one.

    Headline: TrueSkill with tau = 0, the mean over shuffled orders of all votes, and a bootstrap over annotators, whose
    votes come and go together; with fewer than two annotators the votes are resampled. The intervals are those of
    `comparable_intervals`. A few people may agree by luck, so no standard error is smaller than that of votes whose
    ranks are dealt to the methods at random.
    """
    methods = ranked_methods(rankings)
    if len(methods) < 2:
        raise UsageError(f"votes: must rank at least two methods, got {len(methods)} in {len(rankings)} votes.")
    ranks, groups, rng = rank_table(rankings), _resampled_groups(rankings), np.random.default_rng(seed)
    votes = len(ranks)
    in_time = np.argsort([ranking.at for ranking in rankings], kind="stable")[None]
    shuffled = np.stack([rng.permutation(votes) for _ in range(orders)])
    resampled = _resample(groups, resamples, rng)
    # The votes of the random studies follow the real ones, study by study: each vote's own ranks, dealt anew.
    random_ranks = rng.permuted(np.tile(ranks, (RANDOM_STUDIES, 1)), axis=1)
    random_orders = votes * np.arange(1, RANDOM_STUDIES + 1)[:, None] + np.arange(votes)
    (skills, bootstrap, random, _, (smat,)), variances, course = _play_plans(
        np.concatenate([ranks, random_ranks]), (shuffled, resampled, random_orders, in_time, in_time)
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
    """Intervals of at least 95 % each, of which at most 5 % of studies of equal methods have two that do not overlap.

    Plain 95 % intervals do not promise the second: skills are relative to each other, and a study compares many pairs.
    So all are stretched by one factor, the least for which two that do not overlap differ by more than Student's t
    allows at 5 % divided by the number of pairs (Bonferroni), with `pieces` of evidence less one degrees of freedom.
    """
    single, paired = student_quantile(pieces, 1), student_quantile(pieces, len(skills) * (len(skills) - 1) // 2)
    own = np.diag(errors)
    pairs = [(i, j) for i, j in combinations(range(len(skills)), 2) if own[i] + own[j] > 0]
    stretch = max([single, *(paired * float(errors[i, j] / (own[i] + own[j])) for i, j in pairs)])
    reach = stretch * own
    return list(zip((skills - reach).tolist(), (skills + reach).tolist(), strict=True))


def student_quantile(pieces: int, comparisons: int) -> float:
    """Two-sided 5 % quantile of Student's t for that many simultaneous comparisons (Bonferroni)."""
    return float(t.ppf(1 - ERROR_RATE / (2 * comparisons), max(pieces - 1, 1)))


def standard_errors(replicates: Float[np.ndarray, "resample method"]) -> Errors:
    """Standard errors as the spread over resamples."""
    gaps = replicates[:, :, None] - replicates[:, None, :]
    errors = gaps.std(axis=0)
    np.fill_diagonal(errors, replicates.std(axis=0))
    return errors


def strictly_better(first: Interval, second: Interval) -> bool:
    """Whether the first interval lies above the second without touching it."""
    return first[0] > second[1]


def partial_ranks(intervals: Sequence[Interval]) -> tuple[int, ...]:
    """1 + the number of strictly better methods: a method is not significantly different from the best of its rank.

    Source: Fernandes et al. (2022), table 4 and appendix B: a partial order of 95 % intervals.
    """
    return tuple(1 + sum(strictly_better(other, own) for other in intervals) for own in intervals)


def last_ranks(intervals: Sequence[Interval]) -> tuple[int, ...]:
    """The last rank that each may have: all but the strictly worse methods. SMaT prints both ends, `3-4`."""
    return tuple(len(intervals) - sum(strictly_better(own, other) for other in intervals) for own in intervals)


def count_differences(intervals: Sequence[Interval]) -> int:
    """The number of pairs that are significantly different."""
    return sum(strictly_better(first, second) for first in intervals for second in intervals)


def _to_ratings(
    methods: Sequence[str], skills: Float[np.ndarray, "method"], intervals: list[Interval], spread: np.ndarray
) -> tuple[Rating, ...]:
    first, last = partial_ranks(intervals), last_ranks(intervals)
    parts = zip(methods, skills.tolist(), intervals, first, last, spread.tolist(), strict=True)
    return tuple(Rating(*part) for part in parts)


def _play_plans(
    ranks: Int[np.ndarray, "match method"], plans: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Skills of each plan, the variances of all, and the course of the last plan but one.

    A plan is an array of orders. The last plan has SMaT's drift, all others have none.
    """
    longest = max(plan.shape[1] for plan in plans)
    orders = np.concatenate([np.pad(p, ((0, 0), (0, longest - p.shape[1])), constant_values=NO_MATCH) for p in plans])
    taus = np.full(len(orders), HEADLINE.tau)
    taus[-1] = SMAT.tau
    course = []
    for state in play(ranks, orders, HEADLINE, taus):
        course.append(state[0][-2].copy())
    skills, variances = state
    by_plan = np.split(skills, np.cumsum([len(plan) for plan in plans])[:-1])
    return by_plan, variances, np.stack(course[: plans[-2].shape[1] + 1])


def _resample(
    groups: Sequence[np.ndarray], resamples: int, rng: np.random.Generator
) -> Int[np.ndarray, "resample step"]:
    """Votes of groups drawn with replacement, in a shuffled order."""
    samples = [
        rng.permutation(np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))]))
        for _ in range(resamples)
    ]
    orders = np.full((resamples, max(map(len, samples))), NO_MATCH)
    for row, order in enumerate(samples):
        orders[row, : len(order)] = order
    return orders


def _resampled_groups(rankings: Sequence[Ranking]) -> list[np.ndarray]:
    """What is resampled as one: the votes of a person, or each vote if there is one person."""
    people = sorted({ranking.annotator for ranking in rankings})
    if len(people) < 2:
        return [np.array([i]) for i in range(len(rankings))]
    number = {name: i for i, name in enumerate(people)}
    owner = np.array([number[ranking.annotator] for ranking in rankings])
    return [np.flatnonzero(owner == i) for i in range(len(people))]
