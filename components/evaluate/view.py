"""The view of an evaluation: its options in the link, its controls, and sentences about its plan.

The options are view, order, methods and selected point. The sentences cite a plan and state its settings and its cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from components.experiment.runs import Run, is_timed_here, seconds_of
from components.experiment.state import ExperimentSession, ExperimentState, select_known, view_pills, view_select
from components.links import whole_number
from components.numbers import count, rough_duration
from engine.errors import ExegesisError, not_allowed
from engine.evaluation.groups import Sizes
from engine.evaluation.plan import EVALUATE, NO_OPERATOR, EvaluationPlan
from engine.evaluation.result import Evaluation
from engine.home import product_version
from engine.jobs import Job
from engine.metrics.catalog import METRICS
from engine.params import option
from engine.registry import Explainer, estimate_rows

VIEWS = {
    "leaderboard": "Leaderboard",
    "curves": "Removal curves",
    "scaling": "Scaling",
    "architecture": "Architectures",
    "plausibility": "Plausibility and faithfulness",
    "cost": "Cost",
    "slices": "Slices",
    "strength": "Strength",
}
SLICES = {"label": "Label", "correctness": "Right or wrong", "length": "Length"}
SLICE_CHARTS = {
    "bars": "One metric",
    "curves": "Removal curves",
    "plausibility": "Plausibility and faithfulness",
    "cost": "Cost",
}
STRENGTHS = ("data", "training")
COSTS = {"evaluations": "Model evaluations", "seconds": "Seconds"}
ORDERS = {"high": "Highest first", "low": "Lowest first", "index": "As in the data set"}
WAYS = {"without_top": "Highest scores removed", "with_top": "Only highest scores kept"}
OVER_DATA = ("share of the examples that carry the mark", "share of all scores that is on the mark")
OVER_TRAINING = (
    "share of the training examples that carried the mark",
    "share of an example's scores that is on its mark",
)
"""Titles of the horizontal and the vertical axis, over data and over training."""
IDEAL = {OVER_DATA: "everything on the mark", OVER_TRAINING: "the mark's share of the decision"}
WIDTH = 280
DRAWN_HELP = "The methods in the charts. If none is chosen, all are drawn."
TIMED = "Estimated time: {}, from earlier jobs on this device."
UNTIMED = "No time estimate yet: no job on the same {} has finished on this device."


@dataclass(frozen=True)
class ScorePoint:
    """A mean whose examples are shown. `against`, `percent`, `slice`: empty if they do not apply."""

    model: str
    method: str
    metric: str
    against: str = ""
    percent: str = ""
    slice: str = ""

    @property
    def at(self) -> int | None:
        """The percentage as a number."""
        return int(self.percent) if self.percent else None

    def as_fields(self) -> tuple[str, ...]:
        """Return the fields as plain values, because a reload replaces classes."""
        return tuple(getattr(self, one.name) for one in fields(self))


def read_point(texts: Sequence[str], wrong: list[str]) -> tuple[str, ...]:
    """Return the fields of the point in a link. Invalid ones add an error to `wrong` and give an empty tuple."""
    if not texts:
        return ()
    number = len(fields(ScorePoint))
    if len(texts) == number and texts[2] in METRICS and (not texts[4] or whole_number(texts[4], 100) is not None):
        return tuple(texts)
    allowed = "model, method, metric, other method, percent and slice"
    wrong.append(str(not_allowed("point", allowed, [one[:40] for one in texts[:number]], "No examples are shown.")))
    return ()


@dataclass(frozen=True)
class EvaluationView:
    """View options of an evaluation.

    `sort`: the metric that rows are sorted by, empty for the first column. `metric`, `other`: the metrics on the
    vertical and the horizontal axis. `model`, `family`: the model and the architecture drawn, empty for the first.
    `inside`: the chart of each slice. `over`: whether marks are graded in the data or in the training. `only`: the
    methods drawn in charts, empty for all. `columns`: the metrics on the leaderboard, empty for the default ones.
    `point`: the fields of a `ScorePoint`, empty if none is selected.
    """

    view: str = option("leaderboard", choices=tuple(VIEWS))
    sort: str = option("", choices=tuple(METRICS))
    metric: str = option("", choices=tuple(METRICS), link="y")
    other: str = option("", choices=tuple(METRICS), link="x")
    way: str = option("without_top", choices=tuple(WAYS))
    slice: str = option("label", choices=tuple(SLICES))
    inside: str = option("bars", choices=tuple(SLICE_CHARTS))
    cost: str = option("evaluations", choices=tuple(COSTS))
    model: str = option("", link="drawn")
    family: str = ""
    over: str = option("data", choices=STRENGTHS)
    order: str = option("high", choices=tuple(ORDERS))
    only: tuple[str, ...] = ()
    columns: tuple[str, ...] = option((), choices=tuple(METRICS), exact=True, link="column")
    point: tuple[str, ...] = option((), exact=True, read=read_point)

    @property
    def picked(self) -> ScorePoint | None:
        """The point whose examples are shown."""
        return ScorePoint(*self.point) if self.point else None


SESSION = ExperimentSession(EVALUATE, "evaluate", EvaluationView)


def point_at(kind: str, point: ScorePoint | None) -> None:
    """Show the examples behind a point, or none. Call it in a callback or before the controls are drawn."""
    SESSION.put_view(kind, "point", [] if point is None else list(point.as_fields()))


@dataclass(frozen=True)
class ViewedEvaluation:
    """An evaluation on its page, with the controls of its charts.

    Choices that this evaluation does not have are replaced by available ones. `titles`: titles of the methods. `sizes`:
    sizes of the models whose files state them.
    """

    state: ExperimentState
    evaluation: Evaluation
    titles: Mapping[str, str]
    sizes: Sizes

    @property
    def view(self) -> EvaluationView:
        """The view options."""
        view: EvaluationView = self.state.view
        return view

    @property
    def drawn_model(self) -> str:
        """The model that is drawn: the chosen one if the evaluation has it, else the first."""
        models = self.evaluation.plan.models
        return self.view.model if self.view.model in models else models[0]

    @property
    def drawn_methods(self) -> tuple[str, ...] | None:
        """The methods that are drawn: those chosen that the evaluation has; None for all."""
        company = self.evaluation.plan.methods_with_baselines
        wanted = select_known(company, self.view.only)
        return None if wanted == company else wanted

    def methods_control(self) -> None:
        """Draw the choice of the methods."""
        company = {id: self.titles.get(id, id) for id in self.evaluation.plan.methods_with_baselines}
        view_pills(SESSION, self.state, "Methods drawn", "only", company, DRAWN_HELP)

    def model_control(self) -> str:
        """Draw the choice of the model if there are several, and return it."""
        models = self.evaluation.plan.models
        return self.select("Model", "model", {one: one for one in models}) if len(models) > 1 else models[0]

    def metric_control(self, label: str, name: str, metrics: Sequence[str]) -> str:
        """Draw a choice of these metrics and return it; an earlier choice that is not among them becomes the first."""
        return self.select(label, name, {id: METRICS[id].title for id in metrics})

    def select(self, label: str, name: str, known: Mapping[str, str]) -> str:
        """Draw a choice bound to the view option `name`, and return it."""
        return view_select(SESSION, self.state, label, name, known, WIDTH)


def cite(plan: EvaluationPlan) -> str:
    """Cite the evaluation in one sentence: version, methods, models and data."""
    return (
        f"Exegesis {product_version()}. Evaluation of {len(plan.methods_with_baselines)} methods on {plan.dataset} "
        f"with {', '.join(plan.models)}, seed {plan.seed}, {plan.dtype}."
    )


def plan_text(plan: EvaluationPlan, size: int) -> str:
    """Describe the settings of the evaluation in one sentence."""
    shares = ", ".join(map(str, plan.shares))
    units = "patches" if plan.units == "patch" else f"{plan.units}s"
    removed = f"{units} removed by {plan.operator}; means over {shares}% removed"
    return f"{count(size, 'example')}, seed {plan.seed}; {removed}."


def cost_text(
    plan: EvaluationPlan, methods: Mapping[str, Explainer], size: int, pace: float | None = None
) -> str:  # fmt: skip
    """Describe the cost. `pace`: model evaluations per second of similar jobs, None if unknown."""
    sizes = (size, "example"), (len(plan.methods_with_baselines), "method"), (len(plan.models), "model")
    of = ", ".join(count(number, noun) for number, noun in sizes)
    number = model_evaluations(plan, methods, size)
    digits = max(0, len(str(number)) - 2)  # the estimate has two significant digits
    time = (
        UNTIMED.format("model" if len(plan.models) == 1 else "models")
        if pace is None
        else TIMED.format(rough_duration(number / pace))
    )
    about = f"about {round(number, -digits):,} model evaluations"
    return f"{of}: {about}. {time} Cached results are reused."


def model_evaluations(plan: EvaluationPlan, methods: Mapping[str, Explainer], size: int) -> int:
    """Estimate the number of model evaluations for all maps, and for metrics that remove units or perturb inputs."""
    maps = sum(estimate_rows(methods[id], plan.params_of(id)) for id in plan.methods_with_baselines)
    removed = 2 * len(plan.percents) * len(plan.methods_with_baselines) * _operator_count(plan)
    moved = (plan.samples * maps) if plan.needs("perturbation") else 0
    return len(plan.models) * size * (maps + removed + moved)


def _operator_count(plan: EvaluationPlan) -> int:
    """Return the number of removal operators, without the kind of the models, which may be unknown."""
    removal = not plan.metrics or bool(plan.needs("removal"))
    return removal * (1 if plan.second_removal == NO_OPERATOR else 2)


def throughput(plan: EvaluationPlan, runs: Sequence[Run], methods: Mapping[str, Explainer]) -> float | None:
    """Estimate the model evaluations per second from the newest job on the same models, or else from one job per model.

    None without such jobs. The evaluations of a job are estimated in the same way as those of the plan, so that a
    common error cancels out.
    """
    timed = [(of.models, pace) for job, of in runs if (pace := _job_throughput(job, of, plan, methods))]
    together = next((pace for models, pace in timed if set(models) == set(plan.models)), None)
    if together is not None:
        return together
    alone = {models[0]: pace for models, pace in reversed(timed) if len(models) == 1}
    if not set(plan.models) <= alone.keys():
        return None
    return len(plan.models) / sum(1 / alone[model] for model in plan.models)  # each model does the same amount of work


def _job_throughput(
    job: Job, of: EvaluationPlan, plan: EvaluationPlan, methods: Mapping[str, Explainer]
) -> float | None:  # fmt: skip
    """Return the throughput of one job; None for other models or devices, a failed job, or one mostly cached."""
    if not set(of.models) <= set(plan.models) or of.dtype != plan.dtype or not is_timed_here(job):
        return None
    try:
        whole = model_evaluations(of, methods, _job_examples(job, of))
    except (ExegesisError, KeyError):  # a method or a parameter of another version
        return None
    return whole * job.computed / job.total / seconds_of(job)


def _job_examples(job: Job, of: EvaluationPlan) -> int:
    """Return the number of examples of a job, derived from its units (`engine.evaluation.experiment.units`).

    The data set may have had fewer examples than requested.
    """
    parts = len(of.methods_with_baselines) * (1 + bool(of.needs("perturbation"))) + _operator_count(of)
    return (job.total // len(of.models) - 1) // parts
