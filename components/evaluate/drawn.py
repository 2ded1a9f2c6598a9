"""A chart of an evaluation on the page: drawn, its click taken, its numbers beneath, both as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import streamlit as st

from components.charts.files import CaptionedChart, ChartCaption, chart_file_buttons
from components.errors import escape_label, show_note
from components.evaluate.chosen import Chosen
from components.evaluate.keep import cite, command
from components.evaluate.lead import lead_area
from components.evaluate.look import VIEWS, Point
from components.evaluate.session import key, point_at
from components.evaluate.words import how
from components.export import REPEATS
from components.numbers import count
from components.palette import browser_theme
from components.tables import draw_table
from engine.metrics.catalog import METRICS
from engine.registry import method_order

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.charts.frame import ChartFrame
    from components.palette import Theme
    from engine.evaluation.plan import Plan
    from engine.evaluation.result import Evaluation

NO_EXAMPLES = "These points are of other evaluations than the one above: no examples open from here."


@dataclass(frozen=True)
class Drawing:
    """A chart and the table of its numbers, of any part of an evaluation. `name`: of its files and keys.

    `leads`: whether its points have examples of this evaluation behind them. `plans`: of the evaluations that it is
    drawn of, where they are others than the page's.
    """

    name: str
    chart: Callable[[Evaluation, ChartFrame], alt.LayerChart]
    table: Callable[[Evaluation, ChartFrame], pd.DataFrame]
    leads: bool = True
    plans: tuple[Plan, ...] = ()


def drawing(
    name: str, chart: Callable[..., alt.LayerChart], table: Callable[..., pd.DataFrame], *given: object
) -> Drawing:
    """A chart and its table that are told the same besides the evaluation and the frame."""
    return Drawing(
        name, lambda found, frame: chart(found, frame, *given), lambda found, frame: table(found, frame, *given)
    )


@dataclass(frozen=True)
class EvaluationChart(CaptionedChart):
    """A chart as it is on the page: of `found`, the whole or a slice."""

    chosen: Chosen
    drawing: Drawing
    found: Evaluation
    frame: ChartFrame

    @property
    def file(self) -> str:
        return f"exegesis-{self.drawing.name}{'-slice' if self.frame.slice else ''}"

    @cached_property
    def table(self) -> pd.DataFrame:
        return self.drawing.table(self.found, self.frame)

    def key(self, kind: str) -> str:
        return key(self.chosen.state.kind, f"keep.{kind}.{self.drawing.name}.{self.frame.slice}")

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        return self.drawing.chart(self.found, replace(self.frame, theme=theme) if theme else self.frame)

    def caption(self) -> ChartCaption:
        """A chart of several evaluations has a command for each."""
        plans = self.drawing.plans or (self.chosen.found.plan,)
        size = len({row.example for row in self.found.rows} | {skip.example for skip in self.found.skips})
        notes = [*(cite(plan) for plan in plans), how(plans[0], size), f"{REPEATS}:"]
        models = list(dict.fromkeys(self.table["Model"])) if "Model" in self.table else []
        view, slice = VIEWS[self.chosen.state.look.view], self.frame.slice
        title = ", ".join([view, *models, self.found.plan.dataset, *([slice] if slice else [])])
        return ChartCaption(title, notes, [command(plan, self.chosen.state.metrics) for plan in plans])


def draw(chosen: Chosen, drawing: Drawing, slice: str = "", part: Evaluation | None = None) -> None:
    """The chart of the whole, or of the `part` that a slice is."""
    from components.charts.frame import PICKED, ChartFrame
    from components.charts.scores import missing_values_text

    found = chosen.found if part is None else part
    frame = ChartFrame(chosen.titles, browser_theme(), chosen.shown, method_order(), slice)
    name = key(chosen.state.kind, f"chart.{drawing.name}.{slice}")
    shown = EvaluationChart(chosen, drawing, found, frame)
    chart = shown.chart()
    if slice:
        st.markdown(f"**{escape_label(slice)}**, {count(len(found.facts), 'example')}")
    take = partial(_pick, chosen.state.kind, name)
    st.altair_chart(
        chart, key=name, on_select=take if drawing.leads else "ignore",
        selection_mode=PICKED if drawing.leads else None,
        alt=f"{drawing.name} of an evaluation; its numbers stand below",
    )  # fmt: skip
    if drawing.leads:
        lead_area(chosen.state, f"{drawing.name}.{slice}", chart)
    else:
        st.caption(NO_EXAMPLES)
    if missing := missing_values_text(shown.table):
        show_note(missing)
    with st.expander("Numbers", key=f"{name}.numbers", on_change="rerun") as box:
        if box.open:
            draw_table(shown.table, f"evaluate.{drawing.name}.{slice}")
    chart_file_buttons(shown)


def _pick(kind: str, name: str) -> None:
    """Takes the point that was clicked; a click beside all points takes it back."""
    from components.charts.frame import PICKED

    picked = st.session_state[name].selection.get(PICKED) or [{}]
    point_at(kind, read_point(picked[-1]))


def read_point(sent: object) -> Point | None:
    """What the browser says of a point, checked; None where it says none."""
    given = sent if isinstance(sent, dict) else {}
    model, method, metric, slice = (given.get(name) for name in ("model", "method", "metric", "slice"))
    if not (isinstance(model, str) and isinstance(method, str) and metric in METRICS):
        return None
    percent = given.get("percent")
    at = str(int(percent)) if isinstance(percent, int | float) and not isinstance(percent, bool) else ""
    return Point(model, method, str(metric), percent=at, slice=slice if isinstance(slice, str) else "")
