"""The job kind `scaffold`: all students of a plan, a unit each; one that was stopped goes on from its checkpoint.

What it leaves in the cache is what `engine.scaffold.run.finished` then reads without loading a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from engine.jobs.kinds import Spec, Step, Unit, job_kind
from engine.progress import Report, tell

if TYPE_CHECKING:
    from engine.scaffold.plan import Plan, Pupil
    from engine.scaffold.run import Work

PASSES_OF_STATIC, PASSES_OF_LEARNED = 1, 3
"""Forward and backward passes a step: the student's own; with a learned explainer the pilot's and the outer too."""


def _title(spec: Spec) -> str:
    return f"Teach students of {spec.get('teacher')} on {spec.get('dataset')}"


def check(spec: Spec) -> None:
    """Refuses what cannot be taught. The data set is read, and models are loaded, when the job runs."""
    from engine.scaffold.plan import base_named, plan_of
    from engine.scaffold.plan import check as check_plan

    plan = plan_of(spec)
    check_plan(plan)
    base_named(plan)


@job_kind("scaffold", title=_title, check=check)
def plan(spec: Spec) -> Iterator[Unit]:
    """The fields of `engine.scaffold.plan.Plan`; a unit a student."""
    from engine.scaffold.plan import check as check_plan
    from engine.scaffold.plan import plan_of
    from engine.scaffold.run import Work

    asked = plan_of(spec)
    check_plan(asked)
    work = Work(asked)
    for pupil in asked.pupils:
        step = Step("", 0, 0, _cost(work, pupil), "forward and backward passes")
        yield Unit(work.kept.key(pupil), str(pupil), partial(_teach, work, pupil), stores_itself=True, step=step)


def _teach(work: Work, pupil: Pupil) -> None:
    work.teach(pupil, _counted(work.plan, pupil, tell))


def _cost(work: Work, pupil: Pupil) -> int:
    """Forward and backward passes that are ahead at most; patience may end it sooner."""
    from engine.scaffold.run import under_way

    plan = work.plan
    ahead = max(1, plan.recipe.epochs - len(under_way(plan, pupil, work.kept)))  # the data set is read once
    return ahead * _steps(plan, pupil) * _passes(pupil)


def _counted(plan: Plan, pupil: Pupil, told: Report) -> Report:
    """Tells of each step instead of each pass over the examples; those of an earlier run are not counted."""
    steps, passes = _steps(plan, pupil), _passes(pupil)
    at: dict[str, int] = {}

    def report(done: int, total: int, label: str) -> None:
        at.setdefault("first", done)
        at["step"] = at["step"] + 1 if at.get("pass") == done else 1
        at["pass"] = done
        made = (done - at["first"]) * steps + min(at["step"], steps)
        told(made * passes, max(1, total - at["first"]) * steps * passes, label)

    return report


def _steps(plan: Plan, pupil: Pupil) -> int:
    return ceil(pupil.train_size / plan.recipe.batch_size)


def _passes(pupil: Pupil) -> int:
    from engine.scaffold.plan import SMAT

    return PASSES_OF_LEARNED if pupil.setting == SMAT else PASSES_OF_STATIC
