"""How many more votes would tell two methods apart, if people go on as they did?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from engine.study.ratings.headline import Rating
from engine.study.ratings.intervals import student

LEAST_PEOPLE, MOST_PEOPLE = 2, 10_000
"""Of fewer, how people differ is not known, and nothing is forecast. A pair that needs more is as good as equal."""
STEPS = 40


@dataclass(frozen=True)
class Needed:
    """A pair of methods, the better first, and how many annotators and votes their intervals need to separate.

    The numbers count those that are there, and are None beyond 10,000 annotators and where nothing can be forecast.
    `apart`: they are separate already.
    """

    better: str
    worse: str
    gap: float
    apart: bool
    annotators: int | None
    votes: int | None


@dataclass(frozen=True)
class Expected:
    """How many pairs of methods are expected to be told apart after so many votes."""

    annotators: int
    votes: int
    pairs: int


def votes_needed(ratings: Sequence[Rating], annotators: int, votes: int) -> tuple[Needed, ...]:
    """For each pair, supposing that gaps and tastes stay and each annotator gives as many votes as those before.

    Intervals then shrink, beside the gap, as 1 / sqrt(annotators), and with Student's t. A forecast, not a promise.
    """
    return tuple(_needed(one, other, len(ratings), annotators, votes) for one, other in _ordered(ratings))


def expected(ratings: Sequence[Rating], annotators: int, votes: int) -> tuple[Expected, ...]:
    """The chart of power: pairs told apart by number of votes, from two annotators to four times those there are.

    Empty where nothing can be forecast.
    """
    if annotators < LEAST_PEOPLE:
        return ()
    pairs = [pair.annotators for pair in votes_needed(ratings, annotators, votes)]
    most, each = max(4 * annotators, 8), votes / annotators
    people = sorted({round(LEAST_PEOPLE * (most / LEAST_PEOPLE) ** (step / STEPS)) for step in range(STEPS + 1)})
    return tuple(Expected(n, round(n * each), sum(pair is not None and pair <= n for pair in pairs)) for n in people)


def _ordered(ratings: Sequence[Rating]) -> list[tuple[Rating, Rating]]:
    return list(combinations(sorted(ratings, key=lambda rating: -rating.skill), 2))


def _needed(one: Rating, other: Rating, methods: int, annotators: int, votes: int) -> Needed:
    gap = one.skill - other.skill
    reach = (one.interval[1] - one.interval[0] + other.interval[1] - other.interval[0]) / 2
    people = _people(gap, reach, methods * (methods - 1) // 2, annotators)
    all_votes = None if people is None else math.ceil(people * votes / annotators)
    return Needed(one.method, other.method, gap, gap > reach, people, all_votes)


def _people(gap: float, reach: float, pairs: int, now: int) -> int | None:
    """The least number of annotators for whom the intervals would be shorter than the gap."""
    low, high = LEAST_PEOPLE - 1, MOST_PEOPLE
    if now < LEAST_PEOPLE or not _apart(gap, reach, pairs, now, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _apart(gap, reach, pairs, now, middle) else (middle, high)
    return high


def _apart(gap: float, reach: float, pairs: int, now: int, people: int) -> bool:
    shrunk = student(people, pairs) / student(now, pairs) * math.sqrt(now / people)
    return gap > reach * shrunk
