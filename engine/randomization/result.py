"""The stages of a randomization, and its result: the similarity of each map to the original, and the predictions.

Maps are compared by rank correlation of signed and absolute scores, by their top scores, and as images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.experiments.base import ExperimentResult
from engine.metrics.agreement import TOP_PERCENT
from engine.metrics.ranking import is_constant, spearman, top_k_overlap
from engine.randomization.plan import MODES, RandomizationPlan
from engine.registry import explainer
from engine.word_units import BASELINE

HEAD = "head"
EMBEDDINGS = "embeddings"
ORIGINAL: tuple[str, ...] = ()
"""The randomized parts of the original model: none."""
WHY_NOT = {
    "perturbation": "it uses only the model's predictions, not its parameters",
    "ensemble": "some of its members use only the model's predictions",
}
"""Reasons why the thesis excludes the methods of a family."""
MEASURES = ("spearman", "spearman_abs", "top_k", "ssim")
"""Spearman's rho of signed and of absolute scores; overlap of the top 15%; structural similarity."""
FLAT_BEFORE = "its original map is constant, so it has no ranking"
FLAT_AFTER = "its map of the randomized model is constant, so it has no ranking"
WINDOW = 7
SMALL = (0.01, 0.03)
"""K1 and K2 of Wang et al. (2004)."""

PREDICTIONS = ("probability", "class_changed")
"""Probability of the explained class (or the score of a regression model), and whether the predicted class changed."""
TIED = (
    "The matrix of the head is that of the embeddings: “head” randomizes only the final norm, and “embeddings” the "
    "matrix of both."
)
FINE = -1
"""Value of `why` for a map with a defined similarity."""
COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "mode": str,
    "block": str, "seed": int, "stage": int,
}  # fmt: skip
"""Columns of the rows. `example`: index in the data set. `method`: empty for predictions. `block`: the part randomized
last, a number from 1, "head" or "embeddings". `stage`: its position on the curve, from 1."""

Map = Float[np.ndarray, "feature"]


@dataclass(frozen=True)
class Stage:
    """A point of a curve. `block`: the part randomized last: a block number from 1, "head" or "embeddings".

    `number`: its position on the curve, from 1. `parts`: all randomized parts.
    """

    mode: str
    block: str
    number: int
    parts: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"{parts_words(self.parts)} randomized"


def stages_of(plan: RandomizationPlan, blocks: int) -> tuple[Stage, ...]:
    """The stages of each mode in order. Both modes share the first stage, whose maps are computed only once."""
    order = parts_in_order(blocks, plan.head, plan.embeddings)
    return tuple(
        Stage(mode, part, place + 1, order[: place + 1] if mode == MODES[0] else (part,))
        for mode in plan.modes
        for place, part in enumerate(order)
    )


def parts_in_order(blocks: int, head: bool, embeddings: bool) -> tuple[str, ...]:
    """The parts in the order of a cascade, from output to input. Block 1 is next to the input."""
    between = [str(number) for number in range(blocks, 0, -1)]
    return (*([HEAD] if head else []), *between, *([EMBEDDINGS] if embeddings else []))


def parts_words(parts: Sequence[str]) -> str:
    """Parts in words, such as "blocks 4 to 6, the head and the embeddings"."""
    blocks = sorted(int(part) for part in parts if part.isdecimal())
    named = [f"the {part}" for part in parts if not part.isdecimal()]
    if blocks:
        together = blocks == list(range(blocks[0], blocks[-1] + 1))
        many = f"{blocks[0]} to {blocks[-1]}" if together else ", ".join(map(str, blocks))
        named.insert(0, f"block {blocks[0]}" if len(blocks) == 1 else f"blocks {many}")
    return " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:]))) or "nothing"


def not_applicable(method: str, kind: str = "text") -> str:
    """The reason why the thesis (section 4) excludes the method; empty if the check applies to it."""
    return WHY_NOT.get(explainer(method, kind).family, "")


def is_baseline(method: str, kind: str = "text") -> bool:
    """Whether the method ignores the model. Its map is drawn anew at each stage and shows the chance level."""
    return explainer(method, kind).family == BASELINE


@dataclass(frozen=True, eq=False)
class ModelRandomization:
    """The result on one model and `examples` (indices in the data set). The cache stores it field by field.

    `targets`: the explained classes, predicted by the original model or named by a prompt. `likeness`: the
    similarities, NaN if undefined. `why`: index of the reason in `reasons`, or `FINE`. `before`, `after`: probability
    of the explained class. `changed`: whether the predicted class differs from that of the original model. `failed`:
    reasons why examples could not be explained, by index. `complete`: whether no map failed. `notes`: remarks on the
    model's parts.
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
    notes: tuple[str, ...] = ()

    @property
    def blocks(self) -> int:
        return len({stage.block for stage in self.stages if stage.block.isdecimal()})

    def reason(self, stage: int, seed: int, method: int, example: int) -> str:
        """The reason why a similarity is undefined; empty if it is defined. The arguments are positions."""
        code = int(self.why[stage, seed, method, example])
        return "" if code == FINE else self.reasons[code]


@dataclass(frozen=True)
class RandomizationResult(ExperimentResult):
    """The results of a plan, model by model."""

    plan: RandomizationPlan
    models: tuple[ModelRandomization, ...]

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per observation. Undefined values have no row; `curves` counts them by reason."""
        return (row for one in self.models for row in rows(one))


def rows(found: ModelRandomization) -> Iterator[dict[str, Any]]:
    """Yield the rows by stage: the predictions, then the maps of each method."""
    for at, stage in enumerate(found.stages):
        for draw, seed in enumerate(found.seeds):
            shared = {"mode": stage.mode, "block": stage.block, "seed": seed, "stage": stage.number}
            for example, method, metric, value in _values(found, at, draw):
                named = {"model": found.model, "dataset": found.dataset, "example": example, "method": method}
                yield {**named, "metric": metric, "value": value, **shared}


def _values(found: ModelRandomization, stage: int, seed: int) -> Iterator[tuple[int, str, str, float]]:
    """Example, method, metric and value at one stage and seed."""
    for place, example in enumerate(found.examples):
        if np.isfinite(found.after[stage, seed, place]):
            yield example, "", PREDICTIONS[0], float(found.after[stage, seed, place])
            yield example, "", PREDICTIONS[1], float(found.changed[stage, seed, place])
    cells = found.likeness[stage, seed]
    for method, measure, place in zip(*(axis.tolist() for axis in np.nonzero(np.isfinite(cells))), strict=True):
        yield found.examples[place], found.methods[method], MEASURES[measure], float(cells[method, measure, place])


def no_order(before: Map, after: Map) -> str:
    """The reason why two maps cannot be compared; empty if they can."""
    return FLAT_BEFORE if is_constant(before) else FLAT_AFTER if is_constant(after) else ""


def likeness(before: Map, after: Map, grid: tuple[int, int] | None, signed: bool) -> Float[np.ndarray, "measure"]:
    """The similarity by each of `MEASURES`, NaN if undefined. Neither map may be constant; a text has no grid."""
    rho = spearman(before, after)
    sizes = spearman(np.abs(before), np.abs(after)) if signed else rho
    top = top_k_overlap(before, after, max(1, TOP_PERCENT * len(before) // 100))
    alike = None if grid is None else ssim(before.reshape(grid), after.reshape(grid), 2.0 if signed else 1.0)
    return np.array([np.nan if value is None else value for value in (rho, sizes, top, alike)])


def ssim(one: Float[np.ndarray, "row column"], other: Float[np.ndarray, "row column"], spread: float) -> float | None:
    """Structural similarity (Wang et al., 2004, eq. 13), from -1 to 1 (equal maps); None if the map is too small.

    Each map is divided by its largest absolute value. `spread`: the range of the values after that, 2 for signed maps,
    else 1. The result is the mean over all square windows of 7 x 7 patches (or the largest odd number that fits) inside
    the map, with sample variances.
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
