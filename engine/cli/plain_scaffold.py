"""Students as plain values: the contract of `exegesis scaffold --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from engine.scaffold.artefact import Learned
    from engine.scaffold.plan import Pupil
    from engine.scaffold.result import Outcome, Scaffold


def as_plain(found: Scaffold, learned: tuple[Learned, Path] | None = None) -> dict[str, Any]:
    """The plan, the cells of the table, and student by student how it went.

    `metric`: what simulability is, "accuracy" or "pearson". `shape`: layers of the teacher, and heads a layer.
    `explainer`: where the learned one is kept; None where that was not asked for.
    """
    plan = found.plan
    return {
        "plan": plan.as_plain(),
        "metric": found.metric,
        "shape": list(found.shape),
        "cells": [_cell(found, setting, size) for size in plan.train_sizes for setting in plan.settings],
        "students": [_student(found, outcome) for outcome in found.outcomes],
        "failed": [{**_named(pupil), "reason": why} for pupil, why in found.failed.items()],
        "explainer": None if learned is None else str(learned[1] / learned[0].name),
    }


def _cell(found: Scaffold, setting: str, size: int) -> dict[str, Any]:
    """`low`, `high`: quartiles over seeds. `improves`: whether they lie above those of no explainer."""
    cell = found.cell(setting, size)
    return {
        "setting": setting,
        "train_size": size,
        "values": [] if cell is None else list(cell.values),
        "median": None if cell is None else cell.median,
        "low": None if cell is None else cell.low,
        "high": None if cell is None else cell.high,
        "improves": found.improves(setting, size),
    }


def _student(found: Scaffold, outcome: Outcome) -> dict[str, Any]:
    """`best_pass`: the one that was kept, from 1; None where none was better than not being taught. `weights`: of the
    learned explainer, by layer and head; None where it is static.
    """
    weights = found.weights(outcome)
    return {
        **_named(outcome.pupil),
        "simulability": outcome.simulability,
        "best_pass": outcome.best_epoch + 1 if outcome.best_epoch >= 0 else None,
        "stopped": outcome.stopped,
        "diverged": outcome.diverged,
        "steps": outcome.steps,
        "seconds": outcome.seconds,
        "passes": [
            {"pass": one.epoch + 1, "loss": one.loss, "outer": one.outer, "validation": one.validation}
            for one in outcome.history
        ],
        "weights": None if weights is None else weights.tolist(),
    }


def _named(pupil: Pupil) -> dict[str, Any]:
    return {"setting": pupil.setting, "train_size": pupil.train_size, "seed": pupil.seed}
