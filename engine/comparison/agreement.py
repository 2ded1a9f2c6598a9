"""Agreement of maps on common parts: between every two of them, as one number an example, and by moves in rank."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.comparison.alignment import PartScores
from engine.errors import not_allowed, unknown
from engine.metrics.agreement import MEASURES, TOP_PERCENT, Agreement, pairwise
from engine.metrics.ranking import is_constant, spearman, top_k_overlap
from engine.registry import explainer
from engine.result import Explanation
from engine.word_units import BASELINE

ORDERS = ("sign", "size")
"""`sign`: what speaks against the class comes last, as in every other agreement here; `size`: by the size of scores."""


@dataclass(frozen=True)
class AgreementOptions:
    """How maps are compared. `percent`: of the parts that count as the top, at least one."""

    measure: str = MEASURES[0]
    order: str = ORDERS[0]
    percent: int = TOP_PERCENT

    def __post_init__(self) -> None:
        for name, value, choices in (("measure", self.measure, MEASURES), ("order", self.order, ORDERS)):
            if value not in choices:
                raise unknown(name, value, choices)
        if type(self.percent) is not int or not 1 <= self.percent <= 100:
            raise not_allowed("percent", "a whole number from 1 to 100", self.percent)


def measure_agreement(
    scores: Float[np.ndarray, "map part"], names: Sequence[str], options: AgreementOptions
) -> Agreement:
    """The measure between every two maps, over the parts that both have scores for.

    NaN where a map has no order there: all of its scores are equal, or there is one part. `n` counts the parts that
    two maps have.
    """
    values = pairwise(list(scores), lambda one, other: compare_maps(one, other, options))
    shared = int((np.isfinite(scores).sum(axis=0) >= min(2, len(names))).sum())
    ordered = (_ordered(row[np.isfinite(row)], options) for row in scores)
    constant = tuple(name for name, row in zip(names, ordered, strict=True) if not _has_order(row))
    return Agreement(options.measure, tuple(names), values, constant, shared, top_count(shared, options))


def compare_maps(one: PartScores, other: PartScores, options: AgreementOptions) -> float | None:
    """Spearman's rho of two maps, from -1 to 1, or the share of the top that both have, from 0 to 1.

    None where a map has no order on the parts of both.
    """
    both = np.isfinite(one) & np.isfinite(other)
    a, b = _ordered(one[both], options), _ordered(other[both], options)
    if not _has_order(a) or not _has_order(b):
        return None
    return spearman(a, b) if options.measure == "spearman" else top_k_overlap(a, b, top_count(len(a), options))


def top_count(parts: int, options: AgreementOptions) -> int:
    """Number of parts that count as the top."""
    return max(1, options.percent * parts // 100)


def mean_disagreement(
    agreement: Agreement, reference: int | None = None, random_rows: Collection[int] = ()
) -> float | None:
    """Disagreement on one example: 1 minus the mean of the measure over every two maps, or over those with the
    reference. 0 where all agree; None where no two maps have an order.

    A random order disagrees with all, more on one example than on another, and tells nothing: `random_rows` do not
    count, unless there would be nothing to count.
    """
    values = [agreement.values[pair] for pair in compared_pairs(agreement, reference, random_rows)]
    return 1 - float(np.mean(values)) if values else None


def compared_pairs(
    agreement: Agreement, reference: int | None = None, random_rows: Collection[int] = ()
) -> list[tuple[int, int]]:
    """The pairs of maps that `mean_disagreement` is over, each with a finite value."""
    pairs = [pair for pair in itertools.combinations(range(len(agreement.methods)), 2)
             if reference is None or reference in pair]  # fmt: skip
    informed = [pair for pair in pairs if not set(pair).intersection(random_rows)]
    return [pair for pair in informed or pairs if np.isfinite(agreement.values[pair])]


def find_random(maps: Sequence[Explanation]) -> tuple[int, ...]:
    """Places of the maps whose method is a random baseline."""
    return tuple(
        place for place, explanation in enumerate(maps)
        if explainer(explanation.provenance.method, explanation.kind).family == BASELINE
    )  # fmt: skip


def rank_moves(reference: PartScores, other: PartScores, options: AgreementOptions) -> PartScores:
    """Ranks by which each part stands higher (above 0) or lower in a map than in the reference.

    Over the parts that both have; equal scores share the better rank. NaN where there is no rank to compare.
    """
    both = np.isfinite(reference) & np.isfinite(other)
    moves = np.full(len(reference), np.nan)
    a, b = _ordered(reference[both], options), _ordered(other[both], options)
    if _has_order(a) and _has_order(b):
        moves[both] = ranks(a) - ranks(b)
    return moves


def share_differences(reference: PartScores, other: PartScores, options: AgreementOptions) -> PartScores:
    """Each part's share of the whole map minus its share in the reference, from -2 to 2.

    A share is the score over the sum of all sizes, so that methods of different units can be compared.
    Over the parts that both have; NaN where there is nothing to share.
    """
    both = np.isfinite(reference) & np.isfinite(other)
    differences = np.full(len(reference), np.nan)
    a, b = _ordered(reference[both], options), _ordered(other[both], options)
    if a.any() and b.any():
        differences[both] = b / np.abs(b).sum() - a / np.abs(a).sum()
    return differences


def moved_share(differences: PartScores) -> float | None:
    """Share of a map that lies elsewhere than in the reference: half the sum of the differences' sizes, from 0 where
    both are the same to 1. None where there is nothing to share.
    """
    finite = differences[np.isfinite(differences)]
    return float(np.abs(finite).sum()) / 2 if finite.size else None


def ranks(scores: PartScores) -> PartScores:
    """1 for the highest score; equal scores share the better rank."""
    return 1.0 + len(scores) - np.searchsorted(np.sort(scores), scores, side="right")


def _ordered(scores: PartScores, options: AgreementOptions) -> PartScores:
    return np.abs(scores) if options.order == "size" else scores


def _has_order(scores: PartScores) -> bool:
    return len(scores) > 0 and not is_constant(scores)
