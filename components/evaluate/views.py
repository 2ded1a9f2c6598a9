"""Views of an evaluation: the leaderboard, charts whose points lead to examples, and what a view still needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.errors import describe_error, escape_label, show_error, show_note
from components.evaluate import answers
from components.evaluate.leaderboard import Board, leaderboard
from components.evaluate.view import (
    COSTS,
    OVER_TRAINING,
    SESSION,
    SLICE_CHARTS,
    SLICES,
    WAYS,
    ViewedEvaluation,
    cost_text,
    throughput,
)
from components.experiment.runs import results_of, runs_of, spec_of
from components.experiment.state import ExperimentState, plan_of
from engine import jobs
from engine.errors import ExegesisError
from engine.evaluation.groups import (
    equal_strengths,
    grade_by_data,
    grade_by_training,
    mark_strength,
    plans_at_strengths,
    read_sizes,
    size_ladders,
    split,
    training_strengths,
)
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.evaluation.result import Evaluation
from engine.evaluation.views import VIEWS, ViewContext, faithfulness_metrics, plausibility_metrics, quality_metrics
from engine.lazy import LazyModule
from engine.models.catalog import embedded_models
from engine.registry import all_explainers

if TYPE_CHECKING:
    from components.evaluate import charts
else:  # altair and pandas are not needed before a chart is drawn
    charts = LazyModule("components.evaluate.charts")

PLAUSIBLE = "plausibility_auc"
"""Default metric on the horizontal axis of the plausibility view."""
COLUMNS = 2
"""Number of slice charts side by side."""
MARKED_DATA = "reviews-marked"
NEXT = "This sets the controls above. Then press Evaluate."
JOBS_ERROR = "evaluate_strength_said"
STRENGTH_TITLES = {"data": "Marks in the data", "training": "Marks in the training"}
STARTED = "The evaluations at other strengths are queued. They appear here as they finish."


@dataclass(frozen=True)
class ModelSuggestion:
    """Bundled models for a view that needs several.

    `name`: name of the group. `least`: number of these models that the view needs.
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
"""Suggested models by view, all trained on `MARKED_DATA`."""


def view_area(
    state: ExperimentState, evaluation: Evaluation, tables: Sequence[Board], titles: Mapping[str, str],
    line: DeltaGenerator,
) -> None:  # fmt: skip
    """Draw the chosen view, or why it does not apply here. `line`: container for the choice of columns or methods."""
    id = state.view.view
    if id == "leaderboard":
        summary = partial(answers.leaderboard_summary, evaluation, titles)
        leaderboard(state, tables, titles, summary, evaluation.chosen_metrics, line)
        return
    viewed = ViewedEvaluation(state, evaluation, titles, read_sizes(evaluation.plan.models))
    strengths = count_strengths(viewed) if id == "strength" else 1
    view = VIEWS[id]
    why_not = view.obstacle(evaluation, ViewContext(viewed.sizes, strengths))
    st.caption(view.question)
    if not why_not:
        with line:
            viewed.methods_control()
    if why_not:
        show_note(why_not)
        _suggestion_area(state, id)
    if not why_not or id == "strength":
        _DRAWN[id](viewed)
        st.caption(view.about)


def _suggestion_area(state: ExperimentState, view: str) -> None:
    """Draw a button that selects the models suggested for the view, unless the controls already have them."""
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
    """Return the embedded models of a suggestion; empty if there are too few."""
    models = [model for model in suggestion.models if model in known]
    return models if len(models) >= suggestion.least else []


def _fill(kind: str, models: Sequence[str]) -> None:
    """Set the models and their data set, with all metrics and the default split: others may not suit the data set."""
    for name, value in {"models": list(models), "dataset": MARKED_DATA, "split": "", "metrics": []}.items():
        SESSION.put(kind, name, value)


def _answer(html: str) -> None:
    if html:
        st.html(f'<div class="xg">{html}</div>')


def _curves(viewed: ViewedEvaluation) -> None:
    with st.container(horizontal=True, gap="small"):
        viewed.model_control()
        metric = viewed.select("Shown", "way", WAYS)
    _answer(answers.curves_answer(viewed.evaluation, viewed.drawn_model, metric, viewed.titles, viewed.drawn_methods))
    charts.draw_chart(viewed, charts.RemovalChart(viewed.drawn_model, metric))


def _plausibility(viewed: ViewedEvaluation) -> None:
    with st.container(horizontal=True, gap="small"):
        viewed.model_control()
        x = viewed.metric_control("Horizontal axis", "other", _plausibility_metrics(viewed.evaluation))
        y = viewed.metric_control("Vertical axis", "metric", faithfulness_metrics(viewed.evaluation))
    _answer(
        answers.plausibility_answer(
            viewed.evaluation, x, y, viewed.drawn_model, viewed.titles, viewed.drawn_methods
        )
    )  # fmt: skip
    charts.draw_chart(viewed, charts.PlausibilityChart(x, y, viewed.drawn_model))


def _plausibility_metrics(evaluation: Evaluation) -> list[str]:
    """Return the plausibility metrics, the default one first."""
    return sorted(plausibility_metrics(evaluation), key=lambda id: id != PLAUSIBLE)


def _cost(viewed: ViewedEvaluation) -> None:
    with st.container(horizontal=True, gap="small"):
        viewed.model_control()
        y = viewed.metric_control("Vertical axis", "metric", quality_metrics(viewed.evaluation))
        x = viewed.select("Horizontal axis", "cost", COSTS)
    _answer(
        answers.cost_answer(viewed.evaluation, viewed.drawn_model, y, x, viewed.titles, viewed.drawn_methods)
    )  # fmt: skip
    charts.draw_chart(viewed, charts.CostChart(x, y, viewed.drawn_model))


def _scaling(viewed: ViewedEvaluation) -> None:
    with st.container(horizontal=True, gap="small"):
        metric = viewed.metric_control("Vertical axis", "metric", quality_metrics(viewed.evaluation))
        architecture = viewed.select("Architecture", "family", {name: name for name in size_ladders(viewed.sizes)})
    _answer(
        answers.scaling_answer(
            viewed.evaluation, metric, viewed.sizes, architecture, viewed.titles, viewed.drawn_methods
        )
    )  # fmt: skip
    charts.draw_chart(viewed, charts.ScalingChart(metric, viewed.sizes, architecture))


def _architecture(viewed: ViewedEvaluation) -> None:
    with st.container(horizontal=True, gap="small"):
        metric = viewed.metric_control("Metric", "metric", quality_metrics(viewed.evaluation))
    _answer(
        answers.architecture_answer(viewed.evaluation, metric, viewed.sizes, viewed.titles, viewed.drawn_methods)
    )  # fmt: skip
    if unequal := charts.unequal_sizes_text(viewed.sizes):
        show_note(unequal)
    charts.draw_chart(viewed, charts.ArchitectureChart(metric, viewed.sizes))


def _slices(viewed: ViewedEvaluation) -> None:
    with st.container(horizontal=True, gap="small"):
        by = viewed.select("By", "slice", SLICES)
        inside = viewed.select("Chart", "inside", SLICE_CHARTS)
        viewed.model_control()
        if inside == "bars":
            metric = viewed.metric_control("Metric", "metric", quality_metrics(viewed.evaluation))
    parts = split(viewed.evaluation.slice(lambda fact: fact.model == viewed.drawn_model), by)
    if inside == "bars":
        _answer(answers.slices_answer(parts, viewed.drawn_model, metric, viewed.titles, viewed.drawn_methods))
        charts.draw_chart(viewed, charts.SliceChart(metric, by, viewed.drawn_model))
        return
    content = _chart_of_slices(viewed, inside)
    for start in range(0, len(parts), COLUMNS):
        for place, part in zip(st.columns(COLUMNS), parts[start : start + COLUMNS], strict=False):
            with place:
                charts.draw_chart(viewed, content, part)


def _chart_of_slices(viewed: ViewedEvaluation, name: str) -> charts.ScoreChart:
    """Return the chart to draw for each slice, with the metrics chosen in the other views."""
    view, evaluation, model = viewed.view, viewed.evaluation, viewed.drawn_model
    if name == "curves":
        return charts.RemovalChart(model, view.way)
    if name == "plausibility":
        x = _known_or_first(view.other, _plausibility_metrics(evaluation))
        return charts.PlausibilityChart(x, _known_or_first(view.metric, faithfulness_metrics(evaluation)), model)
    return charts.CostChart(view.cost, _known_or_first(view.metric, quality_metrics(evaluation)), model)


def _known_or_first(chosen: str, known: Sequence[str]) -> str:
    return chosen if chosen in known else known[0]


def count_strengths(viewed: ViewedEvaluation) -> int:
    """Return the number of strengths that can be drawn, in the data or in the training; at least 1."""
    trained = training_strengths(viewed.evaluation.plan.models)
    return max(len(_data_evaluations(viewed)), len(set(trained.values())), 1)


def _strength(viewed: ViewedEvaluation) -> None:
    """Draw the chart over the available strengths, and a button that evaluates the missing ones."""
    evaluations, trained = _data_evaluations(viewed), training_strengths(viewed.evaluation.plan.models)
    known = {"data": len(evaluations) > 1, "training": len(set(trained.values())) > 1}
    if any(known.values()):
        with st.container(horizontal=True, gap="small"):
            over = viewed.select("Strength of", "over", {id: name for id, name in STRENGTH_TITLES.items() if known[id]})
            if over == "data":
                viewed.model_control()
        if over == "data":
            if note := charts.equal_strengths_text(equal_strengths(evaluations, viewed.drawn_model)):
                show_note(note)
            graded = grade_by_data(evaluations, viewed.drawn_model)
            content = charts.StrengthChart(tuple(graded), others=tuple(evaluations))
        else:
            graded = grade_by_training(viewed.evaluation, trained)
            content = charts.StrengthChart(tuple(graded), OVER_TRAINING)
        _answer(answers.strength_answer(graded, content.titles, viewed.titles, viewed.drawn_methods))
        charts.draw_chart(viewed, content)
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


def _data_evaluations(viewed: ViewedEvaluation) -> list[Evaluation]:
    """Return the finished evaluations at several strengths."""
    return [one for plan in _strength_plans(viewed) if (one := _finished(plan)) is not None]


def _strength_plans(viewed: ViewedEvaluation) -> list[EvaluationPlan]:
    """Return the plan of this page at several strengths; empty if the data set has no mark."""
    plan = plan_of(viewed.state)
    return [] if mark_strength(plan.dataset) is None else plans_at_strengths(plan)


def _finished(plan: EvaluationPlan) -> Evaluation | None:
    """Return the cached evaluation; None if results of a model are missing or cannot be read."""
    try:
        results = results_of(plan)
    except ExegesisError:
        return None
    return None if results.missing else results.result


_DRAWN: Mapping[str, Callable[[ViewedEvaluation], None]] = {
    "curves": _curves,
    "plausibility": _plausibility,
    "cost": _cost,
    "scaling": _scaling,
    "architecture": _architecture,
    "slices": _slices,
    "strength": _strength,
}
