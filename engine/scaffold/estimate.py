"""How long it takes to train a plan's students on this machine, from a step timed on the plan's own examples."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from engine import runtime
from engine.scaffold.plan import ScaffoldPlan, StudentRun, splits_of
from engine.scaffold.training import StudentTraining
from engine.scaffold.training_sets import TrainingSetBuilder, predict_logits

MEASURED_ON = 16
"""Examples of which the teacher's outputs and the student's predictions are timed."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class SettingPace:
    """Seconds of a setting: the teacher's `outputs` an example, a training `step`, the student's `prediction`."""

    outputs: float
    step: float
    prediction: float


def estimate_seconds(plan: ScaffoldPlan) -> float:
    """Seconds that all students of the plan take at most; a student that stops gaining ends sooner.

    Loads teacher and base, and trains each setting for one step. Errors: those of the plan and of reading its data.
    """
    small = replace(
        plan,
        train_sizes=(plan.recipe.batch_size,),
        seeds=plan.seeds[:1],
        recipe=replace(
            plan.recipe, epochs=1, held_out=plan.recipe.batch_size, validation=MEASURED_ON, test=MEASURED_ON
        ),
    )
    with runtime.turn(lends=True):
        builder = TrainingSetBuilder(small)
        splits_of(builder.source.count, plan)  # whether the data set is large enough
        examples = [builder.teacher.encode(builder.source.read(index).input) for index in builder.splits.test]
        predict_logits(builder.teacher, examples)  # the first pass is slower than the others
        logits = _timed(lambda: predict_logits(builder.teacher, examples))[0] / len(examples)
        runs = [StudentRun(setting, *small.train_sizes, *small.seeds) for setting in plan.settings]
        paces = {run.setting: _pace(builder, run) for run in runs}
    return total_seconds(plan, logits, paces)


def total_seconds(plan: ScaffoldPlan, logits: float, paces: dict[str, SettingPace]) -> float:
    """Seconds of all students with every pass that the recipe allows.

    `logits`: seconds of the teacher's prediction of an example, which all students share.
    """
    recipe = plan.recipe
    shown = max(plan.train_sizes) + recipe.held_out
    total = logits * plan.needed + sum(pace.outputs * shown for pace in paces.values())
    for run in plan.students:
        pace = paces[run.setting]
        steps = recipe.epochs * math.ceil(run.train_size / recipe.batch_size)
        predictions = (recipe.epochs + 1) * recipe.validation + recipe.test
        total += steps * pace.step + predictions * pace.prediction
    return total


def _pace(builder: TrainingSetBuilder, run: StudentRun) -> SettingPace:
    seconds, sets = _timed(lambda: builder.collect(run))
    training = StudentTraining(sets, run, builder.plan.recipe)
    validating, _ = _timed(lambda: training.predict(sets.validation))
    outcome = training.train(None, lambda *_: None)
    prediction = validating / len(sets.validation)
    step = (outcome.position.seconds - validating) / max(1, outcome.position.steps)
    return SettingPace(seconds / run.train_size, max(step, 0.0), prediction)


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
