"""From values of students or examples to a number with its ends, and how many more would settle it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from engine.reproduction.estimates import NoNumber
from engine.reproduction.intervals import widened, with_room
from engine.reproduction.labels import CEILING_WIDTH
from engine.reproduction.outcome import Number
from engine.reproduction.smat.claims import AUC, SIMULABILITY, Claim, Contrast
from engine.reproduction.smat.findings import Findings
from engine.reproduction.verdicts import CHANCE, POWER, ROUNDING, Finding, Margin, margin
from engine.scaffold.result import Cell

QUARTILES = 1.349
"""Between the quartiles of normal values lie so many of their standard deviations."""
MEDIAN = math.sqrt(math.pi / 2)
"""The standard error of the median of normal values is that of their mean times this."""


@dataclass(frozen=True)
class BySeeds(Margin):
    """How far a number of quartiles is inside its bounds. `seeds`: of students that would tell, None where none would.

    Quartiles that touch overlap: it is outside only where it lies wholly beyond the bound.
    """

    seeds: int | None = None

    @property
    def verdict(self) -> Finding:
        told = super().verdict
        return "undecided" if told == "does not hold" and self.high >= -ROUNDING else told

    @property
    def settled_by(self) -> int | None:
        return self.seeds


def numbered(
    claim: Claim, contrast: Contrast, found: Findings, seed: int, chances: tuple[float, float]
) -> tuple[Number, Margin]:
    """The number with its ends, and how far it is inside the claim's bounds. Errors: `NoNumber`."""
    if contrast.terms[0].measure == AUC:
        return _of_examples(claim, contrast, found, seed, chances)
    return _of_seeds(claim, contrast, found)


def _of_seeds(claim: Claim, contrast: Contrast, found: Findings) -> tuple[Number, Margin]:
    times = [term.times for term in contrast.terms]
    cells = [found.cell(term) for term in contrast.terms]
    pairs = list(zip(times, cells, strict=True))
    value = sum(t * cell.median for t, cell in pairs)
    low = sum(t * (cell.low if t > 0 else cell.high) for t, cell in pairs)
    high = sum(t * (cell.high if t > 0 else cell.low) for t, cell in pairs)
    n = min(len(cell.values) for cell in cells)
    held = margin(value, (low, high), (low, high), claim.bounds, n, claim.strict)
    inside = BySeeds(held.value, held.low, held.high, n, claim.strict, seeds=seeds_needed(held.value, times, cells))
    best = all(
        term.measure == SIMULABILITY and cell.median >= 1 - CEILING_WIDTH
        for term, cell in zip(contrast.terms, cells, strict=True)
    )
    return Number(contrast.name, value, low, high, low, high, n, inside.verdict, best), inside


def seeds_needed(distance: int | float, times: Sequence[int | float], cells: Sequence[Cell]) -> int | None:
    """Students a cell with which a 95 % interval of the sum of medians leaves a bound so far away, with power 0.8.

    None where the sum is the bound. As if values were normal, as spread as the quartiles now are.
    """
    if abs(distance) <= ROUNDING:
        return None
    spread = sum((t * (cell.high - cell.low) / QUARTILES) ** 2 for t, cell in zip(times, cells, strict=True))
    quantiles = NormalDist().inv_cdf(1 - CHANCE / 2) + NormalDist().inv_cdf(POWER)
    more = max(len(cell.values) for cell in cells) + 1
    return max(more, math.ceil((quantiles * MEDIAN / distance) ** 2 * spread))


def _of_examples(
    claim: Claim, contrast: Contrast, found: Findings, seed: int, chances: tuple[float, float]
) -> tuple[Number, Margin]:
    each = [found.by_example(term) for term in contrast.terms]
    common = sorted(set.intersection(*map(set, each)))
    if len(common) < 2:
        raise NoNumber(f"{len(common)} examples have a value, and 2 are needed for an interval.")
    times = [term.times for term in contrast.terms]
    values = np.array([sum(t * one[at] for t, one in zip(times, each, strict=True)) for at in common])
    ends = float(sum(min(t, 0) for t in times)), float(sum(max(t, 0) for t in times))
    plain, inner, outer = (
        with_room(values, widened(values, seed, chance), ends, chance) for chance in (CHANCE, *chances)
    )
    value = float(values.mean())
    inside = margin(value, inner, outer, claim.bounds, len(common), claim.strict, chances)
    best = all(np.mean(list(one.values())) >= 1 - CEILING_WIDTH for one in each)
    return Number(contrast.name, value, *plain, *outer, len(common), inside.verdict, best), inside
