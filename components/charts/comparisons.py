"""Charts that compare methods: removal curves of one example, points with intervals, agreement as a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import altair as alt
import pandas as pd
import plotly.graph_objects as go

from components.charts.frame import dashes, line_legend, method_colors, shapes, style_chart
from components.numbers import hundredths, plain, plural
from components.palette import PALETTES, STEPS, Theme, color
from engine.metrics.agreement import Agreement
from engine.metrics.catalog import PERCENTS
from engine.metrics.faithfulness import RemovalCurve

CHART_HEIGHT, CELL, MARGIN = 460, 46, 190
LEGEND_COLUMNS = 4
INTERVAL_HEIGHT, AXIS_HEIGHT, NAME_ABOVE = 52, 60, -15
"""In pixels: height of an interval with its name, height of the axis, and offset from an interval to its name."""
MOVED = {"deletion": "removed", "insertion": "kept"}
"""What happens to the units with the highest scores."""
AREAS = {
    ("deletion",): {"deletion": "Area under the curve"},
    ("deletion", "insertion"): {"deletion": "Area, deletion", "insertion": "Area, insertion"},
}


def curves_chart(
    curves: Sequence[RemovalCurve],
    titles: Mapping[str, str],
    explained: str,
    score: bool,
    unit: str = "token",
    columns: int = LEGEND_COLUMNS,
    theme: Theme = "light",
) -> alt.LayerChart:
    """Chart with a line per method over the share of units removed or kept, dotted for random.

    Tooltips show the values. All curves are of one way. `score`: whether the head is a regression, whose values have no
    bounds; otherwise they are probabilities from 0 to 1. `columns`: number of columns of the legend.
    """
    names, moved = [titles[curve.method] for curve in curves], MOVED[curves[0].way]
    methods, legend = [curve.method for curve in curves], line_legend(columns, 260)
    colors = alt.Scale(domain=names, range=method_colors(methods, theme))
    share = f"share of {plural(unit)} {moved}, highest score first"
    base = alt.Chart(curve_table(curves, titles, unit)).encode(
        x=alt.X("share:Q", title=share, axis=alt.Axis(format="%")),
        y=alt.Y("value:Q", title=explained, scale=alt.Scale(zero=False) if score else alt.Scale(domain=[0, 1])),
        color=alt.Color("method:N", sort=names, scale=colors, title=None, legend=legend),
    )
    dashed = alt.Scale(domain=names, range=dashes(methods))
    lines = base.mark_line(strokeWidth=2.2).encode(
        strokeDash=alt.StrokeDash("method:N", sort=names, scale=dashed, title=None, legend=legend)
    )
    return style_chart(alt.LayerChart(layer=[lines, _points(base, moved, score)]), CHART_HEIGHT, theme)


def _points(base: alt.Chart, moved: str, score: bool) -> alt.Chart:
    """Return the points. Only they have tooltips, since a line would show the values of its first point everywhere."""
    titles = {"method": "method", moved: moved, "shown": "score" if score else "probability"}
    tips = [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]
    return base.mark_point(filled=True, opacity=1, size=55).encode(tooltip=tips)


def curve_table(curves: Sequence[RemovalCurve], titles: Mapping[str, str], unit: str = "token") -> pd.DataFrame:
    """Return a row per method and share, for the lines and their tooltips."""
    return pd.DataFrame(
        [
            {
                "method": titles[curve.method],
                "share": share / 100,
                MOVED[curve.way]: f"{number} of {curve.n} {plural(unit)}",
                "value": float(value),
                "shown": plain(float(value)),
            }
            for curve in curves
            for share, number, value in zip(PERCENTS, curve.moved, curve.values, strict=True)
        ]
    )


def area_table(curves: Sequence[RemovalCurve], titles: Mapping[str, str]) -> pd.DataFrame:
    """Return the areas under the curves of each method, the smallest deletion area first."""
    names = AREAS[tuple(dict.fromkeys(curve.way for curve in curves))]
    rows: dict[str, dict[str, str | float]] = {}
    for curve in curves:
        row = rows.setdefault(curve.method, {"Method": titles[curve.method]})
        row[names[curve.way]] = round(curve.area, 3)
    return pd.DataFrame(list(rows.values())).sort_values(names["deletion"], kind="stable")


def interval_chart(
    table: pd.DataFrame, names: Sequence[str], columns: tuple[str, str], axis: alt.X, shaded: str | None, theme: Theme
) -> alt.LayerChart:
    """Chart with a point and its interval, Low to High, for each row of the table, under the row's name (Method).

    `columns`: columns of the points and of the text at the right; tooltips show the latter and all columns after it.
    `shaded`: name whose interval is shaded across the whole chart. `names`: all names that a row may have.
    """
    point, right = columns
    colors = alt.Scale(domain=list(names), range=method_colors(names, theme))
    shape = alt.Shape("Method:N", scale=alt.Scale(domain=list(names), range=shapes(names)), legend=None)
    base = alt.Chart(table).encode(
        y=alt.Y("Method:N", sort=table["Method"].tolist(), axis=None),
        color=alt.Color("Method:N", scale=colors, legend=None),
    )
    last = list(table.columns)
    tips = [alt.Tooltip(f"{name}:N") for name in ("Method", *last[last.index(right) :])]
    palette = PALETTES[theme]
    layers = [
        base.mark_rule(strokeWidth=4, strokeCap="round").encode(x=axis, x2="High:Q", tooltip=tips),
        base.mark_point(filled=True, opacity=1, size=130).encode(x=f"{point}:Q", shape=shape, tooltip=tips),
        _text_above(base, "Method", 0, "left", palette.text),
        _text_above(base, right, "width", "right", palette.muted),
    ]
    if shaded is not None:
        ground = alt.Chart(table[table["Method"] == shaded]).mark_rect(color=palette.line, opacity=0.6)
        layers.insert(0, ground.encode(x="Low:Q", x2="High:Q"))
    return style_chart(alt.LayerChart(layer=layers), INTERVAL_HEIGHT * len(table) + AXIS_HEIGHT, theme)


def _text_above(base: alt.Chart, field: str, x: int | str, align: Literal["left", "right"], ink: str) -> alt.Chart:
    """Return text above the intervals, at one side of the chart, so that it needs no column of its own."""
    words = base.mark_text(align=align, dy=NAME_ABOVE, fontSize=13)
    return words.encode(x=alt.value(x), text=f"{field}:N", color=alt.value(ink))


def agreement_figure(found: Agreement, titles: Mapping[str, str], theme: Theme) -> go.Figure:
    """Return the matrix with values in the cells. Rho: blue agrees, orange reverses. Overlap: teal is the amount."""
    names = [titles[method] for method in found.methods]
    figure = go.Figure(_cells(found, names, theme))
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True, ticks="")
    figure.update_xaxes(side="bottom", tickangle=-40, showgrid=False, automargin=True, ticks="")
    height = CELL * len(names) + MARGIN
    figure.update_layout(height=height, margin={"l": 10, "r": 10, "t": 20, "b": 10})
    return figure


def _cells(found: Agreement, names: Sequence[str], theme: Theme) -> go.Heatmap:
    rho, rows = found.measure == "spearman", found.values.tolist()
    return go.Heatmap(
        z=[[None if value != value else value for value in row] for row in rows],
        x=names,
        y=names,
        zmin=-1 if rho else 0,
        zmax=1,
        colorscale=scale(theme, rho),
        text=[[_cell(value, rho) for value in row] for row in rows],
        texttemplate="%{text}",
        textfont={"color": PALETTES[theme].text, "size": 13},
        hovertemplate="%{y}<br>%{x}<br>%{text}<extra></extra>",
        hoverongaps=False,
        xgap=2,
        ygap=2,
        colorbar={"thickness": 12, "title": {"text": "ρ" if rho else "shared"}},
    )


def scale(theme: Theme, rho: bool) -> list[tuple[float, str]]:
    """Return the colors of the maps as a scale from 0 to 1; for rho, the background is in the middle."""
    up = [color(theme, "for" if rho else "amount", step) for step in range(STEPS + 1)]
    if not rho:
        return [(step / STEPS, tone) for step, tone in enumerate(up)]
    down = [color(theme, "against", step) for step in range(STEPS, 0, -1)]
    return [(place / (2 * STEPS), tone) for place, tone in enumerate([*down, *up])]


def _cell(value: float, rho: bool) -> str:
    if value != value:
        return "none"
    return hundredths(value, sign=True) if rho else f"{100 * value:.0f}%"
