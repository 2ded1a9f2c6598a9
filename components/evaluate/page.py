"""The Evaluate page: the cost of an evaluation, its result in views, the examples behind a point, and the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.controls import PERSIST
from components.errors import escape_label, show_note
from components.evaluate.answers import leaderboard_summary
from components.evaluate.examples import examples_area
from components.evaluate.leaderboard import (
    BETTER,
    OPERATORS_ABOUT,
    OPERATORS_TITLE,
    Board,
    boards,
    leaderboard_page,
    listed_methods,
    operators_html,
    select_columns,
)
from components.evaluate.view import SESSION, VIEWS, cite, cost_text, plan_text, throughput
from components.evaluate.views import view_area
from components.experiment.page import ExperimentPage, ExportFile, export_area, references
from components.experiment.runs import PlanStatus, skip_reasons_html
from components.experiment.state import VIEW, ExperimentState, Methods
from components.export import citation_html
from components.navigation import EVALUATE
from components.numbers import count
from components.tables import table_styles
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.quantus_export import ENDING, quantus_file
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import scalar_metrics
from engine.lazy import LazyModule
from engine.metrics.catalog import METRICS
from engine.metrics.results import MetricSkip
from engine.models.summary import chance_note
from engine.registry import all_explainers

if TYPE_CHECKING:
    from engine.evaluation import experiment
else:  # importing it loads the code that runs models
    experiment = LazyModule("engine.evaluation.experiment")

FAILED = "Some examples failed on {} and are not included. The reasons are listed at the end of this page."
RECENT = "Recent evaluations"
RECENT_NOTE = (
    "Evaluations started here or with `exegesis evaluate --job`. Results of `exegesis evaluate` without a job appear "
    "when you choose the same settings here."
)
TRUTH = (
    "Against the truth: this data set is built so that the decisive units are known. Overlap, rank and plausibility "
    "measure how well a map finds them, as far as the model has learned to use them."
)
PEOPLE = (
    "Against people's marks: overlap, rank and plausibility measure how well a map agrees with human annotations, "
    "which may differ from what the model uses."
)
NEITHER = "This data set has no marks, so nothing is compared with a known truth or with human annotations."
MODEL = (
    "Against the model: comprehensiveness, sufficiency and removal curves measure how the prediction changes when "
    "units are removed."
)
SECOND = "The same maps are also judged with units removed by {}: see Scores by removal operator."
MARKED = ("marks", "pair")
NAMED = 2
"""Maximum number of methods that are named; more are only counted."""
ROWS_HELP = "One row per model, example, method and metric: the output of `exegesis evaluate --out`."
QUANTUS_HELP = "By method and metric a list with one score per example, as quantus.evaluate returns them."
SCORES_HELP = "Every mean with its interval, n and skipped examples: the output of `exegesis evaluate --json`."
LEADERBOARD_HELP = "The leaderboard as one HTML page without scripts."


def results_area(state: ExperimentState, status: PlanStatus, methods: Methods, options: DeltaGenerator | None) -> None:
    """Draw the result in views, if every model has one."""
    if status.results.missing:
        return
    evaluation, source = status.results.result, status.results.sample.source
    titles = {id: method.title for id, method in methods.items()}
    size = len(status.results.sample.indices)
    for note in (*evaluation.class_notes, *evaluation.notes):
        show_note(note)
    line = st.container(horizontal=True, gap="small", vertical_alignment="center")
    line.segmented_control(
        "View", list(VIEWS), key=SESSION.key(state.kind, f"{VIEW}view"), required=True, format_func=VIEWS.__getitem__,
        label_visibility="collapsed", persist_state=PERSIST,
    )  # fmt: skip
    metrics = scalar_metrics(evaluation)
    plan = evaluation.plan
    listed = listed_methods(plan, evaluation.standings)
    tables = boards(evaluation.standings, listed, metrics, source.exact, plan.tuned)
    st.html(f"<style>{table_styles()}</style>")
    view_area(state, evaluation, tables, titles, line)
    examples_area(state, evaluation, source, titles)
    if html := operators_html(evaluation, tables, titles):
        with st.expander(OPERATORS_TITLE, key="evaluate.operators"):
            st.html(html)
            st.caption(OPERATORS_ABOUT)
    marked = {id: title if id in listed else f"{title} (not in the table)" for id, title in titles.items()}
    if lines := left_out(evaluation.skips, marked):
        with st.expander(escape_label(left_out_title(evaluation.skips, titles, listed)), key="evaluate.left_out"):
            st.html(skip_reasons_html(lines))
    with st.expander("What the metrics mean", key="evaluate.meanings"):
        st.caption(" ".join([plan_text(evaluation.plan, size), *reference_texts(evaluation, source.exact)]))
        st.html(metrics_html(evaluation.plan.metrics))
    _export(state, evaluation, size, tables, methods)


def _export(
    state: ExperimentState, evaluation: Evaluation, size: int, tables: Sequence[Board], methods: Methods
) -> None:  # fmt: skip
    cited = citation_html(cite(evaluation.plan), _references(evaluation, methods))

    def build() -> str:
        titles = {id: method.title for id, method in methods.items()}
        summary = partial(leaderboard_summary, evaluation, titles)
        how = plan_text(evaluation.plan, size)
        return leaderboard_page(
            select_columns(tables, state.view, evaluation.chosen_metrics), titles, summary, how, cited
        )

    leaderboard = ExportFile("Leaderboard, HTML", "exegesis-leaderboard.html", "text/html", build, LEADERBOARD_HELP)
    quantus = ExportFile(
        "Scores as in Quantus", f"exegesis-scores.{ENDING}", "application/json", partial(quantus_file, evaluation),
        QUANTUS_HELP,
    )  # fmt: skip
    scores = "Scores, JSON", "exegesis-scores.json", SCORES_HELP
    export_area(SESSION, state.kind, evaluation, cited, ROWS_HELP, scores, [leaderboard, quantus])


def _references(evaluation: Evaluation, methods: Methods) -> list[str]:
    """Return a line for each method and for each metric with a source."""
    cited = (METRICS[id] for id in evaluation.plan.metrics)
    of_metrics = [f"{one.title} ({one.id}): {one.citation.rstrip('.')}." for one in cited if one.citation]
    return [*references(evaluation.plan, methods), *of_metrics]


def reference_texts(evaluation: Evaluation, exact: bool) -> list[str]:
    """Return a sentence for each reference of the metrics. `exact`: whether the marks are the ground truth."""
    needs = {METRICS[id].needs for id in evaluation.plan.metrics}
    marks = (TRUTH if exact else PEOPLE) if needs & set(MARKED) else NEITHER
    second = [] if evaluation.second is None else [SECOND.format(evaluation.second.plan.operator)]
    return [marks, *([MODEL] if "removal" in needs else []), *second]


def left_out_title(skips: Sequence[MetricSkip], titles: Mapping[str, str], listed: Collection[str]) -> str:
    """Name the methods without values on some examples, with the number of metrics; many methods are only counted.

    `listed`: the methods in the table. If none of them lacks a value of its own, missing agreements between two methods
    are named, or else the methods that are not in the table.
    """
    by: dict[str, set[str]] = {}
    for skip in skips:
        if not skip.of.against:
            by.setdefault(skip.of.method, set()).add(skip.of.metric)
    shown = {method: metrics for method, metrics in by.items() if method in listed}
    pairs = [skip for skip in skips if skip.of.against]
    if not shown and pairs:
        return f"Missing values: {_agreement_text(pairs, titles)}"
    by = shown or by
    named = [f"{titles.get(one, one)} (by {count(len(metrics), 'metric')})" for one, metrics in by.items()]
    what = ", ".join(named) if len(named) <= NAMED else count(len(named), "method")
    return f"Missing values: {what}"


def left_out(skips: Sequence[MetricSkip], titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the reasons for missing values, the most common first, with examples per model, methods and metrics."""
    by: dict[tuple[str, str, bool], list[MetricSkip]] = {}
    for skip in skips:
        by.setdefault((skip.reason, skip.of.model, bool(skip.of.against)), []).append(skip)
    examples = {group: {one.example for one in own} for group, own in by.items()}
    ordered = sorted(by, key=lambda group: -len(examples[group]))
    return [
        (group[0], f"{count(len(examples[group]), 'example')} on {group[1]}", _methods_and_metrics(by[group], titles))
        for group in ordered
    ]


def _methods_and_metrics(skips: Sequence[MetricSkip], titles: Mapping[str, str]) -> str:
    """Name the methods and metrics of the skips, which are either all of pairs or all of single methods."""
    methods = ", ".join(titles.get(one, one) for one in dict.fromkeys(skip.of.method for skip in skips))
    # Semicolons, because names of metrics have commas.
    metrics = "; ".join(METRICS[one].title.lower() for one in dict.fromkeys(skip.of.metric for skip in skips))
    return f"{_agreement_text(skips, titles) if skips[0].of.against else methods}: {metrics}"


def _agreement_text(skips: Sequence[MetricSkip], titles: Mapping[str, str]) -> str:
    """Describe the missing agreement: that with the method that all pairs of `skips` share, if there is one."""
    pairs = list(dict.fromkeys((skip.of.method, skip.of.against) for skip in skips))
    if len(pairs) == 1:
        return f"agreement of {' with '.join(titles.get(one, one) for one in pairs[0])}"
    shared = set(pairs[0]).intersection(*pairs)
    if not shared:
        return f"agreement of {len(pairs)} pairs of methods"
    one = min(shared)
    return f"agreement with {titles.get(one, one)}"


def metrics_html(metrics: Sequence[str]) -> str:
    """Return the definition, direction and source of each metric as HTML."""
    rows = "".join(f"<dt>{escape(METRICS[id].title)}</dt><dd>{_metric_html(id)}</dd>" for id in metrics)
    return f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl></div>'


def _metric_html(id: str) -> str:
    of = METRICS[id]
    cited = f" <cite>{escape(of.citation)}</cite>" if of.citation else ""
    return f"{escape(of.about)} {escape(of.unit.capitalize())}; {BETTER[of.better]}.{cited}"


def preview_area(plan: EvaluationPlan, status: PlanStatus, methods: Methods) -> None:
    """Draw what is known before the evaluation: how classes match, models at chance, and added methods."""
    for note, models in experiment.class_notes(plan, status.results.sample.source).items():
        show_note(f"On {', '.join(models)}: {note[0].lower()}{note[1:]}")
    done = {one.model for one in status.results.found}  # their results have their own note
    for note in filter(None, (chance_note(model, plan.dataset) for model in plan.models if model not in done)):
        show_note(note)
    if added := added_methods(plan):
        st.caption(f"Added automatically: {', '.join(methods[id].title for id in added)}.")


def added_methods(plan: EvaluationPlan) -> list[str]:
    """Return the methods that are added automatically: members of ensembles, and Random."""
    return [id for id in plan.methods_with_baselines if id not in plan.methods]


def _cost_text(plan: EvaluationPlan, status: PlanStatus) -> str:
    methods = all_explainers(plan.kind)
    return cost_text(plan, methods, len(status.results.sample.indices), throughput(plan, status.runs, methods))


PAGE = ExperimentPage(SESSION, "", results_area, _cost_text, FAILED, EVALUATE, preview_area, (RECENT, RECENT_NOTE))
