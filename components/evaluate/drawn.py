"""A chart of an evaluation on the page: drawn, its click taken, its numbers beneath, both as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.evaluate.chosen import Chosen
from components.evaluate.keep_chart import Kept, keep_chart
from components.evaluate.lead import lead_area
from components.evaluate.look import Point
from components.evaluate.session import key, point_at
from components.numbers import count
from components.tables import draw_table
from components.theme import shown_theme
from components.trouble import literal, say_note
from engine.metrics.catalog import METRICS
from engine.registry import method_order

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.evaluate.charts.frame import Frame
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
    chart: Callable[[Evaluation, Frame], alt.LayerChart]
    table: Callable[[Evaluation, Frame], pd.DataFrame]
    leads: bool = True
    plans: tuple[Plan, ...] = ()


def drawing(
    name: str, chart: Callable[..., alt.LayerChart], table: Callable[..., pd.DataFrame], *given: object
) -> Drawing:
    """A chart and its table that are told the same besides the evaluation and the frame."""
    return Drawing(
        name, lambda found, frame: chart(found, frame, *given), lambda found, frame: table(found, frame, *given)
    )


def draw(chosen: Chosen, drawing: Drawing, slice: str = "", part: Evaluation | None = None) -> None:
    """The chart of the whole, or of the `part` that a slice is."""
    from components.evaluate.charts.frame import PICKED, Frame
    from components.evaluate.charts.words import not_drawn

    found = chosen.found if part is None else part
    frame = Frame(chosen.titles, shown_theme(), chosen.shown, method_order(), slice)
    name = key(chosen.state.kind, f"chart.{drawing.name}.{slice}")
    chart = drawing.chart(found, frame)
    if slice:
        st.markdown(f"**{literal(slice)}**, {count(len(found.facts), 'example')}")
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
    table = drawing.table(found, frame)
    if missing := not_drawn(table):
        say_note(missing)
    with st.expander("Numbers", key=f"{name}.numbers", on_change="rerun") as box:
        if box.open:
            draw_table(table, f"evaluate.{drawing.name}.{slice}")
    keep_chart(Kept(chosen, drawing, found, frame, table))


def _pick(kind: str, name: str) -> None:
    """Takes the point that was clicked; a click beside all points takes it back."""
    from components.evaluate.charts.frame import PICKED

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
