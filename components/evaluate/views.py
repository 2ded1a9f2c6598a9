"""The views of an evaluation: the leaderboard, charts whose points lead to examples, and what a view still needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import describe_error, escape_label, show_error, show_note
from components.evaluate.chart_panel import ChartBuilder, chart_builder, chart_panel
from components.evaluate.cost import cost_text, throughput
from components.evaluate.leaderboard import Board, leaderboard
from components.evaluate.view import COSTS, SESSION, SLICE_CHARTS, SLICES, WAYS, ViewedEvaluation
from components.experiment.runs import results_of, runs_of, spec_of
from components.experiment.state import ExperimentState, plan_of
from engine import jobs
from engine.errors import ExegesisError
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.models.catalog import embedded_models
from engine.registry import all_explainers

if TYPE_CHECKING:
    from engine.evaluation.result import Evaluation

COLUMNS = 2
"""Charts of slices beside each other."""
MARKED_DATA = "reviews-marked"
NEXT = "This only sets the controls at the top; then press Evaluate."
JOBS_ERROR = "evaluate_strength_said"
STRENGTH_TITLES = {"data": "Marks in the data", "training": "Marks in the training"}
STARTED = "The evaluations at other strengths are in the list of jobs. They are drawn here as they finish."


@dataclass(frozen=True)
class ModelSuggestion:
    """Models that come with the project for a view that needs several. `name`: of them together. `least`: so many of
    them the view needs.
    """

    name: str
    models: Sequence[str]
    least: int = 2


SUGGESTIONS: Mapping[str, ModelSuggestion] = {
    "scaling": ModelSuggestion(
        "T5 in four sizes", ("t5-mini-marked", "t5-small-marked", "t5-marked", "t5-deep-marked"),
    ),
    "architecture": ModelSuggestion(
        "four architectures", ("bert-marked", "roberta-marked", "gpt2-marked", "t5-marked")
    ),
    "strength": ModelSuggestion("a model that reads marks", ("t5-marked",), 1),
}  # fmt: skip
"""By view, all trained on `MARKED_DATA`."""


def view_area(
    state: ExperimentState, evaluation: Evaluation, tables: Sequence[Board], titles: Mapping[str, str]
) -> None:  # fmt: skip
    """The chosen view, or why it makes no sense here."""
    from engine.evaluation.groups import read_sizes
    from engine.evaluation.views import ViewContext, list_views

    if state.view.view == "leaderboard":
        leaderboard(state, tables, titles)
        return
    viewed = ViewedEvaluation(state, evaluation, titles, read_sizes(evaluation.plan.models)[0])
    context = ViewContext(viewed.sizes, count_strengths(viewed) if state.view.view == "strength" else 1)
    view = next(one for one in list_views(evaluation, context) if one.id == state.view.view)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption(view.question)
        if not view.why_not:
            viewed.methods_control()
    if view.why_not:
        show_note(view.why_not)
        _suggestion_area(state, view.id)
    if not view.why_not or view.id == "strength":
        _VIEWS[view.id](viewed)
        st.caption(view.about)


def _suggestion_area(state: ExperimentState, view: str) -> None:
    """A button that fills models in above, where the view has some and the controls do not say so already."""
    one, plan = SUGGESTIONS.get(view), state.plan
    models = available_models(one, embedded_models()) if one and state.kind == "text" else []
    if one is None or not models:
        return
    if plan.dataset == MARKED_DATA and not plan.metrics and set(models) <= set(plan.models):
        return
    st.button(
        f"Fill in {one.name}", key=SESSION.key(state.kind, f"fill.{view}"), on_click=partial(_fill, state.kind, models),
        help=escape_label(f"{', '.join(models)} on {MARKED_DATA}"),
    )  # fmt: skip
    st.caption(NEXT)


def available_models(suggestion: ModelSuggestion, known: Sequence[str]) -> list[str]:
    """Those of its models that are there; none where there are too few."""
    models = [model for model in suggestion.models if model in known]
    return models if len(models) >= suggestion.least else []


def _fill(kind: str, models: Sequence[str]) -> None:
    """All metrics and the usual split: those chosen for another set may not suit this one."""
    for name, value in {"models": list(models), "dataset": MARKED_DATA, "split": "", "metrics": []}.items():
        SESSION.put(kind, name, value)


def _curves(viewed: ViewedEvaluation) -> None:
    with st.container(horizontal=True, gap="small"):
        viewed.model_control()
        way = viewed.select("Shown", "way", WAYS)
    chart_panel(viewed, _curves_of(viewed, way))


def _plausibility(viewed: ViewedEvaluation) -> None:
    from components.evaluate.charts import PLAUSIBLE
    from engine.evaluation.views import faithfulness_metrics, plausibility_metrics

    with st.container(horizontal=True, gap="small"):
        viewed.model_control()
        across = viewed.metric_control(
            "Horizontal axis", "other", _first(PLAUSIBLE, plausibility_metrics(viewed.evaluation))
        )
        up = viewed.metric_control("Vertical axis", "metric", faithfulness_metrics(viewed.evaluation))
    chart_panel(viewed, _plausibility_of(viewed, across, up))


def _cost(viewed: ViewedEvaluation) -> None:
    from engine.evaluation.views import quality_metrics

    with st.container(horizontal=True, gap="small"):
        viewed.model_control()
        up = viewed.metric_control("Vertical axis", "metric", quality_metrics(viewed.evaluation))
        cost = viewed.select("Horizontal axis", "cost", COSTS)
    chart_panel(viewed, _cost_of(viewed, up, cost))


def _scaling(viewed: ViewedEvaluation) -> None:
    from components.evaluate.charts import scaling_chart, scaling_table
    from engine.evaluation.groups import size_ladders
    from engine.evaluation.views import quality_metrics

    with st.container(horizontal=True, gap="small"):
        up = viewed.metric_control("Vertical axis", "metric", quality_metrics(viewed.evaluation))
        family = viewed.select("Architecture", "family", {name: name for name in size_ladders(viewed.sizes)})
    chart_panel(viewed, chart_builder("scaling", scaling_chart, scaling_table, up, viewed.sizes, family))


def _architecture(viewed: ViewedEvaluation) -> None:
    from components.evaluate.charts import architecture_chart, architecture_table, unequal_sizes_text
    from engine.evaluation.views import quality_metrics

    with st.container(horizontal=True, gap="small"):
        across = viewed.metric_control("Metric", "metric", quality_metrics(viewed.evaluation))
    if unlike := unequal_sizes_text(viewed.sizes):
        show_note(unlike)
    chart_panel(viewed, chart_builder("architectures", architecture_chart, architecture_table, across, viewed.sizes))


def _slices(viewed: ViewedEvaluation) -> None:
    from engine.evaluation.groups import split
    from engine.evaluation.views import quality_metrics

    with st.container(horizontal=True, gap="small"):
        by = viewed.select("By", "slice", SLICES)
        inside = viewed.select("Chart", "inside", SLICE_CHARTS)
        viewed.model_control()
        metric = (
            viewed.metric_control("Metric", "metric", quality_metrics(viewed.evaluation)) if inside == "bars" else ""
        )
    if metric:
        chart_panel(viewed, _bars_of(viewed, metric, by))
        return
    parts = split(viewed.evaluation.slice(lambda fact: fact.model == viewed.drawn_model), by)
    builder = _inside(viewed, inside)
    for start in range(0, len(parts), COLUMNS):
        for place, part in zip(st.columns(COLUMNS), parts[start : start + COLUMNS], strict=False):
            with place:
                chart_panel(viewed, builder, part.name, part.evaluation)


def _inside(viewed: ViewedEvaluation, name: str) -> ChartBuilder:
    """The chart of each slice, with the metrics that the other views chose."""
    from components.evaluate.charts import PLAUSIBLE
    from engine.evaluation.views import faithfulness_metrics, plausibility_metrics, quality_metrics

    view, evaluation = viewed.view, viewed.evaluation
    if name == "curves":
        return _curves_of(viewed, view.way)
    if name == "plausibility":
        return _plausibility_of(
            viewed,
            _keep(view.other, _first(PLAUSIBLE, plausibility_metrics(evaluation))),
            _keep(view.metric, faithfulness_metrics(evaluation)),
        )
    return _cost_of(viewed, _keep(view.metric, quality_metrics(evaluation)), view.cost)


def _first(usual: str, known: Sequence[str]) -> list[str]:
    """The usual one before the others, where it is there."""
    return sorted(known, key=lambda id: id != usual)


def _keep(wanted: str, known: Sequence[str]) -> str:
    """The wanted one where it is there, else the first."""
    return wanted if wanted in known else known[0]


def _bars_of(viewed: ViewedEvaluation, metric: str, by: str) -> ChartBuilder:
    from components.evaluate.charts import slice_chart, slice_table

    return chart_builder("slices", slice_chart, slice_table, metric, by, viewed.drawn_model)


def _curves_of(viewed: ViewedEvaluation, way: str) -> ChartBuilder:
    from components.evaluate.charts import removal_chart, removal_table

    return chart_builder("curves", removal_chart, removal_table, viewed.drawn_model, way)


def _plausibility_of(viewed: ViewedEvaluation, across: str, up: str) -> ChartBuilder:
    from components.evaluate.charts import plausibility_chart, plausibility_table

    return chart_builder("plausibility", plausibility_chart, plausibility_table, across, up, viewed.drawn_model)


def _cost_of(viewed: ViewedEvaluation, up: str, cost: str) -> ChartBuilder:
    from components.evaluate.charts import cost_chart, cost_table

    return chart_builder("cost", cost_chart, cost_table, up, cost, viewed.drawn_model)


def count_strengths(viewed: ViewedEvaluation) -> int:
    """Over how many strengths something can be drawn, in the data or in the training."""
    return max(len(_data_evaluations(viewed)), len(set(_training_strengths(viewed).values())), 1)


def _strength(viewed: ViewedEvaluation) -> None:
    """The chart of what there is, and a button for what is missing."""
    from components.evaluate.charts import equal_strengths_text
    from engine.evaluation.strength import equal_strengths, mark_strength

    evaluations, trained = _data_evaluations(viewed), _training_strengths(viewed)
    known = {"data": len(evaluations) > 1, "training": len(set(trained.values())) > 1}
    if any(known.values()):
        with st.container(horizontal=True, gap="small"):
            over = viewed.select("Strength of", "over", {id: name for id, name in STRENGTH_TITLES.items() if known[id]})
            if over == "data":
                viewed.model_control()
        if over == "data" and (words := equal_strengths_text(equal_strengths(evaluations, viewed.drawn_model))):
            show_note(words)
        chart_panel(viewed, _data_chart(viewed, evaluations) if over == "data" else _training_chart(viewed))
    if mark_strength(viewed.evaluation.plan.dataset) is not None:
        _missing_strengths(viewed)


def _missing_strengths(viewed: ViewedEvaluation) -> None:
    missing = [plan for plan in _strength_plans(viewed) if _finished(plan) is None]
    if st.session_state.get(JOBS_ERROR):
        show_error(st.session_state[JOBS_ERROR])
    if not missing:
        return
    methods = all_explainers(viewed.state.kind)
    pace = throughput(missing[0], runs_of(EVALUATE), methods)
    st.caption(cost_text(missing[0], methods, missing[0].examples, pace))
    label = f"Evaluate at {len(missing)} more strengths"
    st.button(label, key=SESSION.key(viewed.state.kind, "strengths"), on_click=partial(_submit, missing))


def _submit(plans: Sequence[EvaluationPlan]) -> None:
    st.session_state.pop(JOBS_ERROR, None)
    try:
        for plan in plans:
            jobs.submit("evaluate", spec_of(plan))
        st.toast(STARTED)
    except ExegesisError as error:
        st.session_state[JOBS_ERROR] = describe_error(error)


def _data_chart(viewed: ViewedEvaluation, evaluations: Sequence[Evaluation]) -> ChartBuilder:
    from components.evaluate.charts import strength_chart, strength_table
    from engine.evaluation.strength import grade_by_data

    graded, company = grade_by_data(evaluations, viewed.drawn_model), viewed.evaluation.plan.methods_with_baselines
    return ChartBuilder(
        "strength",
        lambda _, frame: strength_chart(graded, company, frame),
        lambda _, frame: strength_table(graded, frame),
        leads=False,  # its points are of other sets
        others=tuple(evaluations),
    )


def _training_chart(viewed: ViewedEvaluation) -> ChartBuilder:
    from components.evaluate.charts import OVER_TRAINING, strength_chart, strength_table
    from engine.evaluation.strength import grade_by_training

    graded, company = (
        grade_by_training(viewed.evaluation, _training_strengths(viewed)),
        viewed.evaluation.plan.methods_with_baselines,
    )
    return ChartBuilder(
        "strength",
        lambda _, frame: strength_chart(graded, company, frame, OVER_TRAINING),
        lambda _, frame: strength_table(graded, frame, OVER_TRAINING),
    )


def _training_strengths(viewed: ViewedEvaluation) -> dict[str, float]:
    from engine.evaluation.strength import training_strengths

    return training_strengths(viewed.evaluation.plan.models)


def _data_evaluations(viewed: ViewedEvaluation) -> list[Evaluation]:
    """The evaluations at several strengths that are finished."""
    return [one for plan in _strength_plans(viewed) if (one := _finished(plan)) is not None]


def _strength_plans(viewed: ViewedEvaluation) -> list[EvaluationPlan]:
    """The plan of this page at several strengths; none where the set has no mark."""
    from engine.evaluation.strength import mark_strength, plans_at_strengths

    plan = plan_of(viewed.state)
    return [] if mark_strength(plan.dataset) is None else plans_at_strengths(plan)


def _finished(plan: EvaluationPlan) -> Evaluation | None:
    """From the cache; None while it holds nothing of one of the models."""
    try:
        results = results_of(plan)
    except ExegesisError:
        return None
    return None if results.missing else results.result


_VIEWS: Mapping[str, Callable[[ViewedEvaluation], None]] = {
    "curves": _curves,
    "plausibility": _plausibility,
    "cost": _cost,
    "scaling": _scaling,
    "architecture": _architecture,
    "slices": _slices,
    "strength": _strength,
}
