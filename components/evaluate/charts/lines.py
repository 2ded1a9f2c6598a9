"""Lines, a method each, with a band of the 95 % interval behind and points that answer the mouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from components.charts import finished
from components.evaluate.charts.axes import Axis
from components.evaluate.charts.frame import Frame, picked, picked_size
from components.evaluate.charts.words import tips

AT = "at"
"""The column of the x axis."""
BAND, WIDTH = 0.14, 2.2
"""How opaque a band is, and how wide a line in pixels."""
MOST_BANDS = 4
"""More bands over each other cannot be told apart: then hovering alone tells the intervals."""


def line_chart(
    table: pd.DataFrame,
    company: Sequence[str],
    frame: Frame,
    axes: tuple[Axis, Axis],
    told: Mapping[str, str],
    bands: bool = True,
) -> alt.LayerChart:
    """`table`: a row a point, as `record` makes it, with its place `AT` on the x axis. `told`: more on hovering.

    Only the points answer the mouse: a line would tell the values of its first point everywhere.
    """
    x, y = axes
    seen, click = frame.seen(company, table), picked()
    legend = frame.legend(seen)
    base = alt.Chart(table).encode(x=x.x(AT), color=frame.colour(company, legend))
    lines = base.mark_line(strokeWidth=WIDTH).encode(y=y.y("value"), strokeDash=frame.dash(company, legend))
    points = base.mark_point(filled=True, opacity=1).encode(
        y=y.y("value"), size=picked_size(click), tooltip=tips(frame, told)
    )
    clear = bands and table["method"].nunique() <= MOST_BANDS
    behind = [_band(base, table, y)] if clear and table["low"].notna().any() else []
    chart = alt.LayerChart(layer=[*behind, lines, points.add_params(click)])
    return finished(chart, frame.height(seen), frame.theme)


def _band(base: alt.Chart, table: pd.DataFrame, y: Axis) -> alt.Chart:
    """Of the points that have an interval: one example has none."""
    band = base.properties(data=table[table["low"].notna()]).mark_area(opacity=BAND, line=False)
    return band.encode(y=y.y("low"), y2="high:Q")
