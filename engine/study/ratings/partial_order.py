"""Ranks of methods by their intervals: what is not told apart shares a rank."""

from __future__ import annotations

from collections.abc import Sequence

Interval = tuple[int | float, int | float]
"""Low and high end."""


def strictly_better(one: Interval, other: Interval) -> bool:
    """Whether the first interval lies above the second without touching it."""
    return one[0] > other[1]


def partial_ranks(intervals: Sequence[Interval]) -> tuple[int, ...]:
    """1 + how many are strictly better. Methods of one rank are not told apart from the best of that rank.

    Source: Fernandes et al. (2022), table 4 and appendix B: a partial order of 95 % intervals.
    """
    return tuple(1 + sum(strictly_better(other, one) for other in intervals) for one in intervals)


def last_ranks(intervals: Sequence[Interval]) -> tuple[int, ...]:
    """The last place that each may hold: as many are strictly worse as follow it. SMaT writes both ends, `3-4`."""
    return tuple(len(intervals) - sum(strictly_better(one, other) for other in intervals) for one in intervals)


def claims(intervals: Sequence[Interval]) -> int:
    """How many pairs are said to differ."""
    return sum(strictly_better(one, other) for one in intervals for other in intervals)
