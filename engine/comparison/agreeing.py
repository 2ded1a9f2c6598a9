"""How far maps on common parts agree: every two of them, one example in a number, and what moves in their order."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.errors import not_allowed, unknown
from engine.metrics.agreement import MEASURES, TOP_PERCENT, Agreement, pairwise
from engine.metrics.ranking import is_constant, spearman, top_k_overlap
from engine.registry import explainer
from engine.result import Explanation
from engine.word_units import BASELINE

ORDERS = ("sign", "size")
"""`sign`: what speaks against the class comes last, as in every other agreement here; `size`: by the size of scores."""
Scores = Float[np.ndarray, "map part"]
Row = Float[np.ndarray, "part"]


@dataclass(frozen=True)
class How:
    """How maps are compared. `percent`: of the parts that count as the top, at least one."""

    measure: str = MEASURES[0]
    order: str = ORDERS[0]
    percent: int = TOP_PERCENT

    def __post_init__(self) -> None:
        for name, given, known in (("measure", self.measure, MEASURES), ("order", self.order, ORDERS)):
            if given not in known:
                raise unknown(name, given, known)
        if type(self.percent) is not int or not 1 <= self.percent <= 100:
            raise not_allowed("percent", "a whole number from 1 to 100", self.percent)


def agreements(scores: Scores, names: Sequence[str], how: How) -> Agreement:
    """The measure between every two maps, over the parts that both have scores for.

    NaN where a map has no order there: all of its scores are equal, or there is one part. `n` counts the parts that
    two maps have.
    """
    values = pairwise(list(scores), lambda one, other: agree(one, other, how))
    shared = int((np.isfinite(scores).sum(axis=0) >= min(2, len(names))).sum())
    ordered = (_ordered(row[np.isfinite(row)], how) for row in scores)
    constant = tuple(name for name, row in zip(names, ordered, strict=True) if not _has_order(row))
    return Agreement(how.measure, tuple(names), values, constant, shared, top_of(shared, how))


def agree(one: Row, other: Row, how: How) -> float | None:
    """Between two maps: Spearman's rho from -1 to 1, or the shared part of the top from 0 to 1."""
    both = np.isfinite(one) & np.isfinite(other)
    a, b = _ordered(one[both], how), _ordered(other[both], how)
    if not _has_order(a) or not _has_order(b):
        return None
    return spearman(a, b) if how.measure == "spearman" else top_k_overlap(a, b, top_of(len(a), how))


def top_of(parts: int, how: How) -> int:
    """How many parts count as the top."""
    return max(1, how.percent * parts // 100)


def apart(found: Agreement, reference: int | None = None, by_chance: Collection[int] = ()) -> float | None:
    """How much the maps of one example disagree: 1 minus the mean of the measure over every two maps, or over those
    with the reference. 0 where all agree; None where no two maps have an order.

    What chance has ordered disagrees with all, more on one example than on another, and tells nothing: rows
    `by_chance` do not count, unless there would be nothing to count.
    """
    pairs = [pair for pair in itertools.combinations(range(len(found.methods)), 2)
             if reference is None or reference in pair]  # fmt: skip
    informed = [pair for pair in pairs if not set(pair).intersection(by_chance)]
    known = [value for pair in informed or pairs if np.isfinite(value := found.values[pair])]
    return 1 - float(np.mean(known)) if known else None


def by_chance(maps: Sequence[Explanation]) -> tuple[int, ...]:
    """Which of the maps are of methods that know nothing."""
    return tuple(
        row for row, made in enumerate(maps)
        if explainer(made.provenance.method, "text" if made.grid is None else "image").family == BASELINE
    )  # fmt: skip


def rank_moves(reference: Row, other: Row, how: How) -> Row:
    """By how many ranks each part stands higher (above 0) or lower in a map than in the reference.

    Over the parts that both have; equal scores share the better rank. NaN where there is no rank to compare.
    """
    both = np.isfinite(reference) & np.isfinite(other)
    moves = np.full(len(reference), np.nan)
    a, b = _ordered(reference[both], how), _ordered(other[both], how)
    if _has_order(a) and _has_order(b):
        moves[both] = ranks(a) - ranks(b)
    return moves


def differences(reference: Row, other: Row, how: How) -> Row:
    """By how much a part's share of the whole map is above (or below) its share in the reference, from -2 to 2.

    A share is the score over the sum of all sizes, so that methods of different units can be held against each other.
    Over the parts that both have; NaN where there is nothing to share.
    """
    both = np.isfinite(reference) & np.isfinite(other)
    found = np.full(len(reference), np.nan)
    a, b = _ordered(reference[both], how), _ordered(other[both], how)
    if a.any() and b.any():
        found[both] = b / np.abs(b).sum() - a / np.abs(a).sum()
    return found


def moved_share(differences: Row) -> float | None:
    """How much of a map lies elsewhere than in the reference: half the sum of the differences' sizes, from 0 where both
    are the same to 1. None where there is nothing to share.
    """
    there = differences[np.isfinite(differences)]
    return float(np.abs(there).sum()) / 2 if there.size else None


def ranks(scores: Row) -> Row:
    """1 for the highest score; equal scores share the better rank."""
    return 1.0 + len(scores) - np.searchsorted(np.sort(scores), scores, side="right")


def _ordered(scores: Row, how: How) -> Row:
    return np.abs(scores) if how.order == "size" else scores


def _has_order(scores: Row) -> bool:
    return len(scores) > 0 and not is_constant(scores)
