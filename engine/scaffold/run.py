"""`scaffold`: all students of a plan, from the store or taught now."""

from __future__ import annotations

import dataclasses

from engine import runtime
from engine.errors import Cancelled, ExegesisError
from engine.models import catalog
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.scaffold.keeping import Kept
from engine.scaffold.plan import Plan, Pupil, check, shape_of
from engine.scaffold.result import Outcome, Pass, Scaffold, number_or_none


def scaffold(plan: Plan, report: Report = silent, cancel: CancelToken | None = None) -> Scaffold:
    """Teaches every student that is not finished yet; stopped, it goes on in the middle of a student.

    One that fails is left out with the reason. Errors: those of the plan, the data set, the teacher and its base.
    """
    check(plan)
    with cancellable(cancel):
        failed = {}
        work = Work(plan)
        missing = [pupil for pupil in plan.pupils if work.kept.find(pupil) is None]
        for number, pupil in enumerate(missing):
            check_cancelled()
            report(number, len(missing), str(pupil))
            try:
                work.teach(pupil, _counting(report, number, len(missing)))
            except Cancelled:
                raise
            except ExegesisError as error:
                if number == 0:
                    raise  # nothing can be taught then: it is the plan's fault
                failed[pupil] = " ".join(str(error).split())
        report(len(missing), len(missing), "")
        return dataclasses.replace(finished(plan), failed=failed)


def finished(plan: Plan, kept: Kept | None = None) -> Scaffold:
    """The students of a plan that are in the store; no model is loaded. `kept`: spares reading the data set again."""
    check(plan)
    kept = kept or Kept(plan)
    found = [kept.find(pupil) for pupil in plan.pupils]
    config = catalog.config(catalog.locate(plan.teacher))
    metric = "pearson" if is_regression(plan.teacher) else "accuracy"
    return Scaffold(plan, shape_of(config), tuple(one for one in found if one is not None), metric)


def is_regression(teacher: str) -> bool:
    """Whether the teacher gives a score, by its card or its config."""
    card = catalog.card(teacher)
    if "labels" in card:
        return len(card["labels"]) == 1
    config = catalog.config(catalog.locate(teacher))
    return config.get("problem_type") == "regression" or len(config.get("id2label") or (0, 1)) == 1


def _counting(report: Report, number: int, of: int) -> Report:
    """Tells of a student's passes which of the missing students it is."""
    return lambda done, total, label: report(number, of, label)


class Work:
    """Teaches students of a plan one by one; what the teacher says is asked once."""

    def __init__(self, plan: Plan) -> None:
        from engine.scaffold.courses import Courses

        self.plan, self.kept = plan, Kept(plan)
        self.courses = Courses(plan)

    def teach(self, pupil: Pupil, report: Report = silent) -> Outcome:
        """A student from where it was left, or from the start; it is kept when it is finished."""
        from engine.scaffold.teaching import Teaching
        from engine.training.checkpoint import CheckpointFolder

        folder = CheckpointFolder(self.kept.folder(pupil))
        with runtime.turn(lends=True):
            lived = Teaching(self.courses.course(pupil), pupil, self.plan.recipe).run(folder, report)
        at = lived.at
        outcome = Outcome(
            pupil,
            number_or_none(lived.simulability),
            at.best_epoch,
            at.steps,
            at.seconds,
            at.stopped,
            tuple(Pass(**row) for row in at.history),
            lived.phi,
            lived.student_phi,
        )
        self.kept.keep(outcome)
        folder.remove()
        return outcome


def under_way(plan: Plan, pupil: Pupil, kept: Kept | None = None) -> tuple[Pass, ...]:
    """The passes of a student that is being taught, read from its checkpoint; none where it has not begun."""
    import json

    from engine.training.checkpoint import STATE

    try:
        state = json.loads(((kept or Kept(plan)).folder(pupil) / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(Pass(**row) for row in state["at"]["history"])
