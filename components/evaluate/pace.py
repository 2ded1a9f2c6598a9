"""How fast evaluations went here before, from the jobs that did them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from components.evaluate.cost import evaluations
from components.experiment.runs import is_timed_here, seconds_of
from engine.errors import ExegesisError
from engine.jobs import Job
from engine.registry import Explainer

if TYPE_CHECKING:
    from components.evaluate.known import Evaluated
    from engine.evaluation.plan import Plan


def pace_of(plan: Plan, before: Sequence[Evaluated], methods: Mapping[str, Explainer]) -> float | None:
    """Model evaluations a second by the newest job on the same models, else by one for each; None without them.

    A job's model evaluations are counted as roughly as those of what is asked, so that what is off in both is not off
    in the time.
    """
    timed = [(of.models, pace) for job, of in before if (pace := _pace(job, of, plan, methods))]
    together = next((pace for models, pace in timed if set(models) == set(plan.models)), None)
    if together is not None:
        return together
    alone = {models[0]: pace for models, pace in reversed(timed) if len(models) == 1}
    if not set(plan.models) <= alone.keys():
        return None
    return len(plan.models) / sum(1 / alone[model] for model in plan.models)  # each does as much as the others


def _pace(job: Job, of: Plan, plan: Plan, methods: Mapping[str, Explainer]) -> float | None:
    """That of one job; None where it was on other models or another device, did not end well, or found much."""
    if not set(of.models) <= set(plan.models) or of.dtype != plan.dtype or not is_timed_here(job):
        return None
    try:
        whole = evaluations(of, methods, _examples(job, of))
    except (ExegesisError, KeyError):  # a method or a parameter of another version
        return None
    return whole * job.computed / job.total / seconds_of(job)


def _examples(job: Job, of: Plan) -> int:
    """How many there were: the data set may have had fewer than were asked for. See `engine.jobs.evaluating.plan`."""
    removal = not of.metrics or bool(of.needs("removal"))
    parts = len(of.company) * (1 + bool(of.needs("perturbation"))) + removal
    return (job.total // len(of.models) - 1) // parts
