"""What a check found: how like the original each map is at each stage, and what the model then says."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.randomization.measures import MEASURES
from engine.randomization.plan import Plan
from engine.randomization.stages import Stage

PREDICTIONS = ("probability", "class_changed")
"""Of the class that the model as it is predicts (of a regression head its score); whether another is predicted."""
FINE = -1
"""In `why`: the map has a likeness."""


@dataclass(frozen=True, eq=False)
class OfModel:
    """What was found on one model, on `examples` (their places in the data set).

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
        """Why there is no likeness; empty where there is one. By places."""
        code = int(self.why[stage, seed, method, example])
        return "" if code == FINE else self.reasons[code]


@dataclass(frozen=True)
class Row:
    """One observation. `block`: the part that was randomized last. `method`: empty where it is of the prediction."""

    model: str
    dataset: str
    example: int
    method: str
    metric: str
    value: float
    mode: str
    block: str
    seed: int
    stage: int

    def as_plain(self) -> dict[str, str | int | float]:
        """The columns of a tidy table."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Randomization:
    """What a plan found, model by model."""

    plan: Plan
    models: tuple[OfModel, ...]

    @property
    def rows(self) -> Iterator[Row]:
        """An observation a row. What has no value has no row: `curves` counts it, with the reason."""
        return (row for one in self.models for row in rows_of(one))


def rows_of(found: OfModel) -> Iterator[Row]:
    """Stage by stage: the predictions, then the maps of each method."""
    for (at, stage), (draw, seed) in _pairs(found.stages, found.seeds):
        shared = {"mode": stage.mode, "block": stage.block, "seed": seed, "stage": stage.number}

        def row(place: int, method: str, metric: str, value: float, shared: dict[str, object] = shared) -> Row:
            return Row(found.model, found.dataset, found.examples[place], method, metric, value, **shared)  # type: ignore[arg-type]

        for place in range(len(found.examples)):
            if np.isfinite(found.after[at, draw, place]):
                yield row(place, "", PREDICTIONS[0], float(found.after[at, draw, place]))
                yield row(place, "", PREDICTIONS[1], float(found.changed[at, draw, place]))
        cells = found.likeness[at, draw]
        for method, measure, place in zip(*(axis.tolist() for axis in np.nonzero(np.isfinite(cells))), strict=True):
            value = float(cells[method, measure, place])
            yield row(place, found.methods[method], MEASURES[measure], value)


def _pairs(stages: Sequence[Stage], seeds: Sequence[int]) -> Iterator[tuple[tuple[int, Stage], tuple[int, int]]]:
    return ((stage, seed) for stage in enumerate(stages) for seed in enumerate(seeds))
