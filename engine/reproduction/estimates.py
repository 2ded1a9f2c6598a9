"""What a contrast comes to on what was found: a number with its 95 % interval over examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from engine.metrics.bootstrap import LEVEL, Interval, interval, resampled
from engine.metrics.catalog import metric
from engine.reproduction.claims import Contrast, Term

Cell = tuple[str, str, str, str]
"""Task, part that a model plays, method, metric."""
Values = Mapping[int, float]
"""By example."""
Weights = Sequence[int | float]


@dataclass(frozen=True)
class Estimate:
    """`n`: examples that have all the numbers; of two data sets the smaller n."""

    value: float
    interval: Interval
    n: int


class NoNumber(Exception):
    """Says why a contrast comes to none."""


def estimate(contrast: Contrast, found: Mapping[Cell, Values], seed: int) -> Estimate:
    """By pairs: only examples count that have a value in every cell of their task.

    Means over methods and models are taken within an example, and the interval is that of `bootstrap.interval`. A
    spread is no mean: its interval holds the middle 95 % of its values over resampled examples. Tasks have examples of
    their own: the sum's interval adds the squares of what each interval reaches (Zou and Donner, 2008).
    """
    tasks = dict.fromkeys(term.task for term in contrast.terms)
    parts = [_of_task([term for term in contrast.terms if term.task == task], contrast, found, seed) for task in tasks]
    return parts[0] if len(parts) == 1 else _summed(parts)


def _of_task(terms: Sequence[Term], contrast: Contrast, found: Mapping[Cell, Values], seed: int) -> Estimate:
    cells = [_cells(term) for term in terms]
    examples = _shared([cell for own in cells for of_model in own for cell in of_model], found)
    columns = [np.stack([_mean_of(of_model, found, examples) for of_model in own], axis=1) for own in cells]
    weights = [term.times * (_sign(term) if contrast.oriented else 1) for term in terms]
    return _summary(terms, weights, columns, seed)


def _shared(cells: Sequence[Cell], found: Mapping[Cell, Values]) -> list[int]:
    for cell in cells:
        if not found.get(cell):
            raise NoNumber(f"no example has a value of {cell[3]} of {cell[2]}.")
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
    return -1 if metric(term.metric).better == "low" else 1


def _summary(terms: Sequence[Term], weights: Weights, columns: Sequence[np.ndarray], seed: int) -> Estimate:
    sums = partial(_sum, terms, weights)
    n = len(columns[0])
    if any(term.take == "spread" for term in terms):
        ends = np.quantile(sums([resampled(own, seed) for own in columns]), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        [value] = sums([own.mean(axis=0, keepdims=True) for own in columns])
        return Estimate(float(value), (float(ends[0]), float(ends[1])), n)
    values = sums(columns)
    found = interval(values, seed, len(terms) == 1 and weights[0] == 1 and metric(terms[0].metric).is_share)
    assert found is not None
    return Estimate(float(values.mean()), found, n)


def _sum(
    terms: Sequence[Term], weights: Weights, columns: Sequence[Float[np.ndarray, "row _"]]
) -> Float[np.ndarray, "row"]:
    taken = [
        np.ptp(own, axis=1) if term.take == "spread" else own.mean(axis=1)
        for term, own in zip(terms, columns, strict=True)
    ]
    return np.stack(taken, axis=1) @ np.array(weights, dtype=np.float64)


def _summed(parts: Sequence[Estimate]) -> Estimate:
    value = sum(part.value for part in parts)
    below = math.sqrt(sum((part.value - part.interval[0]) ** 2 for part in parts))
    above = math.sqrt(sum((part.interval[1] - part.value) ** 2 for part in parts))
    return Estimate(value, (value - below, value + above), min(part.n for part in parts))
