"""The result of a randomization: the similarity of each map to the original at each stage, and the predictions then.

Maps are compared by rank with sign and without, by their top, and as pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.experiments.base import ExperimentResult
from engine.metrics.agreement import TOP_PERCENT
from engine.metrics.ranking import is_constant, spearman, top_k_overlap
from engine.randomization.plan import RandomizationPlan
from engine.randomization.stages import Stage

MEASURES = ("spearman", "spearman_abs", "top_k", "ssim")
"""Spearman's rho with sign and of the absolute scores; the shared part of the top 15%; structural similarity."""
FLAT_BEFORE = "its map of the model as it is is the same everywhere, so that it has no order"
FLAT_AFTER = "its map of the randomized model is the same everywhere, so that it has no order"
WINDOW = 7
SMALL = (0.01, 0.03)
"""K1 and K2 of Wang et al. (2004)."""

PREDICTIONS = ("probability", "class_changed")
"""Of the class that the model as it is predicts (of a regression head its score); whether another is predicted."""
FINE = -1
"""In `why`: the map has a likeness."""
COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "mode": str,
    "block": str, "seed": int, "stage": int,
}  # fmt: skip
"""Of the rows. `example`: the place in the data set. `method`: empty of the prediction. `block`: what was randomized
last, a number from 1, "head" or "embeddings". `stage`: its place along the curve, from 1."""

Map = Float[np.ndarray, "feature"]


@dataclass(frozen=True, eq=False)
class ModelRandomization:
    """The result on one model, on `examples` (their places in the data set). The cache holds it field by field.

    `likeness`: NaN where there is none. `why`: the place of the reason in `reasons`, or `FINE`. `before`: the
    probability of the class on the model as it is. `failed`: examples of which nothing is known, and why.
    `complete`: no map failed, so that none need be tried again.
    """

    model: str
    dataset: str
    stages: tuple[Stage, ...]
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    examples: tuple[int, ...]
    targets: tuple[str, ...]
    likeness: Float[np.ndarray, "stage seed method measure example"]
    why: Int[np.ndarray, "stage seed method example"]
    reasons: tuple[str, ...]
    before: Float[np.ndarray, "example"]
    after: Float[np.ndarray, "stage seed example"]
    changed: Bool[np.ndarray, "stage seed example"]
    failed: dict[int, str]
    regression: bool
    complete: bool

    @property
    def blocks(self) -> int:
        return len({stage.block for stage in self.stages if stage.block.isdecimal()})

    def reason(self, stage: int, seed: int, method: int, example: int) -> str:
        """The reason why there is no likeness; empty where there is one. Arguments are places."""
        code = int(self.why[stage, seed, method, example])
        return "" if code == FINE else self.reasons[code]


@dataclass(frozen=True)
class RandomizationResult(ExperimentResult):
    """The results of a plan, model by model."""

    plan: RandomizationPlan
    models: tuple[ModelRandomization, ...]

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """An observation a row. What has no value has no row: `curves` counts it, with the reason."""
        return (row for one in self.models for row in rows(one))


def rows(found: ModelRandomization) -> Iterator[dict[str, Any]]:
    """Stage by stage: the predictions, then the maps of each method. `block`: the part that is randomized last."""
    for at, stage in enumerate(found.stages):
        for draw, seed in enumerate(found.seeds):
            shared = {"mode": stage.mode, "block": stage.block, "seed": seed, "stage": stage.number}
            for example, method, metric, value in _values(found, at, draw):
                named = {"model": found.model, "dataset": found.dataset, "example": example, "method": method}
                yield {**named, "metric": metric, "value": value, **shared}


def _values(found: ModelRandomization, stage: int, seed: int) -> Iterator[tuple[int, str, str, float]]:
    """Example, method, metric and value at one stage and seed, by places."""
    for place, example in enumerate(found.examples):
        if np.isfinite(found.after[stage, seed, place]):
            yield example, "", PREDICTIONS[0], float(found.after[stage, seed, place])
            yield example, "", PREDICTIONS[1], float(found.changed[stage, seed, place])
    cells = found.likeness[stage, seed]
    for method, measure, place in zip(*(axis.tolist() for axis in np.nonzero(np.isfinite(cells))), strict=True):
        yield found.examples[place], found.methods[method], MEASURES[measure], float(cells[method, measure, place])


def no_order(before: Map, after: Map) -> str:
    """The reason why two maps cannot be compared; empty where they can."""
    return FLAT_BEFORE if is_constant(before) else FLAT_AFTER if is_constant(after) else ""


def likeness(before: Map, after: Map, grid: tuple[int, int] | None, signed: bool) -> Float[np.ndarray, "measure"]:
    """The similarity by each of `MEASURES`, NaN where undefined. Both maps must have an order; a text has no grid."""
    rho = spearman(before, after)
    sizes = spearman(np.abs(before), np.abs(after)) if signed else rho
    top = top_k_overlap(before, after, max(1, TOP_PERCENT * len(before) // 100))
    alike = None if grid is None else ssim(before.reshape(grid), after.reshape(grid), 2.0 if signed else 1.0)
    return np.array([np.nan if value is None else value for value in (rho, sizes, top, alike)])


def ssim(one: Float[np.ndarray, "row column"], other: Float[np.ndarray, "row column"], spread: float) -> float | None:
    """Structural similarity (Wang et al., 2004, eq. 13), from -1 to 1 for the same picture; None where it is too small.

    Each map is first divided by its largest size, so that only where it is strong counts, as a person sees it;
    `spread`: what values then may span, 2 with signs, 1 without. The mean over all square windows of 7 x 7 patches
    (the largest odd number that fits) that lie inside, with sample variances.
    """
    width = min(WINDOW, *(side - (side + 1) % 2 for side in one.shape))
    if width < 3:
        return None
    x, y = (_windows(picture / np.abs(picture).max(), width) for picture in (one, other))
    (mean_x, mean_y), (x, y) = (x.mean(-1), y.mean(-1)), (x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True))
    free = width * width - 1
    c1, c2 = ((share * spread) ** 2 for share in SMALL)
    light = (2 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1)
    shape = (2 * (x * y).sum(-1) / free + c2) / (((x**2).sum(-1) + (y**2).sum(-1)) / free + c2)
    return float((light * shape).mean())


def _windows(picture: Float[np.ndarray, "row column"], width: int) -> Float[np.ndarray, "window cell"]:
    return np.lib.stride_tricks.sliding_window_view(picture, (width, width)).reshape(-1, width * width)
