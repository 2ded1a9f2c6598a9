"""Results of a plan: students, cells of the paper's tables, head weights, and rows for files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.errors import unknown
from engine.scaffold.plan import NONE, SMAT, ScaffoldPlan, StudentRun
from engine.table_io import to_csv, to_parquet
from engine.table_io import to_json as table_to_json


def simulability(
    student: Float[np.ndarray, "example label"], teacher: Float[np.ndarray, "example label"], regression: bool
) -> float | None:
    """Return the share of examples with the same class, 0 to 1; for scores, Pearson's correlation, -1 to 1.

    None if it is undefined: logits of the student that are not finite, or constant scores.
    """
    if not np.isfinite(student).all():
        return None
    if not regression:
        return float((student.argmax(1) == teacher.argmax(1)).mean())
    if is_constant(student[:, 0]) or is_constant(teacher[:, 0]):
        return None
    return float(np.corrcoef(student[:, 0], teacher[:, 0])[0, 1])


def is_constant(scores: Float[np.ndarray, "example"]) -> bool:
    """Whether scores differ only by single-precision rounding, so that a correlation with them is meaningless."""
    return bool(np.ptp(scores) <= max(1e-9, 1e-6 * np.abs(scores).max()))


Weights = Float[np.ndarray, "head"]


def head_weights(phi: Float[np.ndarray, "head"], normalization: str) -> Weights:
    """Return `λ = normalize(φ)` in double precision. Errors list the known projections.

    This uses NumPy only, so that pages do not import PyTorch; `engine.scaffold.student` has differentiable versions of
    the same projections for training.
    """
    if normalization not in _PROJECTIONS:
        raise unknown("normalisation", normalization, _PROJECTIONS)
    return _PROJECTIONS[normalization](np.asarray(phi, dtype=np.float64))


def _sparsemax(phi: Weights) -> Weights:
    """Sparsemax (Martins and Astudillo, 2016, algorithm 1)."""
    ordered = np.sort(phi)[::-1]
    places = np.arange(1, len(phi) + 1)
    count = int((1 + places * ordered > ordered.cumsum()).sum())
    return np.maximum(phi - (ordered[:count].sum() - 1) / count, 0.0)


def _entmax15(phi: Weights) -> Weights:
    """1.5-entmax (Peters et al., 2019, algorithm 2)."""
    half = phi / 2
    ordered = np.sort(half)[::-1]
    places = np.arange(1, len(phi) + 1)
    mean = ordered.cumsum() / places
    spread = (ordered**2).cumsum() - places * mean**2
    thresholds = mean - np.sqrt(np.maximum((1 - spread) / places, 0.0))
    threshold = thresholds[int((thresholds <= ordered).sum()) - 1]
    return np.maximum(half - threshold, 0.0) ** 2


def _softmax(phi: Weights) -> Weights:
    powers = np.exp(phi - phi.max())
    return powers / powers.sum()


_PROJECTIONS: Mapping[str, Callable[[Weights], Weights]] = {
    "sparsemax": _sparsemax,
    "softmax": _softmax,
    "entmax15": _entmax15,
    "none": np.copy,
}


@dataclass(frozen=True, eq=False)
class HeadCoefficients:
    """A learned explainer: its coefficients φ, first layer first, and the normalization that makes them weights."""

    phi: Float[np.ndarray, "head"]
    normalization: str = "sparsemax"

    @property
    def weights(self) -> Float[np.ndarray, "head"]:
        """The weights λ in double precision. Errors: an unknown normalization."""
        return head_weights(self.phi, self.normalization)

    def as_key(self) -> list[str]:
        """Return the explainer's part of a cache key."""
        numbers = np.ascontiguousarray(self.phi, dtype="<f8").tobytes()
        return [hashlib.sha256(numbers).hexdigest(), self.normalization]


@dataclass(frozen=True)
class TrainingPass:
    """One pass over the training examples: mean losses (nats, or squared error) and simulability on validation.

    `outer`: None if the explainer is static. `validation`: None if it is undefined.
    """

    epoch: int
    loss: float
    outer: float | None
    validation: float | None


@dataclass(frozen=True, eq=False)
class StudentResult:
    """A trained student. `simulability`: on the test examples, None if it is undefined (such as a constant score).

    `stopped`: "patience", "epochs", or "diverged: ..." with the loss; after a divergence, the best earlier state is
    used. `phi`: the learned coefficients of all heads, first layer first; None if the explainer is static.
    `best_epoch`: -1 if no pass was better than the untrained student.
    """

    run: StudentRun
    simulability: float | None
    best_epoch: int
    steps: int
    seconds: float
    stopped: str
    history: tuple[TrainingPass, ...]
    phi: Float[np.ndarray, "head"] | None = None
    student_phi: Float[np.ndarray, "head"] | None = None

    @property
    def diverged(self) -> bool:
        return self.stopped.startswith("diverged")


@dataclass(frozen=True)
class SimulabilityCell:
    """Simulability in one setting at one train size: one value per seed, with their median and quartiles."""

    setting: str
    train_size: int
    values: tuple[float, ...]

    @cached_property
    def median(self) -> float:
        return float(np.median(self.values))

    @cached_property
    def low(self) -> float:
        """The 25th percentile."""
        return float(np.percentile(self.values, 25))

    @cached_property
    def high(self) -> float:
        """The 75th percentile."""
        return float(np.percentile(self.values, 75))

    def above(self, other: SimulabilityCell) -> bool:
        """Whether its lower quartile is above the other's upper quartile, the paper's criterion."""
        return self.low > other.high


@dataclass(frozen=True, eq=False)
class ScaffoldResult:
    """The finished students of a plan. `shape`: the teacher's layers and heads per layer. `failed`: reasons by run."""

    plan: ScaffoldPlan
    shape: tuple[int, int]
    students: tuple[StudentResult, ...]
    metric: str = "accuracy"
    """The metric of simulability: "accuracy", 0 to 1, or "pearson", -1 to 1."""
    failed: Mapping[StudentRun, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.students) == len(self.plan.students)

    def students_of(self, setting: str, train_size: int) -> tuple[StudentResult, ...]:
        """Return the students of a cell, in the order of the seeds."""
        return tuple(o for o in self.students if (o.run.setting, o.run.train_size) == (setting, train_size))

    def cell(self, setting: str, train_size: int) -> SimulabilityCell | None:
        """Return a cell of the table, or None if none of its students has a simulability."""
        return self._cells.get((setting, train_size))

    @cached_property
    def _cells(self) -> Mapping[tuple[str, int], SimulabilityCell]:
        values: dict[tuple[str, int], list[float]] = {}
        for one in self.students:
            if one.simulability is not None:
                values.setdefault((one.run.setting, one.run.train_size), []).append(one.simulability)
        return {at: SimulabilityCell(*at, tuple(own)) for at, own in values.items()}

    def improves(self, setting: str, train_size: int) -> bool:
        """Whether the quartiles of a setting lie above those without an explainer."""
        cell, baseline = self.cell(setting, train_size), self.cell(NONE, train_size)
        return cell is not None and baseline is not None and setting != NONE and cell.above(baseline)

    def median_student(self, train_size: int, setting: str = SMAT) -> StudentResult | None:
        """Return the student with the median simulability; for an even number, the lower of the middle two."""
        measured = [o for o in self.students_of(setting, train_size) if o.simulability is not None]
        ordered = sorted(measured, key=lambda o: (o.simulability, o.run.seed))
        return ordered[(len(ordered) - 1) // 2] if ordered else None

    def weights(self, student: StudentResult) -> Float[np.ndarray, "layer head"] | None:
        """Return the weights λ of a student's learned explainer by layer and head; None if its explainer is static."""
        if student.phi is None:
            return None
        return head_weights(student.phi, self.plan.recipe.normalisation).reshape(self.shape)


def coefficients_of(plan: ScaffoldPlan, student: StudentResult | None) -> HeadCoefficients | None:
    """Return the learned explainer of a student; None if its explainer is static or there is no student."""
    if student is None or student.phi is None:
        return None
    return HeadCoefficients(student.phi, plan.recipe.normalisation)


COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "train_size": int,
    "seed": int, "epoch": int,
}  # fmt: skip
"""Columns of exported rows, with their types. `model`: the teacher. `example`: empty, because values cover several
examples. `method`: the setting. `epoch`: number of a pass, from 1; empty for the finished student."""
PASS_METRICS = ("validation", "loss", "outer")
"""Measures of a pass: validation simulability, mean loss, and mean loss of the learned explainer."""


def rows(result: ScaffoldResult) -> Iterator[dict[str, Any]]:
    """Yield the rows of each student: its simulability on the test examples, then the measures of each pass.

    `value`: None if it is undefined.
    """
    for student in result.students:
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        row |= {"model": result.plan.teacher, "dataset": result.plan.dataset, "method": student.run.setting}
        row |= {"train_size": student.run.train_size, "seed": student.run.seed}
        yield row | {"metric": "simulability", "value": student.simulability}
        for one in student.history:
            for metric in PASS_METRICS:
                value = getattr(one, metric)
                if metric != "outer" or value is not None:
                    yield row | {"metric": metric, "value": value, "epoch": one.epoch + 1}


def to_json(result: ScaffoldResult, explainer: Path | None = None) -> dict[str, Any]:
    """Return the plan, the cells of the table and the course of each student: the contract of `--json`.

    `metric`: metric of simulability, "accuracy" or "pearson". `shape`: the teacher's layers and heads per layer.
    `explainer`: path of the learned explainer's files, None if it was not saved.
    """
    plan = result.plan
    return {
        "plan": plan.as_plain(),
        "metric": result.metric,
        "shape": list(result.shape),
        "cells": [_cell_json(result, setting, size) for size in plan.train_sizes for setting in plan.settings],
        "students": [_student_json(result, student) for student in result.students],
        "failed": [{**asdict(run), "reason": reason} for run, reason in result.failed.items()],
        "explainer": None if explainer is None else str(explainer),
    }


def _cell_json(result: ScaffoldResult, setting: str, size: int) -> dict[str, Any]:
    """Return a cell of the table. `low`, `high`: quartiles over seeds. `improves`: see `ScaffoldResult.improves`."""
    cell = result.cell(setting, size)
    return {
        "setting": setting,
        "train_size": size,
        "values": [] if cell is None else list(cell.values),
        "median": None if cell is None else cell.median,
        "low": None if cell is None else cell.low,
        "high": None if cell is None else cell.high,
        "improves": result.improves(setting, size),
    }


def _student_json(result: ScaffoldResult, student: StudentResult) -> dict[str, Any]:
    """Return a student's record. `best_pass`: from 1, None if no pass was better than the untrained student.

    `weights`: weights of the learned explainer by layer and head; None if its explainer is static.
    """
    weights = result.weights(student)
    return {
        **asdict(student.run),
        "simulability": student.simulability,
        "best_pass": student.best_epoch + 1 if student.best_epoch >= 0 else None,
        "stopped": student.stopped,
        "diverged": student.diverged,
        "steps": student.steps,
        "seconds": student.seconds,
        "passes": [
            {"pass": one.epoch + 1, "loss": one.loss, "outer": one.outer, "validation": one.validation}
            for one in student.history
        ],
        "weights": None if weights is None else weights.tolist(),
    }


FORMATS: Mapping[str, Callable[[ScaffoldResult], bytes]] = {
    "csv": lambda result: (to_csv(rows(result)) or ",".join(COLUMNS) + "\n").encode(),
    "json": lambda result: table_to_json(rows(result)).encode(),
    "parquet": lambda result: to_parquet(rows(result), COLUMNS),
}
"""Functions that write the rows as a file, by file extension."""
