"""What claims are about, by the experiment that measures it: metrics of an evaluation, curves of a randomization, and
what attacks changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from engine.errors import unknown
from engine.metrics.catalog import FALL, FALL_OF_LOGIT, METRICS, Better, Metric

Source = Literal["evaluation", "randomization", "attack", "scaffold"]
ATTACKS = ("unconstrained", "constrained")
"""Both objectives, by which the names of an attack's measures begin."""


@dataclass(frozen=True)
class Measure:
    """`low`, `high`: between which each value lies. `fall`: whether it is what one probability lost."""

    id: str
    title: str
    source: Source
    low: float
    high: float
    better: Better = "neither"
    fall: bool = False


_LIKENESS = {
    "cascading_first": "rho with the last block random",
    "cascading_second": "rho with the last two blocks random",
    "cascading_half": "rho with the later half of the blocks random",
    "cascading_end": "rho with all blocks random",
    "cascading_mean": "mean rho of the cascade",
    "cascading_trend": "rank correlation of rho with the number of random blocks",
    "independent_first": "rho with the first block alone random",
    "independent_mean": "mean rho with each block alone random",
}
"""Spearman's rho of a map with that of the model as it is: a mean over the seeds in each example."""
_CHANGES = {
    "rank_change": ("Rank change", 0.0),
    "top_k_sum_change_normalised": ("Top-k sum change, normalised", -2.0),
    "probability_change": ("Probability change", -1.0),
    "probability_distance": ("Probability distance", 0.0),
}
"""With the lowest that each can be; the highest is 1, or 2 where the lowest is -2."""


def _of_evaluations() -> list[Measure]:
    return [
        Measure(one.id, one.title, "evaluation", *_ends(one), one.better, one.unit == FALL) for one in METRICS.values()
    ]


def _ends(metric: Metric) -> tuple[float, float]:
    if metric.unit == FALL_OF_LOGIT:
        return -math.inf, math.inf
    return (-1.0 if metric.unit == FALL else 0.0), 1.0


def _of_attacks() -> list[Measure]:
    return [
        Measure(f"{objective}_{id}", f"{title}, {objective}", "attack", low, max(1.0, -low))
        for objective in ATTACKS
        for id, (title, low) in _CHANGES.items()
    ]


MEASURES = {
    one.id: one
    for one in (
        *_of_evaluations(),
        *(Measure(id, title, "randomization", -1.0, 1.0) for id, title in _LIKENESS.items()),
        *_of_attacks(),
    )
}


def measure(id: str) -> Measure:
    """The measure of that id. Errors list the known ones."""
    if id not in MEASURES:
        raise unknown("metric", id, MEASURES)
    return MEASURES[id]
