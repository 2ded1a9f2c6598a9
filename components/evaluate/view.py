"""The view options of an evaluation: view, order, methods and selected point; and sentences that describe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from components.experiment.controls import select_known, view_pills, view_select
from components.experiment.state import ExperimentSession, ExperimentState
from components.links import whole_number
from components.numbers import count
from engine.errors import not_allowed
from engine.evaluation.groups import Sizes
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.evaluation.result import Evaluation
from engine.home import product_version
from engine.metrics.catalog import METRICS
from engine.params import option

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
WIDTH = 280
DRAWN_HELP = "The methods in the charts. If none is chosen, all are drawn."


@dataclass(frozen=True)
class ScorePoint:
    """A mean that was clicked to see its examples. `against`, `percent`, `slice`: empty where there is none."""

    model: str
    method: str
    metric: str
    against: str = ""
    percent: str = ""
    slice: str = ""

    @property
    def at(self) -> int | None:
        """The percent as a number."""
        return int(self.percent) if self.percent else None

    def as_fields(self) -> tuple[str, ...]:
        """Plain values: a reload replaces classes."""
        return tuple(getattr(self, one.name) for one in fields(self))


def read_point(texts: Sequence[str], wrong: list[str]) -> tuple[str, ...]:
    """The fields of the point that a link names; a sentence is added where they are none."""
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
    """`sort`: the metric whose best method comes first, empty for the first column. `metric`, `other`: on a chart's
    axes, upwards and across. `model`, `family`: the one drawn, empty for the first. `inside`: the chart of each slice.
    `over`: whether marks are graded in the data or in the training. `only`: the methods drawn in charts, `columns`: the
    metrics on the leaderboard; none for all.

    `point`: the fields of a `ScorePoint`, empty where none is chosen.
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
    """Show the examples behind this point from now on. Call it in a callback, or before controls are drawn."""
    SESSION.put_view(kind, "point", [] if point is None else list(point.as_fields()))


@dataclass(frozen=True)
class ViewedEvaluation:
    """An evaluation on its page, with the controls of its charts, which keep to what there is.

    `titles`: of the methods. `sizes`: of the models whose files say them.
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
        """The model that is drawn: the chosen one while there is one of that name, else the first."""
        models = self.evaluation.plan.models
        return self.view.model if self.view.model in models else models[0]

    @property
    def drawn_methods(self) -> tuple[str, ...] | None:
        """The methods that are drawn: the chosen ones that there are; None for all."""
        company = self.evaluation.plan.methods_with_baselines
        wanted = select_known(company, self.view.only)
        return None if wanted == company else wanted

    def methods_control(self) -> None:
        """Draw the choice of the methods."""
        company = {id: self.titles.get(id, id) for id in self.evaluation.plan.methods_with_baselines}
        view_pills(SESSION, self.state, "Methods drawn", "only", company, DRAWN_HELP)

    def model_control(self) -> str:
        """Draw the choice of the model where there are several; returns it."""
        models = self.evaluation.plan.models
        return self.select("Model", "model", {one: one for one in models}) if len(models) > 1 else models[0]

    def metric_control(self, label: str, name: str, metrics: Sequence[str]) -> str:
        """Draw a choice of these metrics; the first one where another was chosen before."""
        return self.select(label, name, {id: METRICS[id].title for id in metrics})

    def select(self, label: str, name: str, known: Mapping[str, str]) -> str:
        """Draw a choice that is kept in the view option of this name."""
        return view_select(SESSION, self.state, label, name, known, WIDTH)


def cite(plan: EvaluationPlan) -> str:
    """One sentence that cites the evaluation: version, methods, models and data."""
    return (
        f"Exegesis {product_version()}. Evaluation of {len(plan.methods_with_baselines)} methods on {plan.dataset} "
        f"with {', '.join(plan.models)}, seed {plan.seed}, {plan.dtype}."
    )


def plan_text(plan: EvaluationPlan, size: int) -> str:
    """The settings of the evaluation in one sentence."""
    shares = ", ".join(map(str, plan.shares))
    units = "patches" if plan.units == "patch" else f"{plan.units}s"
    removed = f"{units} removed by {plan.operator}; means over {shares}% removed"
    return f"{count(size, 'example')}, seed {plan.seed}; {removed}."
