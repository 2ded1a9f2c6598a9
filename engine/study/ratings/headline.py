"""The ratings that a study reports: TrueSkill over shuffled orders, intervals over annotators, and SMaT's beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engine.errors import UsageError
from engine.study.ratings.intervals import comparable, errors_of
from engine.study.ratings.matches import Match, methods_of, rank_table
from engine.study.ratings.partial_order import Interval, last_ranks, partial_ranks
from engine.study.ratings.skill import HEADLINE, NO_MATCH, SMAT, played

ORDERS = 200
RESAMPLES = 1000
CHANCE_STUDIES = 200
"""Studies by pure chance, from which the least standard errors follow."""
SMAT_WIDTH = 1.96
"""Standard deviations on each side of SMaT's intervals."""


@dataclass(frozen=True)
class Rating:
    """A method's skill, its interval, and from which to which place it may stand in the partial order.

    `spread` is the standard deviation of the skill over orders of the same votes: 0 where the order does not matter.
    """

    method: str
    skill: float
    interval: Interval
    rank: int
    last: int
    spread: float


@dataclass(frozen=True)
class Standing:
    """The headline's ratings, SMaT's, and each method's skill after 0, 1, 2, ... votes in time order."""

    ratings: tuple[Rating, ...]
    smat: tuple[Rating, ...]
    course: Float[np.ndarray, "vote method"]


def standing(matches: Sequence[Match], seed: int = 0, orders: int = ORDERS, resamples: int = RESAMPLES) -> Standing:
    """All that is played, played at once: many orders of the votes take the time of one.

    Headline: TrueSkill with tau = 0, the mean over shuffled orders of all votes, and a bootstrap over annotators.
    One annotator is resampled as one: their votes come and go together. Of fewer than two the votes are resampled.
    The intervals are those of `comparable`. Few people may agree by luck, so no standard error is taken for smaller
    than votes would have whose ranks are dealt to the methods by chance.
    """
    methods, chance = _checked(matches), np.random.default_rng(seed)
    ranks, groups, timely = rank_table(matches), _groups(matches), _in_time(matches)
    plans = (_shuffled(len(matches), orders, chance), _resampled(groups, resamples, chance), _each_alone(len(matches)))
    (skills, again, dealt, _, (smat,)), variances, course = _played(
        (ranks, _dealt(ranks, chance)), (*plans, timely, timely)
    )
    pieces = len(groups)
    widened = errors_of(again) * np.sqrt(pieces / max(pieces - 1, 1))  # a bootstrap spread is short by this factor
    intervals = comparable(skills.mean(0), np.maximum(widened, errors_of(dealt)), pieces)
    ratings = _ratings(methods, skills.mean(0), intervals, skills.std(0))
    return Standing(ratings, _smat_ratings(methods, smat, np.sqrt(variances[-1])), course)


def headline(
    matches: Sequence[Match], seed: int = 0, orders: int = ORDERS, resamples: int = RESAMPLES
) -> tuple[Rating, ...]:
    """The ratings that a study reports."""
    return standing(matches, seed, orders, resamples).ratings


def _smat_ratings(
    methods: Sequence[str], mu: Float[np.ndarray, "method"], sigma: Float[np.ndarray, "method"]
) -> tuple[Rating, ...]:
    """SMaT's setting: one pass in time order with the package's drift. Its intervals widen with votes."""
    reach = SMAT_WIDTH * sigma
    intervals = list(zip((mu - reach).tolist(), (mu + reach).tolist(), strict=True))
    return _ratings(methods, mu, intervals, np.zeros(len(methods)))


def _checked(matches: Sequence[Match]) -> tuple[str, ...]:
    methods = methods_of(matches)
    if len(methods) < 2:
        raise UsageError(f"votes: must rank at least two methods, got {len(methods)} in {len(matches)} votes.")
    return methods


def _ratings(
    methods: Sequence[str], skills: Float[np.ndarray, "method"], intervals: list[Interval], spread: np.ndarray
) -> tuple[Rating, ...]:
    first, last = partial_ranks(intervals), last_ranks(intervals)
    parts = zip(methods, skills.tolist(), intervals, first, last, spread.tolist(), strict=True)
    return tuple(Rating(*part) for part in parts)


def _played(
    tables: Sequence[np.ndarray], plans: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Skills of each plan, the variances of all, and the course of the last plan but one.

    The last plan has SMaT's drift, all others have none.
    """
    longest = max(plan.shape[1] for plan in plans)
    orders = np.concatenate([np.pad(p, ((0, 0), (0, longest - p.shape[1])), constant_values=NO_MATCH) for p in plans])
    taus = np.full(len(orders), HEADLINE.tau)
    taus[-1] = SMAT.tau
    course = []
    for now in played(np.concatenate(tables), orders, HEADLINE, taus):
        course.append(now[0][-2].copy())
    skills, variances = now
    found = np.split(skills, np.cumsum([len(plan) for plan in plans])[:-1])
    return found, variances, np.stack(course[: plans[-2].shape[1] + 1])


def _in_time(matches: Sequence[Match]) -> Int[np.ndarray, "1 match"]:
    """The one order in which they were made; of equal times the order given."""
    return np.argsort([match.at for match in matches], kind="stable")[None]


def _shuffled(count: int, orders: int, chance: np.random.Generator) -> Int[np.ndarray, "order match"]:
    return np.stack([chance.permutation(count) for _ in range(orders)])


def _resampled(
    groups: Sequence[np.ndarray], resamples: int, chance: np.random.Generator
) -> Int[np.ndarray, "resample step"]:
    """Matches of annotators drawn with replacement, in a shuffled order."""
    drawn = [
        chance.permutation(np.concatenate([groups[i] for i in chance.integers(len(groups), size=len(groups))]))
        for _ in range(resamples)
    ]
    orders = np.full((resamples, max(map(len, drawn))), NO_MATCH)
    for row, order in enumerate(drawn):
        orders[row, : len(order)] = order
    return orders


def _dealt(ranks: Int[np.ndarray, "match method"], chance: np.random.Generator) -> Int[np.ndarray, "dealt method"]:
    """The votes of studies by chance, one study after the other: each vote's own ranks, dealt anew."""
    return chance.permuted(np.tile(ranks, (CHANCE_STUDIES, 1)), axis=1)


def _each_alone(count: int) -> Int[np.ndarray, "study match"]:
    """The studies by chance, whose votes follow those of the real one."""
    return count * np.arange(1, CHANCE_STUDIES + 1)[:, None] + np.arange(count)


def _groups(matches: Sequence[Match]) -> list[np.ndarray]:
    """What is resampled as one: the votes of a person, or each vote where there is one person."""
    people = sorted({match.annotator for match in matches})
    if len(people) < 2:
        return [np.array([i]) for i in range(len(matches))]
    number = {name: i for i, name in enumerate(people)}
    owner = np.array([number[match.annotator] for match in matches])
    return [np.flatnonzero(owner == i) for i in range(len(people))]
