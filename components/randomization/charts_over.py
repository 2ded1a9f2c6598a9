"""Charts of several models over each other: a line a model, of one method, and of what each model then says.

Models of as many parts stand on the same stages; others on the share of the parts, so that small and large compare.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from components.charts import again, finished, line_legend
from components.evaluate.charts.axes import Axis
from components.evaluate.charts.blank import blank_chart
from components.evaluate.charts.frame import COLUMNS, LABEL, Frame, Span, picked, picked_size
from components.evaluate.charts.lines import AT, WIDTH
from components.randomization.charts import (
    LABELS,
    PREDICTION_HEIGHT,
    across,
    bands,
    rows_of,
    stage_names,
    tips,
    up,
    zero,
)
from components.randomization.look import MEASURES
from components.randomization.words import MODE_TITLES, ORIGINAL
from engine.randomization.curves import Curve
from engine.randomization.plan import MODES

SHARES = {
    MODES[0]: "share of the parts that are random, from the last down",
    MODES[1]: "how far down the one random part is, 100 %: the first",
}
"""What is random at each place, where models have different parts."""
LIKELY = Axis(
    ["Probability of", "the class"],
    alt.Scale(domain=[0, 1]),
    alt.Axis(minExtent=LABELS, values=[0, 0.5, 1], format="%"),
)
ROW, LONG = 22, 26
"""Pixels of a row of the legend; letters of a name that is too long for columns."""


def models_chart(curves: Sequence[Curve], frame: Frame, span: Span) -> alt.LayerChart:
    """A line a model, with bands. The curves are of one method, one mode and one measure, each of another `model`."""
    table = models_data(curves)
    if table.empty:
        return blank_chart(frame)
    click, measure = picked(), MEASURES[curves[0].metric]
    names = _names(table)
    layers, points = _layers(curves, table, up([measure, "with the original map"], span), told=True)
    shown = points.encode(size=picked_size(click)).add_params(click)
    return finished(alt.LayerChart(layer=[zero(frame), *layers, shown]), frame.height(names), frame.theme)


def answers_chart(curves: Sequence[Curve], frame: Frame) -> alt.LayerChart:
    """How likely each model finds the class that it predicted, at each stage."""
    table = models_data(curves)
    if table.empty:
        return blank_chart(frame)
    layers, points = _layers(curves, table, LIKELY, told=False)
    chart = alt.LayerChart(layer=[*layers, points.encode(size=alt.value(30))])
    return finished(chart, PREDICTION_HEIGHT + ROW * max(0, len(_names(table)) - 2), frame.theme)


def models_data(curves: Sequence[Curve]) -> pd.DataFrame:
    """A row a model and stage with a value, the original first."""
    table = pd.DataFrame(
        [{**row, "parts": len(curve.points)} for curve in curves for row in rows_of(curve, curve.model)]
    )
    if not table.empty and not alike(curves):
        table[AT] = table["percent"] / table["parts"]
    return table


def alike(curves: Sequence[Curve]) -> bool:
    """Whether all have the same stages."""
    return len({tuple(stage_names(curve)) for curve in curves}) == 1


def _layers(
    curves: Sequence[Curve], table: pd.DataFrame, y: Axis, told: bool
) -> tuple[list[alt.Chart], alt.Chart]:  # fmt: skip
    """Bands and lines, then the points."""
    names = _names(table)
    long = max(map(len, names)) > LONG
    legend = line_legend(1, 2 * LABEL) if long else line_legend(alt.ExprRef(COLUMNS), LABEL)
    legend.symbolOpacity = 1
    x = across(curves[0], told) if alike(curves) else _shares(curves[0].mode, told)
    tones, dashes = alt.Scale(domain=names), alt.Scale(domain=names, range=list(map(again, range(len(names)))))
    base = alt.Chart(table).encode(x=x.x(AT), color=alt.Color("name:N", scale=tones, title=None, legend=legend))
    dash = alt.StrokeDash("name:N", scale=dashes, title=None, legend=legend)
    lines = base.mark_line(strokeWidth=WIDTH).encode(y=y.y("value"), strokeDash=dash)
    points = base.mark_point(filled=True, opacity=1).encode(y=y.y("value"), tooltip=tips("Model"))
    return [*bands(base, table, y), lines], points


def _names(table: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(table["name"]))


def _shares(mode: str, told: bool) -> Axis:
    said = f"datum.value == 0 ? '{ORIGINAL}' : format(datum.value, '.0%')"
    ticks = alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], labelExpr=said, labelOverlap="greedy", grid=False)
    words = [f"{MODE_TITLES[mode]}:", SHARES[mode]] if told else []
    return Axis(words, alt.Scale(domain=[0, 1], nice=False, padding=12), ticks)
