"""Hand-made students for the tests of the Scaffold page: three settings, two sizes, three seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scaffold.plan import HELD_OUT, NONE, SMAT, UNEXPLAINED, ScaffoldPlan, StudentRun
from engine.scaffold.result import ScaffoldResult, StudentResult, TrainingPass

SETTINGS = (NONE, "gradient_l2", "attention_logits", SMAT)
PLAN = ScaffoldPlan("model-a", "reviews", SETTINGS, train_sizes=(50, 1000), seeds=(0, 9, 11))
BASE = {NONE: 0.70, HELD_OUT: 0.72, "gradient_l2": 0.60, "attention_logits": 0.705, SMAT: 0.80}
"""Simulability of the first seed; each later one is 0.01 higher, and 0.1 with the larger size."""
PASSES = 4


def outcome(pupil: StudentRun, **more: Any) -> StudentResult:
    """It is kept at its third pass of four."""
    value = BASE[pupil.setting] + 0.01 * PLAN.seeds.index(pupil.seed) + 0.1 * (pupil.train_size == 1000)
    learned = pupil.setting == SMAT
    passes = tuple(TrainingPass(at, 1 / (at + 1), 0.5 if learned else None, 0.5 + at / 10) for at in range(PASSES))
    given: dict[str, Any] = {
        "run": pupil, "simulability": value, "best_epoch": 2, "steps": 40, "seconds": 0.1 * pupil.train_size,
        "stopped": "patience", "history": passes, "phi": np.full(6, 1 / 6) if learned else None,
        "student_phi": None if pupil.setting in UNEXPLAINED else np.full(6, 1 / 6),
    }  # fmt: skip
    return StudentResult(**(given | more))


def found(
    plan: ScaffoldPlan = PLAN, changed: dict[StudentRun, dict[str, Any]] | None = None, **more: Any
) -> ScaffoldResult:
    """All students of the plan, some of them changed."""
    changed = changed or {}
    return ScaffoldResult(plan, (2, 3), tuple(outcome(one, **changed.get(one, {})) for one in plan.students), **more)
