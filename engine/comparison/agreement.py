"""Agreement of maps on common parts: pairwise, as one value per example, and as changes of rank."""

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
"""`sign`: by signed scores, evidence against the class last, as in all other agreements; `size`: by absolute scores."""


@dataclass(frozen=True)
class AgreementOptions:
    """Options of a comparison of maps. `percent`: percentage of the parts that count as the top, at least one part."""

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
    """Return the measure between every two maps, over the parts that both have scores for.

    NaN if a map has no order on these parts: all of its scores are equal, or there is only one part. `n`: number of
    parts that at least two maps have.
    """
    values = pairwise(list(scores), lambda one, other: compare_maps(one, other, options))
    shared = int((np.isfinite(scores).sum(axis=0) >= min(2, len(names))).sum())
    ordered = (_ordered(row[np.isfinite(row)], options) for row in scores)
    constant = tuple(name for name, row in zip(names, ordered, strict=True) if not _has_order(row))
    return Agreement(options.measure, tuple(names), values, constant, shared, top_count(shared, options))


def compare_maps(one: PartScores, other: PartScores, options: AgreementOptions) -> float | None:
    """Return Spearman's rho of two maps, from -1 to 1, or the share of the top that both have, from 0 to 1.

    None if a map has no order on the parts that both have.
    """
    both = np.isfinite(one) & np.isfinite(other)
    a, b = _ordered(one[both], options), _ordered(other[both], options)
    if not _has_order(a) or not _has_order(b):
        return None
    return spearman(a, b) if options.measure == "spearman" else top_k_overlap(a, b, top_count(len(a), options))


def top_count(parts: int, options: AgreementOptions) -> int:
    """Return the number of parts that count as the top."""
    return max(1, options.percent * parts // 100)


def mean_disagreement(
    agreement: Agreement, reference: int | None = None, random_rows: Collection[int] = ()
) -> float | None:
    """Return the disagreement on one example: 1 minus the mean of the measure over pairs of maps.

    The pairs are all pairs, or those with the reference. 0 if all agree; None if no two maps have an order. A random
    order disagrees with every map, by an amount that varies between examples and means nothing: pairs with
    `random_rows` are left out, unless there are no others.
    """
    values = [agreement.values[pair] for pair in compared_pairs(agreement, reference, random_rows)]
    return 1 - float(np.mean(values)) if values else None


def compared_pairs(
    agreement: Agreement, reference: int | None = None, random_rows: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Return the pairs of maps that `mean_disagreement` averages, each with a finite value."""
    pairs = [pair for pair in itertools.combinations(range(len(agreement.methods)), 2)
             if reference is None or reference in pair]  # fmt: skip
    informed = [pair for pair in pairs if not set(pair).intersection(random_rows)]
    return [pair for pair in informed or pairs if np.isfinite(agreement.values[pair])]


def find_random(maps: Sequence[Explanation]) -> tuple[int, ...]:
    """Return the indices of the maps whose method is a random baseline."""
    return tuple(
        place for place, explanation in enumerate(maps)
        if explainer(explanation.provenance.method, explanation.kind).family == BASELINE
    )  # fmt: skip


def rank_moves(reference: PartScores, other: PartScores, options: AgreementOptions) -> PartScores:
    """Return the number of ranks by which each part is higher (above 0) or lower in a map than in the reference.

    Computed over the parts that both have; equal scores share the better rank. NaN if there is no rank to compare.
    """
    both = np.isfinite(reference) & np.isfinite(other)
    moves = np.full(len(reference), np.nan)
    a, b = _ordered(reference[both], options), _ordered(other[both], options)
    if _has_order(a) and _has_order(b):
        moves[both] = ranks(a) - ranks(b)
    return moves


def share_differences(reference: PartScores, other: PartScores, options: AgreementOptions) -> PartScores:
    """Return each part's share of a map minus its share of the reference, from -2 to 2.

    A share is the score divided by the sum of all absolute scores, so that methods with different units can be
    compared. Computed over the parts that both have; NaN elsewhere, and everywhere if all scores of a map are 0.
    """
    both = np.isfinite(reference) & np.isfinite(other)
    differences = np.full(len(reference), np.nan)
    a, b = _ordered(reference[both], options), _ordered(other[both], options)
    if a.any() and b.any():
        differences[both] = b / np.abs(b).sum() - a / np.abs(a).sum()
    return differences


def moved_share(differences: PartScores) -> float | None:
    """Return the share of a map that lies elsewhere than in the reference, from 0 (no difference) to 1.

    It is half the sum of the absolute differences. None if there are none.
    """
    finite = differences[np.isfinite(differences)]
    return float(np.abs(finite).sum()) / 2 if finite.size else None


def ranks(scores: PartScores) -> PartScores:
    """Return ranks, 1 for the highest score; equal scores share the better rank."""
    return 1.0 + len(scores) - np.searchsorted(np.sort(scores), scores, side="right")


def _ordered(scores: PartScores, options: AgreementOptions) -> PartScores:
    return np.abs(scores) if options.order == "size" else scores


def _has_order(scores: PartScores) -> bool:
    return len(scores) > 0 and not is_constant(scores)
