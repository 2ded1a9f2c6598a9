"""What was found: students one by one, and the cells of the paper's tables made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from engine.scaffold.plan import NONE, SMAT, Plan, Pupil
from engine.scaffold.weighing import weights_of


@dataclass(frozen=True)
class Pass:
    """One pass over the training examples: mean losses (nats, or squared error) and simulability on validation.

    `outer`: None where the explainer is static. `validation`: None where it is not defined.
    """

    epoch: int
    loss: float
    outer: float | None
    validation: float | None


@dataclass(frozen=True, eq=False)
class Outcome:
    """One student. `simulability`: on the test examples, None where it is not defined (a constant score).

    `stopped`: "patience", "epochs", or "diverged: ..." with what became of the loss; then the best state before it
    was kept. `phi`: the learned coefficients of all heads, the first layer's first; None where the explainer is
    static. `best_epoch`: -1 where no pass was better than not being taught.
    """

    pupil: Pupil
    simulability: float | None
    best_epoch: int
    steps: int
    seconds: float
    stopped: str
    history: tuple[Pass, ...]
    phi: Float[np.ndarray, "head"] | None = None
    student_phi: Float[np.ndarray, "head"] | None = None

    @property
    def diverged(self) -> bool:
        return self.stopped.startswith("diverged")


@dataclass(frozen=True)
class Cell:
    """Simulability in one setting at one train size: a value a seed, their median and quartiles."""

    setting: str
    train_size: int
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    @property
    def low(self) -> float:
        """The 25th percentile."""
        return float(np.percentile(self.values, 25))

    @property
    def high(self) -> float:
        """The 75th percentile."""
        return float(np.percentile(self.values, 75))

    def above(self, other: Cell) -> bool:
        """Whether it is higher by more than chance as the paper tells it: the quartiles do not overlap."""
        return self.low > other.high


@dataclass(frozen=True, eq=False)
class Scaffold:
    """All students of a plan that are finished. `shape`: layers and heads a layer of the teacher. `failed`: why not."""

    plan: Plan
    shape: tuple[int, int]
    outcomes: tuple[Outcome, ...]
    metric: str = "accuracy"
    """What simulability is: "accuracy", 0 to 1, or "pearson", -1 to 1."""
    failed: Mapping[Pupil, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.outcomes) == len(self.plan.pupils)

    def of(self, setting: str, train_size: int) -> tuple[Outcome, ...]:
        """The students of a cell, in the order of the seeds."""
        return tuple(o for o in self.outcomes if (o.pupil.setting, o.pupil.train_size) == (setting, train_size))

    def cell(self, setting: str, train_size: int) -> Cell | None:
        """The cell of a table; None where no student of it has a simulability."""
        values = tuple(o.simulability for o in self.of(setting, train_size) if o.simulability is not None)
        return Cell(setting, train_size, values) if values else None

    def improves(self, setting: str, train_size: int) -> bool:
        """Whether a setting is above no explainer, quartile against quartile."""
        mine, baseline = self.cell(setting, train_size), self.cell(NONE, train_size)
        return mine is not None and baseline is not None and setting != NONE and mine.above(baseline)

    def median_outcome(self, train_size: int, setting: str = SMAT) -> Outcome | None:
        """The student in the middle by simulability (of an even number the lower one): its explainer stands for all."""
        there = [o for o in self.of(setting, train_size) if o.simulability is not None]
        ordered = sorted(there, key=lambda o: (o.simulability, o.pupil.seed))
        return ordered[(len(ordered) - 1) // 2] if ordered else None

    def weights(self, outcome: Outcome) -> Float[np.ndarray, "layer head"] | None:
        """λ of a learned explainer by layer and head."""
        if outcome.phi is None:
            return None
        return weights_of(outcome.phi, self.plan.recipe.normalisation).reshape(self.shape)


def number_or_none(value: float) -> float | None:
    """None for what is no number, so that nothing shows NaN."""
    return value if math.isfinite(value) else None
