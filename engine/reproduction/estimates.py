"""What a contrast comes to on what was found: a number with its intervals over examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.metrics.results import Interval
from engine.reproduction.claims import Contrast, Term
from engine.reproduction.intervals import ends_of, of_mean
from engine.reproduction.measures import measure
from engine.reproduction.spreads import variances
from engine.reproduction.verdicts import CHANCE

Cell = tuple[str, str, str, str]
"""Task, part that a model plays, method, metric."""
Values = Mapping[int, float]
"""By example."""
Weights = Sequence[int | float]
Chances = Sequence[float]


@dataclass(frozen=True)
class Estimate:
    """`intervals`: one for each chance of error. `n`: examples that have all the numbers; of two data sets the
    smaller n."""

    value: float
    intervals: tuple[Interval, ...]
    n: int


class NoNumber(Exception):
    """Says why a contrast comes to none."""


def estimate(contrast: Contrast, found: Mapping[Cell, Values], seed: int, chances: Chances = (CHANCE,)) -> Estimate:
    """By pairs: only examples count that have a value in every cell of their task.

    Means over methods and models are taken within an example (`intervals.of_mean`); of variances between models see
    `spreads`. Tasks have examples of their own: the sum's interval adds the squares of what each interval reaches (Zou
    and Donner, 2008).
    """
    tasks = dict.fromkeys(term.task for term in contrast.terms)
    of_task = ([term for term in contrast.terms if term.task == task] for task in tasks)
    parts = [_of_task(terms, contrast.oriented, found, seed, chances) for terms in of_task]
    return parts[0] if len(parts) == 1 else _summed(parts)


def _of_task(
    terms: Sequence[Term], oriented: bool, found: Mapping[Cell, Values], seed: int, chances: Chances
) -> Estimate:
    cells = [_cells(term) for term in terms]
    examples = _shared([cell for own in cells for of_model in own for cell in of_model], found)
    columns = [np.stack([_mean_of(of_model, found, examples) for of_model in own], axis=1) for own in cells]
    weights = [term.times * (_sign(term) if oriented else 1) for term in terms]
    if terms[0].take == "variance":
        return Estimate(*variances(columns, weights, chances), len(examples))
    values = np.stack([own.mean(axis=1) for own in columns], axis=1) @ np.array(weights, dtype=np.float64)
    ends = ends_of(terms, weights)
    intervals = tuple(of_mean(values, ends, terms, seed, chance) for chance in chances)
    return Estimate(float(values.mean()), intervals, len(examples))


def _shared(cells: Sequence[Cell], found: Mapping[Cell, Values]) -> list[int]:
    for cell in cells:
        if not found.get(cell):
            _, model, method, measured = cell
            raise NoNumber(f"no example has a value of {measured} of {method} on {model}.")
    examples = sorted(set.intersection(*(set(found[cell]) for cell in cells)))
    if len(examples) < 2:
        raise NoNumber("fewer than two examples have all the numbers.")
    return examples


def _cells(term: Term) -> list[list[Cell]]:
    """By model, those of its methods."""
    return [[(term.task, model, method, term.metric) for method in term.methods] for model in term.models]


def _mean_of(cells: Sequence[Cell], found: Mapping[Cell, Values], examples: Sequence[int]) -> np.ndarray:
    return np.mean([[found[cell][example] for example in examples] for cell in cells], axis=0)


def _sign(term: Term) -> int:
    return -1 if measure(term.metric).better == "low" else 1


def _summed(parts: Sequence[Estimate]) -> Estimate:
    value = sum(part.value for part in parts)
    values = [part.value for part in parts]
    intervals = tuple(_ends(value, values, own) for own in zip(*(part.intervals for part in parts), strict=True))
    return Estimate(value, intervals, min(part.n for part in parts))


def _ends(value: float, values: Sequence[float], own: Sequence[Interval]) -> Interval:
    below = math.sqrt(sum((one - low) ** 2 for one, (low, _) in zip(values, own, strict=True)))
    above = math.sqrt(sum((high - one) ** 2 for one, (_, high) in zip(values, own, strict=True)))
    return value - below, value + above
