"""The numbers of a chart as a list to choose from: the way to the examples behind a point without a mouse."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.controls import PERSIST
from components.evaluate.look import Point
from components.evaluate.session import key, point_at

if TYPE_CHECKING:
    import altair as alt

    from components.evaluate.state import EvaluateState

LABEL = "Examples behind"
HINT = "Choose a number here, or click it in the chart"
WIDTH = 560
Places = Sequence[tuple[Point, str]]
"""Each point that is drawn, with what it is called."""


def lead_area(state: EvaluateState, name: str, chart: alt.LayerChart) -> None:
    """A list of what is drawn. `name`: of the chart's keys."""
    places = places_of(chart)
    if not places:
        return
    points, widget = [point for point, _ in places], key(state.kind, f"lead.{name}")
    st.session_state[widget] = points.index(state.look.picked) if state.look.picked in points else None
    st.selectbox(
        LABEL, range(len(places)), index=None, key=widget, width=WIDTH, format_func=lambda place: places[place][1],
        placeholder=HINT, on_change=partial(_take, state.kind, widget, points), persist_state=PERSIST,
    )  # fmt: skip


def places_of(chart: alt.LayerChart) -> Places:
    """What can be clicked in a chart, in the order in which it is drawn."""
    rows = _rows(chart)
    several = len({row["model"] for row in rows}) > 1
    return [(_point(row), _words(row, several)) for row in rows]


def _rows(chart: alt.LayerChart) -> list[dict[Hashable, Any]]:
    """Of the layer that answers the click."""
    import pandas as pd

    from components.charts.frame import FIELDS

    tables = (one.data for one in (*chart.layer, chart) if isinstance(one.data, pd.DataFrame))
    table = next((one for one in tables if set(FIELDS) <= set(one.columns)), pd.DataFrame())
    return list({_point(row): row for row in table.to_dict("records")}.values())


def _point(row: dict[Hashable, Any]) -> Point:
    given = row["percent"]
    percent = "" if given is None or given != given else str(int(given))
    return Point(row["model"], row["method"], row["metric"], percent=percent, slice=row["slice"])


def _words(row: dict[Hashable, Any], several: bool) -> str:
    where = [row["model"]] * several + [row[name] for name in ("moved", "slice") if row.get(name)]
    return f"{', '.join([row['name'], *where])}: {row['shown']}"


def _take(kind: str, widget: str, points: Sequence[Point]) -> None:
    place = st.session_state[widget]
    point_at(kind, None if place is None else points[place])
