"""A chart of an evaluation on the page: its click and its list of numbers lead to examples; its numbers and files."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from components.charts.files import CaptionedChart, ChartCaption, chart_file_buttons
from components.charts.frame import FIELDS, PICKED, ChartFrame
from components.charts.scores import missing_values_text
from components.controls import PERSIST
from components.errors import escape_label, show_note
from components.evaluate.charts import ScoreChart
from components.evaluate.view import SESSION, VIEWS, ScorePoint, ViewedEvaluation, cite, plan_text, point_at
from components.experiment.page import command_line
from components.experiment.state import ExperimentState
from components.export import REPEATS
from components.numbers import count
from components.palette import Theme, browser_theme
from components.tables import draw_table
from engine.evaluation.groups import Slice
from engine.metrics.catalog import METRICS

NO_EXAMPLES = "These points come from other evaluations, so their examples cannot be opened here."
LIST_LABEL = "Examples behind"
LIST_HINT = "Choose a point here, or click it in the chart"
LIST_WIDTH = 560


@dataclass(frozen=True)
class EvaluationChart(CaptionedChart):
    """A chart on the page. `part`: the examples that it is drawn of, a slice or, without a name, all of them."""

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
        """A chart of several evaluations has a command for each."""
        evaluations = self.content.others or (self.viewed.evaluation,)
        part = self.part.evaluation
        size = len({row.example for row in part.rows} | {skip.example for skip in part.skips})
        notes = [*(cite(one.plan) for one in evaluations), plan_text(evaluations[0].plan, size), f"{REPEATS}:"]
        models = list(dict.fromkeys(self.table["Model"])) if "Model" in self.table else []
        title = [VIEWS[self.viewed.view.view], *models, part.plan.dataset, self.part.name]
        commands = [command_line(one.requested_plan) for one in evaluations]
        return ChartCaption(", ".join(filter(None, title)), notes, commands)


def draw_chart(viewed: ViewedEvaluation, content: ScoreChart, part: Slice | None = None) -> None:
    """Draw the chart of all examples or of one slice, with its list, its numbers and its files."""
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
    """Take the point that was clicked; a click beside all points takes it back."""
    picked = st.session_state[name].selection.get(PICKED) or [{}]
    point_at(kind, clicked_point(picked[-1]))


def clicked_point(sent: object) -> ScorePoint | None:
    """The point that the browser names, checked; None where it names none."""
    given = sent if isinstance(sent, dict) else {}
    model, method, metric, slice = (given.get(name) for name in ("model", "method", "metric", "slice"))
    if not (isinstance(model, str) and isinstance(method, str) and metric in METRICS):
        return None
    percent = given.get("percent")
    at = str(int(percent)) if isinstance(percent, int | float) and not isinstance(percent, bool) else ""
    return ScorePoint(model, method, str(metric), percent=at, slice=slice if isinstance(slice, str) else "")


def _point_list(state: ExperimentState, name: str, chart: alt.LayerChart) -> None:
    """The numbers of a chart as a list to choose from: the way to the examples behind a point without a mouse.

    `name`: of the chart's keys.
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
    """The points of a chart that can be clicked, with their names, in drawing order."""
    rows = _clickable_rows(chart)
    several = len({row["model"] for row in rows}) > 1
    listed = []
    for row in rows:
        where = [row["model"]] * several + [row[name] for name in ("moved", "slice") if row.get(name)]
        listed.append((_row_point(row), f"{', '.join([row['name'], *where])}: {row['shown']}"))
    return listed


def _clickable_rows(chart: alt.LayerChart) -> list[dict[Hashable, Any]]:
    """The rows of the layer that answers the click."""
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
