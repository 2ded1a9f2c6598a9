"""The cost of an evaluation before it is run: model evaluations and time, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.experiment.runs import Run, is_timed_here, seconds_of
from components.numbers import count, rough_duration
from engine.errors import ExegesisError
from engine.evaluation.plan import EvaluationPlan
from engine.jobs import Job
from engine.registry import Explainer, estimate_rows

TIMED = "Estimated time: {}, from earlier jobs on this device."
UNTIMED = "No time estimate yet: no job on the same {} has finished on this device."
Methods = Mapping[str, Explainer]


def cost_text(
    plan: EvaluationPlan, methods: Methods, size: int, pace: float | None = None
) -> str:  # fmt: skip
    """A sentence on the cost. `pace`: model evaluations per second of such work, None where unknown."""
    sizes = (size, "example"), (len(plan.methods_with_baselines), "method"), (len(plan.models), "model")
    of = ", ".join(count(number, noun) for number, noun in sizes)
    number = model_evaluations(plan, methods, size)
    digits = max(0, len(str(number)) - 2)  # two are as much as is known
    time = (
        UNTIMED.format("model" if len(plan.models) == 1 else "models")
        if pace is None
        else TIMED.format(rough_duration(number / pace))
    )
    about = f"about {round(number, -digits):,} model evaluations"
    return f"{of}: {about}. {time} Cached results are reused."


def model_evaluations(plan: EvaluationPlan, methods: Methods, size: int) -> int:
    """About how often the models run for all maps and for what is measured by removal."""
    maps = sum(estimate_rows(methods[id], plan.params_of(id)) for id in plan.methods_with_baselines)
    removed = (
        2 * len(plan.percents) * len(plan.methods_with_baselines) if not plan.metrics or plan.needs("removal") else 0
    )
    moved = (plan.samples * maps) if plan.needs("perturbation") else 0
    return len(plan.models) * size * (maps + removed + moved)


def throughput(plan: EvaluationPlan, runs: Sequence[Run], methods: Methods) -> float | None:
    """Model evaluations a second by the newest job on the same models, else by one for each; None without them.

    A job's model evaluations are counted as roughly as those of what is asked, so that what is off in both is not off
    in the time.
    """
    timed = [(of.models, pace) for job, of in runs if (pace := _job_throughput(job, of, plan, methods))]
    together = next((pace for models, pace in timed if set(models) == set(plan.models)), None)
    if together is not None:
        return together
    alone = {models[0]: pace for models, pace in reversed(timed) if len(models) == 1}
    if not set(plan.models) <= alone.keys():
        return None
    return len(plan.models) / sum(1 / alone[model] for model in plan.models)  # each does as much as the others


def _job_throughput(
    job: Job, of: EvaluationPlan, plan: EvaluationPlan, methods: Methods
) -> float | None:  # fmt: skip
    """The throughput of one job; None for other models or devices, a failed job, or one mostly cached."""
    if not set(of.models) <= set(plan.models) or of.dtype != plan.dtype or not is_timed_here(job):
        return None
    try:
        whole = model_evaluations(of, methods, _job_examples(job, of))
    except (ExegesisError, KeyError):  # a method or a parameter of another version
        return None
    return whole * job.computed / job.total / seconds_of(job)


def _job_examples(job: Job, of: EvaluationPlan) -> int:
    """The number of examples of a job, from its units (`engine.evaluation.experiment.units`).

    The data set may have had fewer than asked for.
    """
    removal = not of.metrics or bool(of.needs("removal"))
    parts = len(of.methods_with_baselines) * (1 + bool(of.needs("perturbation"))) + removal
    return (job.total // len(of.models) - 1) // parts
