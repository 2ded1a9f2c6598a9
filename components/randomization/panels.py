"""The curves on the page: a row of charts and the verdicts for each model, or one row of all models over each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape

import altair as alt
import pandas as pd
import streamlit as st

from components.charts.files import CaptionedChart, ChartCaption, chart_file_buttons
from components.charts.frame import PICKED, AxisRange, ChartFrame
from components.errors import escape_label, show_note
from components.experiment.page import command_line
from components.experiment.state import ExperimentState
from components.export import REPEATS
from components.numbers import count, hundredths
from components.palette import Theme, browser_theme
from components.randomization.charts import (
    class_chart,
    likeness_chart,
    models_chart,
    numbers_table,
    prediction_chart,
    span_of,
)
from components.randomization.checks import DrawnModel, cite
from components.randomization.view import MEASURES, NO_VERDICT, SESSION
from components.tables import draw_table
from engine.format import count_text, join_names
from engine.randomization.curves import NEAR_ZERO, Curve, CurvePoint, Verdict, curves_of, verdicts_of
from engine.randomization.plan import MODE_TITLES, MODES, RandomizationPlan
from engine.randomization.stages import not_applicable

CLICK = "Click a point, or choose a stage below, to see the maps of an example there."
JUDGED = "Verdicts use the rank correlation, signed and absolute, in the cascading mode, whichever measure is shown."
VERDICTS = {
    "at_once": "falls at once",
    "falls": "falls to zero",
    "partly": "falls partly",
    "high": "stays high",
    "invariant": "does not change",
    "unsure": "undecided",
    "no_order": "no correlation",
    "same_model": "not tested: the predictions did not change",
    "baseline": "baseline",
}
"""By the kind of a verdict."""
MARKS = {True: ("✓", "depends on the model"), False: ("✗", "does not depend on it as it should"), None: ("·", "")}
NOT_MEANT = "check does not apply"
MOST_NAMED = 6
"""Methods that a sentence names before it counts the others."""
PASSES, SIGNS, NOT_APPLICABLE = "passes", "signs", "not_applicable"
SUMMARIES = {
    PASSES: ("depends", "depend", " on the model ({correlation} falls to {values})."),
    SIGNS: (
        "depends", "depend",
        " on the model only partly: the signs become random, but the order of absolute scores stays similar "
        "({correlation} {values}).",
    ),
    "partly": ("depends", "depend", " on the model only partly ({correlation} falls to {values})."),
    "high": ("stays", "stay", " similar ({correlation} {values}) and so mostly shows the input."),
    "invariant": ("does", "do", " not change at all ({correlation} {values})."),
    "no_order": ("cannot", "cannot", " be judged: no map has a rank correlation with the original."),
    "same_model": ("cannot", "cannot", " be judged: most predictions did not change when the model was randomized."),
    NOT_APPLICABLE: ("is", "are", " not judged: the check is not for methods that use only the model's predictions."),
}  # fmt: skip
"""Singular verb, plural verb and the rest of the sentence on methods of one verdict, in the order of the sentences."""


@dataclass(frozen=True)
class Panel(CaptionedChart):
    """Charts of one mode: of a model with a line a method, or where `method` is named, a line for each of the models.

    `curves`: all that there are. `span`: where the axis of likeness ends.
    """

    state: ExperimentState
    mode: str
    curves: Sequence[Curve]
    frame: ChartFrame
    span: AxisRange
    models: Sequence[DrawnModel]
    method: str = ""

    @property
    def name(self) -> str:
        """Of what it is."""
        names = ", ".join(one.name for one in self.models)
        return f"{self.frame.title(self.method)}, {names}" if self.method else names

    @property
    def plans(self) -> list[RandomizationPlan]:
        """What was asked for."""
        return [one.plan for one in {id(model.results): model.results for model in self.models}.values()]

    @property
    def likeness(self) -> list[Curve]:
        """The curves of the chosen measure that are drawn."""
        methods = [self.method] if self.method else self.frame.drawn_methods(self.plans[0].methods_with_baselines)
        measured = [one for one in self.curves if one.metric == self.state.view.measure and one.mode == self.mode]
        return [one for one in measured if one.method in methods]

    @property
    def prediction(self) -> list[Curve]:
        """The curves that are drawn below; of several models the probability alone."""
        below = [one for one in self.curves if not one.method and one.mode == self.mode]
        return [one for one in below if not self.method or one.metric == "probability"]

    @property
    def table(self) -> pd.DataFrame:
        return numbers_table([*self.likeness, *self.prediction], self.frame.titles, models=bool(self.method))

    @property
    def file(self) -> str:
        return f"exegesis-randomization-{self.mode}"

    def key(self, kind: str) -> str:
        """Of a widget of this chart."""
        return SESSION.key(self.state.kind, f"{kind}.{self.name}.{self.mode}")

    def caption(self) -> ChartCaption:
        what = MEASURES[self.state.view.measure].lower()
        title = f"{MODE_TITLES[self.mode]} randomization, {what}, {self.name}"
        return ChartCaption(title, [*map(cite, self.plans), f"{REPEATS}:"], [command_line(plan) for plan in self.plans])

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        frame = replace(self.frame, theme=theme) if theme else self.frame
        if self.method:
            return models_chart(self.likeness, frame, self.span)
        return likeness_chart(self.likeness, frame, self.plans[0].methods_with_baselines, self.span)

    def prediction_chart(self) -> alt.LayerChart | None:
        """Of the predictions; None where one of several models is a regression: a score is no probability."""
        regression = any(one.found.regression for one in self.models)
        if not self.method:
            return prediction_chart(self.prediction, self.frame, regression)
        return None if regression else class_chart(self.prediction, self.frame)

    def draw(self) -> None:
        """The chart, what the model predicts at the same stages, and behind a fold the numbers and files."""
        name, title, below = self.key("chart"), MODE_TITLES[self.mode], self.prediction_chart()
        measure = MEASURES[self.state.view.measure].lower()
        st.altair_chart(
            self.chart(), key=name, on_select=partial(_pick, self.state.kind, name), selection_mode=PICKED,
            alt=f"{title} randomization of {self.name}: {measure} by stage; its numbers stand below",
        )  # fmt: skip
        if below is not None:
            words = f"Predictions of {self.name} by stage of the {title.lower()} randomization"
            st.altair_chart(below, key=self.key("prediction"), alt=words)
        with st.expander("Numbers and files", key=self.key("numbers"), on_change="rerun") as box:
            if box.open:
                draw_table(self.table, self.key("table"))
                chart_file_buttons(self)


def curves_area(
    state: ExperimentState, models: Sequence[DrawnModel], method: str, titles: Mapping[str, str]
) -> None:  # fmt: skip
    """Charts and verdicts on the same axes: a row for each model that is drawn, or where a method is named, one row
    with a line for each model.
    """
    alone = not method and any(one.name == state.view.model for one in models)
    drawn = [one for one in models if not alone or one.name == state.view.model]
    curves = {one.name: named_curves(one) for one in drawn}
    measured = [curve for own in curves.values() for curve in own if curve.metric == state.view.measure]
    span = span_of([curve for curve in measured if curve.method == method] or measured)
    st.caption(CLICK)
    if method:
        method_area(state, method, drawn, curves, titles, span)
        return
    for one in drawn:
        _model_area(state, one, curves[one.name], titles, span)


def named_curves(model: DrawnModel) -> list[Curve]:
    """Its curves, each under the name by which a click is understood."""
    return [replace(curve, model=model.name) for curve in curves_of(model.found, model.results.plan.seed)]


def _model_area(
    state: ExperimentState, model: DrawnModel, curves: Sequence[Curve], titles: Mapping[str, str], span: AxisRange
) -> None:  # fmt: skip
    """The modes side by side, on a telephone one below the other; then the verdicts."""
    plan = model.results.plan
    verdicts = verdicts_of(model.found, plan.kind, plan.seed)
    named = [(titles.get(one.method, one.method), one) for one in verdicts]
    st.markdown(f"**{escape_label(model.name)}**, {count(model.found.blocks, 'block')}")
    st.html(summary_html([(name, one, signed_and_absolute(curves, one.method)) for name, one in named], plan.kind))
    frame = _frame(state, titles, plan.methods_with_baselines)
    _draw_modes([Panel(state, mode, curves, frame, span, [model]) for mode in plan.modes])
    if MODES[0] not in plan.modes:
        show_note(NO_VERDICT)
        return
    st.html(verdicts_html(named, plan.kind, f"Verdicts on {model.name}"))


def method_area(
    state: ExperimentState, method: str, models: Sequence[DrawnModel], curves: Mapping[str, Sequence[Curve]],
    titles: Mapping[str, str], span: AxisRange,
) -> None:  # fmt: skip
    """The modes that there are, then the verdict on each model. `curves`: of each model by its name."""
    title = titles.get(method, method)
    st.markdown(f"**{escape_label(title)}**, one line per model")
    judged = method_verdicts(method, models, state.kind)
    rows = [(f"{title} on {name}", one, signed_and_absolute(curves[name], method)) for name, one in judged]
    st.html(summary_html(rows, state.kind))
    every = [one for model in models for one in curves[model.name]]
    frame = _frame(state, titles, (method,))
    _draw_modes([Panel(state, mode, every, frame, span, models, method) for mode in MODES])
    if judged:
        st.html(verdicts_html(judged, state.kind, f"Verdicts on {titles.get(method, method)}"))
    else:
        show_note(NO_VERDICT)


def _draw_modes(panels: Sequence[Panel]) -> None:
    """Those of the modes that there are, side by side."""
    there = [one for one in panels if any(curve.mode == one.mode for curve in one.curves)]
    for place, panel in zip(st.columns(len(there), gap="medium"), there, strict=True):
        with place:
            panel.draw()


def method_verdicts(method: str, models: Sequence[DrawnModel], kind: str) -> list[tuple[str, Verdict]]:
    """By the name of each model; none of those without the cascading mode or the method."""
    each = ((one.name, verdicts_of(one.found, kind, one.results.plan.seed)) for one in models)
    return [(name, verdict) for name, verdicts in each for verdict in verdicts if verdict.method == method]


Judgment = tuple[str, Verdict, tuple[CurvePoint | None, CurvePoint | None]]
"""The name of a map, its verdict, and its last points by the signed and the absolute rank correlation."""


def signed_and_absolute(curves: Sequence[Curve], method: str) -> tuple[CurvePoint | None, CurvePoint | None]:
    """The last points with a value of a method in the cascading mode, by signed and by absolute scores."""
    signed, absolute = (
        [
            point
            for curve in curves
            if (curve.mode, curve.method, curve.metric) == (MODES[0], method, metric)
            for point in curve.points
            if point.value is not None
        ]
        for metric in ("spearman", "spearman_abs")
    )
    return signed[-1] if signed else None, absolute[-1] if absolute else None


def summarize_verdicts(judgments: Sequence[Judgment], kind: str) -> list[str]:
    """One sentence for each verdict that occurs, with the final correlations; baselines are left out."""
    judged = [one for one in judgments if one[1].kind != "baseline"]
    groups: dict[str, list[Judgment]] = {}
    for one in judged:
        groups.setdefault(_outcome(one, kind), []).append(one)
    sentences = [_sentence(outcome, groups[outcome]) for outcome in SUMMARIES if outcome in groups]
    if undecided := groups.get("unsure"):
        names, n = _names([name for name, *_ in undecided]), max(_examples(one) for one in undecided)
        sentences.append(
            f"{len(undecided)} of {len(judged)} cannot be decided from {count_text(n, 'example')}: {names}."
        )
    return sentences


def summary_html(judgments: Sequence[Judgment], kind: str) -> str:
    """The sentences above the charts."""
    return f'<div class="xg xg-lead"><p>{escape(" ".join(summarize_verdicts(judgments, kind)))}</p></div>'


def _outcome(judgment: Judgment, kind: str) -> str:
    """The key of the sentence on a map, or "unsure"."""
    _, verdict, (signed, _) = judgment
    if verdict.kind in ("same_model", "no_order"):
        return verdict.kind
    if not_applicable(verdict.method, kind):
        return NOT_APPLICABLE
    if verdict.passes:
        return PASSES
    return SIGNS if verdict.kind == "partly" and signed is not None and signed.high <= NEAR_ZERO else verdict.kind


def _sentence(outcome: str, judgments: Sequence[Judgment]) -> str:
    singular, plural, rest = SUMMARIES[outcome]
    names = [name for name, *_ in judgments]
    points = [ends[outcome == SIGNS] for _, _, ends in judgments]
    values = _values([point for point in points if point is not None]) if "{values}" in rest else ""
    verb = singular if len(names) == 1 else plural
    return f"{_names(names)} {verb}{rest.format(correlation='rank correlation', values=values)}"


def _values(points: Sequence[CurvePoint]) -> str:
    """A value with its interval; of several points the range of both."""
    values = [point.value or 0.0 for point in points]
    low, high = hundredths(min(point.low for point in points)), hundredths(max(point.high for point in points))
    if len(points) == 1:
        return f"{hundredths(values[0])}, 95% {low} to {high}"
    first, last = hundredths(min(values)), hundredths(max(values))
    ends = first if first == last else f"{first} to {last}"
    return f"{ends}, 95% intervals within {low} to {high}"


def _names(names: Sequence[str]) -> str:
    left = len(names) - MOST_NAMED
    return join_names([*names[:MOST_NAMED], f"{left} more"] if left > 0 else names)


def _examples(judgment: Judgment) -> int:
    signed = judgment[2][0]
    return 0 if signed is None else signed.n


def verdicts_html(verdicts: Sequence[tuple[str, Verdict]], kind: str, label: str) -> str:
    """A row a verdict, by what it is of: a mark in words, and the reason. Everything that is not ours is escaped."""
    rows = "".join(_verdict_html(name, one, kind) for name, one in verdicts)
    return (
        f'<div class="xg"><div class="xg-judged" role="list" aria-label="{escape(label)}">{rows}</div>'
        f'<p class="xg-small">{JUDGED}</p></div>'
    )


def verdict_words(one: Verdict, kind: str) -> str:
    """The verdict in two or three words."""
    words = VERDICTS[one.kind]
    return f"{words}, {NOT_MEANT}" if not_applicable(one.method, kind) else words


def _verdict_html(name: str, one: Verdict, kind: str) -> str:
    mark, meaning = MARKS[one.passes]
    side = {True: " xg-good", False: " xg-fails", None: ""}[one.passes]
    explained = f'<span class="xg-small"> · {meaning}</span>' if meaning else ""
    return (
        f'<div class="xg-judgment{side}" role="listitem"><p class="xg-title"><i aria-hidden="true">{mark}</i> '
        f"{escape(name)}</p><p><b>{escape(verdict_words(one, kind))}</b>{explained}</p>"
        f'<p class="xg-small">{escape(one.reason)}</p></div>'
    )


def _frame(state: ExperimentState, titles: Mapping[str, str], company: Sequence[str]) -> ChartFrame:
    """What the charts have in common: the methods drawn are those chosen, all where none of the company is chosen."""
    wanted = tuple(method for method in company if method in state.view.only) or None
    return ChartFrame(titles, browser_theme(), wanted)


def _pick(kind: str, name: str) -> None:
    """Opens the stage that was clicked below; a click beside all points shows all stages."""
    picked = st.session_state[name].selection.get(PICKED) or [{}]
    model, mode, stage, method = (picked[-1].get(field) for field in ("model", "slice", "percent", "method"))
    if not isinstance(model, str) or mode not in MODES or not isinstance(stage, int | float):
        SESSION.put_view(kind, "stage", 0)
        return
    for field, value in {"of": model, "way": mode, "stage": int(stage), "by": method}.items():
        SESSION.put_view(kind, field, value)
