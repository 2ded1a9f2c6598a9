"""What claims are about: measures by the experiment that yields them, and names of tasks and settings in reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from engine.errors import unknown
from engine.metrics.catalog import FALL, FALL_OF_LOGIT, METRICS, Better

Source = Literal["evaluation", "randomization", "attack", "scaffold"]
ATTACKS = ("unconstrained", "constrained")
"""Both objectives, by which the names of an attack's measures begin."""
OVERLAP = "gt_overlap"
"""The metric that is 0 or 1 in each example of one model."""
BEST_RANK = {"mean_rank_pct": OVERLAP}
"""A rank is the best that it can be where the marked tokens are the top ones: the measure that says so."""


@dataclass(frozen=True)
class Measure:
    """`low`, `high`: range of its values. `fall`: whether it is a fall of one probability."""

    id: str
    title: str
    source: Source
    low: float
    high: float
    better: Better = "neither"
    fall: bool = False


_SIMILARITIES = {
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
"""Title and lowest value of each; the highest value is 1, or 2 where the lowest is -2."""


def _evaluation_measures() -> list[Measure]:
    measures = []
    for metric in METRICS.values():
        low, high = (-1.0 if metric.unit == FALL else 0.0), 1.0
        if metric.unit == FALL_OF_LOGIT:
            low, high = -math.inf, math.inf
        measures.append(Measure(metric.id, metric.title, "evaluation", low, high, metric.better, metric.unit == FALL))
    return measures


def _attack_measures() -> list[Measure]:
    return [
        Measure(f"{objective}_{id}", f"{title}, {objective}", "attack", low, max(1.0, -low))
        for objective in ATTACKS
        for id, (title, low) in _CHANGES.items()
    ]


MEASURES = {
    one.id: one
    for one in (
        *_evaluation_measures(),
        *(Measure(id, title, "randomization", -1.0, 1.0) for id, title in _SIMILARITIES.items()),
        *_attack_measures(),
    )
}


def measure(id: str) -> Measure:
    """The measure with that id. Errors list the known ones."""
    if id not in MEASURES:
        raise unknown("metric", id, MEASURES)
    return MEASURES[id]


def ceiling_measure(metric: str) -> str:
    """The measure whose mean says whether a score is the best that it can be; empty where there is none."""
    known = measure(metric)
    return BEST_RANK.get(metric, metric if known.better == "high" and not known.fall else "")


SIMULABILITY, AUC, ACTIVE, DEPTH = "simulability", "auc", "active_share", "depth"
STUDENT_MEASURES = {
    SIMULABILITY: "median simulability",
    AUC: "mean AUC",
    ACTIVE: "median share of active heads",
    DEPTH: "median of the mean layer of the weight",
}
"""Titles of what SMaT's claims are about."""
TASKS = {"text": "texts", "image": "pictures", "regression": "scores"}
SETTINGS = {
    "gradient_l2": "gradient L2 norm",
    "gradient_x_input": "gradient x input",
    "integrated_gradients": "integrated gradients",
    "attention_logits": "attention, all layers",
    "attention_logits_last": "attention, last layer",
    "smat": "SMaT",
    "best_layer": "best layer, chosen by the labels",
    "best_head": "best head, chosen by the labels",
    "active_heads": "mean of the active heads",
    "inactive_heads": "mean of the inactive heads",
}
NO_EXPLANATIONS = "no explanations"
NORMALIZATIONS = {"sparsemax": "sparsemax", "softmax": "softmax", "entmax15": "entmax-1.5", "none": "no normalisation"}
SIDES = {"first": "first texts", "second": "second texts"}
_NAMES = {**TASKS, **SETTINGS, **NORMALIZATIONS, **SIDES}


def choice_name(word: str) -> str:
    """What a claim goes through, in words. `none` is the normalization: no claim goes through the setting."""
    return _NAMES.get(word, word)


def setting_name(id: str) -> str:
    return SETTINGS.get(id, NO_EXPLANATIONS)


def size_name(count: int) -> str:
    return f"{count:,} examples"
