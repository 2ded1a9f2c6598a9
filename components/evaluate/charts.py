"""Charts of an evaluation: pure builders of charts and of tables of their values, and `draw_chart`, which draws one.

On the page, clicking a point or choosing it in the list of points shows the examples behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import altair as alt
import pandas as pd
import streamlit as st

from components.charts.comparisons import MOVED
from components.charts.files import CaptionedChart, ChartCaption, chart_file_buttons
from components.charts.frame import FIELDS, PICKED, ChartAxis, ChartFrame, blank_chart, linear_axis, log_axis
from components.charts.scores import (
    AT,
    BETTER,
    GROUP,
    axis_title,
    bar_chart,
    chart_row,
    line_chart,
    missing_values_text,
    range_from_zero,
    range_of,
    round_number,
    scatter_chart,
    scatter_table,
    table_row,
)
from components.controls import PERSIST
from components.errors import escape_label, show_note
from components.evaluate.view import (
    IDEAL,
    OVER_DATA,
    SESSION,
    VIEWS,
    ScorePoint,
    ViewedEvaluation,
    cite,
    plan_text,
    point_at,
)
from components.experiment.page import command_line
from components.experiment.state import ExperimentState
from components.export import REPEATS
from components.numbers import count, percent, plural
from components.palette import PALETTES, Theme, browser_theme
from components.tables import draw_table
from engine.evaluation.groups import (
    GradedScore,
    Sizes,
    Slice,
    scores_by_architecture,
    scores_by_size,
    size_ratio,
    split,
)
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import ScorePair, compute_scores, narrow, pair_scores, predicts_scores
from engine.metrics.catalog import METRICS, metric
from engine.metrics.results import MetricScore
from engine.models.summary import ModelSize, format_parameters

REMOVED = {"without_top": MOVED["deletion"], "with_top": MOVED["insertion"]}
"""By metric, what happens to the units with the highest scores."""
PROBABILITY = (0, 1)
"""Range of a probability axis: the whole one, so that a small drop does not look large."""
SHORT = "format(datum.value, '.3~s')"
"""Vega expression that shortens numbers, for example to 350k or 1.1M."""
ALIKE = 1.5
"""Largest ratio between model sizes that count as equal."""
LOOSE = [6, 4]
"""Dash pattern of the line of ideal values, which belongs to no method."""
NO_EXAMPLES = "These points come from other evaluations, so their examples cannot be opened here."
LIST_LABEL = "Examples behind"
LIST_HINT = "Choose a point here, or click it in the chart"
LIST_WIDTH = 560


@dataclass(frozen=True)
class PlacedScore:
    """A score and its place in a chart.

    `place`: additional columns for the chart. `columns`: additional columns for the table of values. `slice`: name of
    its slice of the examples, empty for all of them.
    """

    score: MetricScore
    place: Mapping[str, object]
    columns: Mapping[str, object]
    slice: str = ""


class ScoreChart(ABC):
    """A chart of an evaluation, or of a part of one, and the table of its values.

    `name`: part of its file names and widget keys. `others`: the evaluations that it is drawn from, if it is not drawn
    from the given one; its points then have no examples to show.
    """

    name: ClassVar[str]
    others: tuple[Evaluation, ...] = ()

    @abstractmethod
    def chart(self, evaluation: Evaluation, frame: ChartFrame) -> alt.LayerChart:
        """Build the chart, or a sentence if there is nothing to draw."""

    @abstractmethod
    def table(self, evaluation: Evaluation, frame: ChartFrame) -> pd.DataFrame:
        """Return one row per score, including scores without a value."""


class PlacedScoresChart(ScoreChart):
    """A chart that draws each score at its own place."""

    @abstractmethod
    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        """Yield the scores in the order of the table."""

    @abstractmethod
    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        """Build the chart of the scores that have a value; `table` has one row for each."""

    def chart(self, evaluation: Evaluation, frame: ChartFrame) -> alt.LayerChart:
        methods = frame.drawn_methods(evaluation.plan.methods_with_baselines)
        drawn = [
            one for one in self.scores(evaluation, frame) if one.score.value is not None and one.score.method in methods
        ]
        if not drawn:
            return blank_chart(frame)
        rows = [{**chart_row(one.score, _frame_of(one, frame)), **one.place} for one in drawn]
        return self.draw(pd.DataFrame(rows), [one.score for one in drawn], evaluation, frame)

    def table(self, evaluation: Evaluation, frame: ChartFrame) -> pd.DataFrame:
        scores = self.scores(evaluation, frame)
        return pd.DataFrame([table_row(one.score, _frame_of(one, frame), one.columns) for one in scores])


def _frame_of(one: PlacedScore, frame: ChartFrame) -> ChartFrame:
    return replace(frame, slice=one.slice) if one.slice else frame


@dataclass(frozen=True)
class RemovalChart(PlacedScoresChart):
    """Removal curves of one model: a line per method over the share of units removed or kept; Random's is dotted.

    `metric`: `without_top` (removed) or `with_top` (kept).
    """

    model: str
    metric: str = "without_top"
    name = "curves"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        units, column = plural(evaluation.plan.units), f"{REMOVED[self.metric].capitalize()}, %"
        for one in compute_scores(evaluation, self.metric, frame.filter([self.model])):
            place = {AT: (one.percent or 0) / 100, "moved": f"{one.percent}% of the {units}"}
            yield PlacedScore(one, place, {column: one.percent})

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        moved, regression = REMOVED[self.metric], predicts_scores(evaluation)
        across = [f"share of {plural(evaluation.plan.units)} {moved},", "highest score first"]
        x = ChartAxis(across, alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=10))
        quantity = "score of the model" if regression else "probability of the predicted class"
        ends = frame.value_range or (range_of(scores) if regression else PROBABILITY)
        y = linear_axis([quantity, BETTER[metric(self.metric).better]], ends)
        return line_chart(table, evaluation.plan.methods_with_baselines, frame, (x, y), {"moved": moved})


@dataclass(frozen=True)
class PlausibilityChart(ScoreChart):
    """Two metrics of one model against each other: a point per method, over the examples that have both values."""

    x: str
    y: str
    model: str
    name = "plausibility"
    is_logarithmic = False

    def pairs(self, evaluation: Evaluation, frame: ChartFrame) -> list[ScorePair]:
        """The values of each method by both metrics."""
        return pair_scores(evaluation, self.x, self.y, frame.filter([self.model]))

    def chart(self, evaluation: Evaluation, frame: ChartFrame) -> alt.LayerChart:
        company = evaluation.plan.methods_with_baselines
        return scatter_chart(self.pairs(evaluation, frame), company, frame, self.is_logarithmic)

    def table(self, evaluation: Evaluation, frame: ChartFrame) -> pd.DataFrame:
        return scatter_table(self.pairs(evaluation, frame), frame)


class CostChart(PlausibilityChart):
    """A metric over a cost, on a logarithmic axis."""

    name = "cost"
    is_logarithmic = True


@dataclass(frozen=True)
class ScalingChart(PlacedScoresChart):
    """A metric over the number of parameters of one architecture's models, on a logarithmic axis.

    `architecture`: empty for the first one with several sizes.
    """

    metric: str
    sizes: Sizes
    architecture: str = ""
    name = "scaling"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        sized = scores_by_size(evaluation, self.metric, self.sizes, self.architecture, frame.methods)
        for one in sized:
            parameters, blocks = one.size.parameters, one.size.blocks
            place = {AT: parameters, "parameters": f"{parameters:,}", "blocks": str(blocks)}
            yield PlacedScore(one.score, place, size_columns(one.size))

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        at = sorted(set(table[AT].tolist()))
        architecture = self.sizes[scores[0].model].architecture
        title = (f"parameters of the {architecture} models,", "on a logarithmic axis")
        x = replace(
            log_axis(title, at), ticks=alt.Axis(values=at, labelExpr=SHORT, labelOverlap="greedy")
        )  # fmt: skip
        y = linear_axis(axis_title(self.metric), frame.value_range or range_of(scores))
        more = {"parameters": "Parameters", "blocks": "Blocks"}
        return line_chart(table, evaluation.plan.methods_with_baselines, frame, (x, y), more)


def size_columns(size: ModelSize) -> Mapping[str, object]:
    """Return the table columns of a model's size."""
    return {"Architecture": size.architecture, "Parameters": size.parameters, "Blocks": size.blocks}


@dataclass(frozen=True)
class ArchitectureChart(PlacedScoresChart):
    """A metric by method, with a group for each model; groups are sorted by architecture, then by size."""

    metric: str
    sizes: Sizes
    name = "architectures"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        for one in scores_by_architecture(evaluation, self.metric, self.sizes, frame.methods):
            architecture, parameters = one.size.architecture, f"{one.size.parameters:,}"
            group = f"{architecture}, {format_parameters(one.size)}: {one.score.model}"
            place = {GROUP: group, "architecture": architecture, "parameters": parameters}
            yield PlacedScore(one.score, place, size_columns(one.size))

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        x = linear_axis(axis_title(self.metric), range_from_zero(scores, frame))
        more = {"architecture": "Architecture", "parameters": "Parameters"}
        return bar_chart(table, evaluation.plan.methods_with_baselines, frame, x, more)


def unequal_sizes_text(sizes: Sizes) -> str:
    """Return a note if the models differ in size, else an empty string."""
    factor = size_ratio(sizes)
    if factor <= ALIKE:
        return ""
    return (
        f"The largest of these models has {factor:.1f} times as many parameters as the smallest, so differences may "
        "come from size. Compare models of similar size, or see Scaling."
    )


@dataclass(frozen=True)
class SliceChart(PlacedScoresChart):
    """A metric of one model by method, with a group for each slice of the examples."""

    metric: str
    by: str
    model: str
    name = "slices"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        wanted = frame.filter([self.model])
        for part in split(narrow(evaluation, self.metric, wanted), self.by):
            for score in compute_scores(part.evaluation, self.metric, wanted):
                size = count(score.n + sum(score.skipped.values()), "example")
                yield PlacedScore(score, {GROUP: f"{part.name}: {size}"}, {}, part.name)

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        x = linear_axis(axis_title(self.metric), range_from_zero(scores, frame))
        return bar_chart(table, evaluation.plan.methods_with_baselines, frame, x, {"slice": "Slice"})


@dataclass(frozen=True)
class StrengthChart(PlacedScoresChart):
    """A line per method over the strength of the mark, and a gray line of ideal values.

    `graded`: result of `grade_by_data` with the titles `OVER_DATA`, or of `grade_by_training` with `OVER_TRAINING`.
    """

    graded: tuple[GradedScore, ...]
    titles: tuple[str, str] = OVER_DATA
    others: tuple[Evaluation, ...] = ()
    name = "strength"

    def scores(self, evaluation: Evaluation, frame: ChartFrame) -> Iterator[PlacedScore]:
        for one in self.graded:
            ideal = "not known" if one.ideal is None else percent(one.ideal)
            place = {AT: one.strength, "carried": f"in {percent(one.strength)} of the examples", "ideal": ideal}
            numbers = {"Strength": one.strength, IDEAL[self.titles].capitalize(): one.ideal}
            columns = {title: round_number(number) for title, number in numbers.items()}
            yield PlacedScore(one.score, place, columns)

    def draw(
        self, table: pd.DataFrame, scores: Sequence[MetricScore], evaluation: Evaluation, frame: ChartFrame
    ) -> alt.LayerChart:
        low, high = range_from_zero(scores, frame)
        x = ChartAxis([self.titles[0]], alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5))
        y = linear_axis([self.titles[1], BETTER["high"]], (low, max(1.0, high)))
        more = {"carried": "The mark", "ideal": IDEAL[self.titles]}
        chart = line_chart(table, evaluation.plan.methods_with_baselines, frame, (x, y), more)
        methods = {one.method for one in scores}
        drawn = [one for one in self.graded if one.score.method in methods and one.score.value is not None]
        chart.layer = [*self._ideal_layers(drawn, frame, x, y), *chart.layer]
        return chart

    def _ideal_layers(
        self, drawn: Sequence[GradedScore], frame: ChartFrame, x: ChartAxis, y: ChartAxis
    ) -> list[alt.Chart]:  # fmt: skip
        """Draw the line of the known ideal values, labeled at its last point."""
        known = sorted({(one.strength, one.ideal) for one in drawn if one.ideal is not None})
        if not known:
            return []
        gray = PALETTES[frame.theme].muted
        base = alt.Chart(pd.DataFrame(known, columns=[AT, "value"])).encode(x=x.x(AT), y=y.y("value"))
        end = alt.Chart(pd.DataFrame([{AT: known[-1][0], "value": known[-1][1], "words": IDEAL[self.titles]}]))
        words = end.mark_text(align="right", baseline="bottom", dx=-8, dy=-4, fontSize=13, color=gray)
        return [
            base.mark_line(strokeDash=LOOSE, strokeWidth=2, color=gray, point={"color": gray, "size": 30}),
            words.encode(x=x.x(AT), y=y.y("value"), text="words:N"),
        ]


def equal_strengths_text(places: Sequence[Sequence[float]]) -> str:
    """Return a note on strengths whose points coincide, or an empty string if there are none."""
    named = "; ".join(" and ".join(f"{one:g}" for one in strengths) for strengths in places)
    if not named:
        return ""
    return (
        f"Strengths {named}: equally many of the sampled examples carry the mark, so the points coincide. More "
        "examples separate them."
    )


@dataclass(frozen=True)
class EvaluationChart(CaptionedChart):
    """A chart on the page. `part`: the slice of the examples that it shows; one without a name has all of them."""

    viewed: ViewedEvaluation
    content: ScoreChart
    part: Slice
    frame: ChartFrame

    @property
    def file(self) -> str:
        return f"exegesis-{self.content.name}{'-slice' if self.part.name else ''}"

    @cached_property
    def table(self) -> pd.DataFrame:
        return self.content.table(self.part.evaluation, self.frame)

    def key(self, kind: str) -> str:
        return SESSION.key(self.viewed.state.kind, f"keep.{kind}.{self.content.name}.{self.part.name}")

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        return self.content.chart(self.part.evaluation, replace(self.frame, theme=theme) if theme else self.frame)

    def caption(self) -> ChartCaption:
        """Return the caption for files. A chart of several evaluations has a command for each."""
        evaluations = self.content.others or (self.viewed.evaluation,)
        part = self.part.evaluation
        size = len({row.example for row in part.rows} | {skip.example for skip in part.skips})
        notes = [*(cite(one.plan) for one in evaluations), plan_text(evaluations[0].plan, size), f"{REPEATS}:"]
        models = list(dict.fromkeys(self.table["Model"])) if "Model" in self.table else []
        title = [VIEWS[self.viewed.view.view], *models, part.plan.dataset, self.part.name]
        commands = [command_line(one.requested_plan) for one in evaluations]
        return ChartCaption(", ".join(filter(None, title)), notes, commands)


def draw_chart(viewed: ViewedEvaluation, content: ScoreChart, part: Slice | None = None) -> None:
    """Draw the chart of all examples or of one slice, with its list of points, its numbers and its files."""
    kind, part = viewed.state.kind, part or Slice("", viewed.evaluation)
    frame = ChartFrame(viewed.titles, browser_theme(), viewed.drawn_methods, part.name)
    name, leads = f"{content.name}.{part.name}", not content.others
    widget = SESSION.key(kind, f"chart.{name}")
    one = EvaluationChart(viewed, content, part, frame)
    chart = one.chart()
    if part.name:
        st.markdown(f"**{escape_label(part.name)}**, {count(len(part.evaluation.facts), 'example')}")
    st.altair_chart(
        chart, key=widget, on_select=partial(_pick, kind, widget) if leads else "ignore",
        selection_mode=PICKED if leads else None, alt=f"{content.name} of an evaluation; its numbers are below",
    )  # fmt: skip
    if leads:
        _point_list(viewed.state, name, chart)
    else:
        st.caption(NO_EXAMPLES)
    if missing := missing_values_text(one.table):
        show_note(missing)
    with st.expander("Numbers", key=f"{widget}.numbers", on_change="rerun") as box:
        if box.open:
            draw_table(one.table, f"evaluate.{name}")
    chart_file_buttons(one)


def _pick(kind: str, name: str) -> None:
    """Select the clicked point; a click outside all points clears the selection."""
    picked = st.session_state[name].selection.get(PICKED) or [{}]
    point_at(kind, clicked_point(picked[-1]))


def clicked_point(sent: object) -> ScorePoint | None:
    """Return the point that the browser sent, after validation; None if it sent none."""
    given = sent if isinstance(sent, dict) else {}
    model, method, metric, slice = (given.get(name) for name in ("model", "method", "metric", "slice"))
    if not (isinstance(model, str) and isinstance(method, str) and metric in METRICS):
        return None
    percent = given.get("percent")
    at = str(int(percent)) if isinstance(percent, int | float) and not isinstance(percent, bool) else ""
    return ScorePoint(model, method, str(metric), percent=at, slice=slice if isinstance(slice, str) else "")


def _point_list(state: ExperimentState, name: str, chart: alt.LayerChart) -> None:
    """Draw a list of the chart's points to choose from, which opens a point's examples without a mouse.

    `name`: name of the chart in widget keys.
    """
    listed = list_points(chart)
    if not listed:
        return
    points, widget = [point for point, _ in listed], SESSION.key(state.kind, f"lead.{name}")
    st.session_state[widget] = points.index(state.view.picked) if state.view.picked in points else None
    st.selectbox(
        LIST_LABEL, range(len(listed)), index=None, key=widget, width=LIST_WIDTH,
        format_func=lambda place: listed[place][1], placeholder=LIST_HINT,
        on_change=partial(_pick_listed, state.kind, widget, points), persist_state=PERSIST,
    )  # fmt: skip


def list_points(chart: alt.LayerChart) -> Sequence[tuple[ScorePoint, str]]:
    """Return the clickable points of a chart with their labels, in drawing order."""
    rows = _clickable_rows(chart)
    several = len({row["model"] for row in rows}) > 1
    listed = []
    for row in rows:
        where = [row["model"]] * several + [row[name] for name in ("moved", "slice") if row.get(name)]
        listed.append((_row_point(row), f"{', '.join([row['name'], *where])}: {row['shown']}"))
    return listed


def _clickable_rows(chart: alt.LayerChart) -> list[dict[Hashable, Any]]:
    """Return the rows of the layer that receives clicks, one per point."""
    tables = (one.data for one in (*chart.layer, chart) if isinstance(one.data, pd.DataFrame))
    table = next((one for one in tables if set(FIELDS) <= set(one.columns)), pd.DataFrame())
    return list({_row_point(row): row for row in table.to_dict("records")}.values())


def _row_point(row: dict[Hashable, Any]) -> ScorePoint:
    given = row["percent"]
    percent = "" if given is None or given != given else str(int(given))
    return ScorePoint(row["model"], row["method"], row["metric"], percent=percent, slice=row["slice"])


def _pick_listed(kind: str, widget: str, points: Sequence[ScorePoint]) -> None:
    place = st.session_state[widget]
    point_at(kind, None if place is None else points[place])
