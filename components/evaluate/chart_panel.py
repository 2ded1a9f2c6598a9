"""A chart of an evaluation on the page: its click and its list of numbers lead to examples; its numbers and files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.charts.files import CaptionedChart, ChartCaption, chart_file_buttons
from components.controls import PERSIST
from components.errors import escape_label, show_note
from components.evaluate.view import SESSION, VIEWS, ScorePoint, ViewedEvaluation, point_at
from components.experiment.export import command_line
from components.experiment.state import ExperimentState
from components.export import REPEATS
from components.numbers import count
from components.palette import browser_theme
from components.tables import draw_table
from engine.home import product_version
from engine.metrics.catalog import METRICS
from engine.registry import method_order

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.charts.frame import ChartFrame
    from components.palette import Theme
    from engine.evaluation.plan import EvaluationPlan
    from engine.evaluation.result import Evaluation

NO_EXAMPLES = "These points are of other evaluations than the one above: no examples open from here."
LIST_LABEL = "Examples behind"
LIST_HINT = "Choose a number here, or click it in the chart"
LIST_WIDTH = 560


def cite(plan: EvaluationPlan) -> str:
    """One sentence: what made these numbers, of which models and data."""
    return (
        f"Exegesis {product_version()}. Evaluation of {len(plan.methods_with_baselines)} methods on {plan.dataset} "
        f"with {', '.join(plan.models)}, seed {plan.seed}, {plan.dtype}."
    )


def plan_text(plan: EvaluationPlan, size: int) -> str:
    """How it was done, in one sentence of numbers and our own words."""
    shares = ", ".join(map(str, plan.shares))
    units = "patches" if plan.units == "patch" else f"{plan.units}s"
    removed = f"{units} removed by {plan.operator}; means over {shares} % removed"
    return f"{count(size, 'example')}, seed {plan.seed}; {removed}."


@dataclass(frozen=True)
class ChartBuilder:
    """A chart and the table of its numbers, of any part of an evaluation. `name`: of its files and keys.

    `leads`: whether its points have examples of this evaluation behind them. `others`: the evaluations that it is
    drawn of, where they are not the page's.
    """

    name: str
    chart: Callable[[Evaluation, ChartFrame], alt.LayerChart]
    table: Callable[[Evaluation, ChartFrame], pd.DataFrame]
    leads: bool = True
    others: tuple[Evaluation, ...] = ()


def chart_builder(
    name: str, chart: Callable[..., alt.LayerChart], table: Callable[..., pd.DataFrame], *more: object
) -> ChartBuilder:  # fmt: skip
    """A chart and its table that have the same arguments after the evaluation and the frame."""
    return ChartBuilder(
        name,
        lambda evaluation, frame: chart(evaluation, frame, *more),
        lambda evaluation, frame: table(evaluation, frame, *more),
    )


@dataclass(frozen=True)
class EvaluationChart(CaptionedChart):
    """A chart as it is on the page. `part`: the evaluation that it is drawn of, the whole or a slice."""

    viewed: ViewedEvaluation
    builder: ChartBuilder
    part: Evaluation
    frame: ChartFrame

    @property
    def file(self) -> str:
        return f"exegesis-{self.builder.name}{'-slice' if self.frame.slice else ''}"

    @cached_property
    def table(self) -> pd.DataFrame:
        return self.builder.table(self.part, self.frame)

    def key(self, kind: str) -> str:
        return SESSION.key(self.viewed.state.kind, f"keep.{kind}.{self.builder.name}.{self.frame.slice}")

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        return self.builder.chart(self.part, replace(self.frame, theme=theme) if theme else self.frame)

    def caption(self) -> ChartCaption:
        """A chart of several evaluations has a command for each."""
        evaluations = self.builder.others or (self.viewed.evaluation,)
        size = len({row.example for row in self.part.rows} | {skip.example for skip in self.part.skips})
        notes = [*(cite(one.plan) for one in evaluations), plan_text(evaluations[0].plan, size), f"{REPEATS}:"]
        models = list(dict.fromkeys(self.table["Model"])) if "Model" in self.table else []
        view, slice = VIEWS[self.viewed.view.view], self.frame.slice
        title = ", ".join([view, *models, self.part.plan.dataset, *([slice] if slice else [])])
        return ChartCaption(title, notes, [command_line(one.requested_plan) for one in evaluations])


def chart_panel(
    viewed: ViewedEvaluation, builder: ChartBuilder, slice: str = "", part: Evaluation | None = None
) -> None:  # fmt: skip
    """The chart of the whole, or of the `part` that a slice is."""
    from components.charts.frame import PICKED, ChartFrame
    from components.charts.scores import missing_values_text

    part, kind = viewed.evaluation if part is None else part, viewed.state.kind
    frame = ChartFrame(viewed.titles, browser_theme(), viewed.drawn_methods, method_order(), slice)
    name = SESSION.key(kind, f"chart.{builder.name}.{slice}")
    one = EvaluationChart(viewed, builder, part, frame)
    chart = one.chart()
    if slice:
        st.markdown(f"**{escape_label(slice)}**, {count(len(part.facts), 'example')}")
    st.altair_chart(
        chart, key=name, on_select=partial(_pick, kind, name) if builder.leads else "ignore",
        selection_mode=PICKED if builder.leads else None,
        alt=f"{builder.name} of an evaluation; its numbers stand below",
    )  # fmt: skip
    if builder.leads:
        _point_list(viewed.state, f"{builder.name}.{slice}", chart)
    else:
        st.caption(NO_EXAMPLES)
    if missing := missing_values_text(one.table):
        show_note(missing)
    with st.expander("Numbers", key=f"{name}.numbers", on_change="rerun") as box:
        if box.open:
            draw_table(one.table, f"evaluate.{builder.name}.{slice}")
    chart_file_buttons(one)


def _pick(kind: str, name: str) -> None:
    """Takes the point that was clicked; a click beside all points takes it back."""
    from components.charts.frame import PICKED

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
    """Each point that can be clicked in a chart with its name, in the order in which it is drawn."""
    rows = _clickable_rows(chart)
    several = len({row["model"] for row in rows}) > 1
    return [(_row_point(row), _row_text(row, several)) for row in rows]


def _clickable_rows(chart: alt.LayerChart) -> list[dict[Hashable, Any]]:
    """Of the layer that answers the click."""
    import pandas as pd

    from components.charts.frame import FIELDS

    tables = (one.data for one in (*chart.layer, chart) if isinstance(one.data, pd.DataFrame))
    table = next((one for one in tables if set(FIELDS) <= set(one.columns)), pd.DataFrame())
    return list({_row_point(row): row for row in table.to_dict("records")}.values())


def _row_point(row: dict[Hashable, Any]) -> ScorePoint:
    given = row["percent"]
    percent = "" if given is None or given != given else str(int(given))
    return ScorePoint(row["model"], row["method"], row["metric"], percent=percent, slice=row["slice"])


def _row_text(row: dict[Hashable, Any], several: bool) -> str:
    where = [row["model"]] * several + [row[name] for name in ("moved", "slice") if row.get(name)]
    return f"{', '.join([row['name'], *where])}: {row['shown']}"


def _pick_listed(kind: str, widget: str, points: Sequence[ScorePoint]) -> None:
    place = st.session_state[widget]
    point_at(kind, None if place is None else points[place])
