"""Charts of a randomization: the similarity of maps to the original at each stage, and the model's predictions there.

Both have the same horizontal axis: the original model on the left, then part by part. There is a line for each method,
or for one method a line for each model. Models with equal parts share the stages; others are drawn by the share of
their parts, so that small and large models can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from components.charts.files import LEGEND_COLUMNS
from components.charts.frame import (
    LABEL,
    AxisRange,
    ChartAxis,
    ChartFrame,
    blank_chart,
    click_selection,
    dash_at,
    line_legend,
    point_size,
    style_chart,
)
from components.charts.scores import AT, WIDTH, band_layers, round_number
from components.numbers import count, hundredths
from components.palette import PALETTES
from components.randomization.view import MEASURES, ORIGINAL
from engine.experiments.options import RANDOM
from engine.randomization.curves import Curve, CurvePoint
from engine.randomization.plan import MODE_TITLES, MODES

PREDICTION_TITLES = {"probability": "Probability of the original class", "class_changed": "Share with another class"}
SCORE = "Score"
"""Name of the prediction of a regression head."""
PREDICTION_HEIGHT = 200
DASHES: list[list[float]] = [[1, 0], [6, 3]]
LEAST = -0.2
"""The axis starts below zero, so that values around zero are visible."""
CORRELATIONS = ("spearman", "spearman_abs", "ssim")
LABELS = 34
"""Minimum width in pixels of the labels of the vertical axis, which aligns the charts."""
SHARE = ChartAxis(
    ["Predictions of", "the model"],
    alt.Scale(domain=[0, 1]),
    alt.Axis(minExtent=LABELS, values=[0, 0.5, 1], format="%"),
)
ACROSS = {MODES[0]: "all blocks from the last down to this one", MODES[1]: "only this block"}
"""The randomized parts at each stage."""
SHARES = {
    MODES[0]: "share of randomized parts, from the last down",
    MODES[1]: "position of the randomized part (100%: the first)",
}
"""The horizontal axis if models have different parts."""
LIKELY = ChartAxis(
    ["Probability of", "the class"],
    alt.Scale(domain=[0, 1]),
    alt.Axis(minExtent=LABELS, values=[0, 0.5, 1], format="%"),
)
LEGEND_ROW, LONG_NAME = 22, 26
"""Height of a row of the legend in pixels, and number of letters from which a name is too long for columns."""


def likeness_chart(
    curves: Sequence[Curve], frame: ChartFrame, company: Sequence[str], span: AxisRange
) -> alt.LayerChart:
    """Chart with a line and band for each method, dotted for random. The curves share the model, mode and measure."""
    table = likeness_table(curves, frame)
    if table.empty or table["random"].all():
        return blank_chart(frame)
    methods, curve, click = frame.methods_in(company, table), curves[0], click_selection()
    legend = frame.legend(methods)
    x, y = stage_axis(curve), likeness_axis([MEASURES[curve.metric], "with the original map"], span)
    base = alt.Chart(table).encode(x=x.x(AT), color=frame.color(company, legend))
    lines = base.mark_line(strokeWidth=WIDTH).encode(y=y.y("value"), strokeDash=frame.dash(company, legend))
    points = base.mark_point(filled=True, opacity=1).encode(y=y.y("value"), size=point_size(click), tooltip=tooltips())
    layers = [zero_line(frame), *band_layers(base, table, y), lines, points.add_params(click)]
    return style_chart(alt.LayerChart(layer=layers), frame.height(methods), frame.theme)


def prediction_chart(curves: Sequence[Curve], frame: ChartFrame, regression: bool) -> alt.LayerChart:
    """Chart of the predictions at each stage: probability of the original class, and share of changed classes."""
    table = prediction_table(curves, regression)
    if table.empty:
        return blank_chart(frame)
    palette, names = PALETTES[frame.theme], list(dict.fromkeys(table["name"]))
    tones, dash_of = alt.Scale(domain=names, range=[palette.text, palette.muted]), alt.Scale(domain=names, range=DASHES)
    legend = line_legend(1, 260)
    legend.symbolOpacity = 1
    y = _score_axis(table) if regression else SHARE
    base = alt.Chart(table).encode(
        x=stage_axis(curves[0], titled=False).x(AT),
        color=alt.Color("name:N", scale=tones, title=None, legend=legend),
    )
    dash = alt.StrokeDash("name:N", scale=dash_of, title=None, legend=legend)
    lines = base.mark_line(strokeWidth=WIDTH).encode(y=y.y("value"), strokeDash=dash)
    points = base.mark_point(filled=True, opacity=1).encode(y=y.y("value"), size=alt.value(30), tooltip=tooltips())
    chart = alt.LayerChart(layer=[*band_layers(base, table, y), lines, points])
    return style_chart(chart, PREDICTION_HEIGHT, frame.theme)


def likeness_table(curves: Sequence[Curve], frame: ChartFrame) -> pd.DataFrame:
    """One row per method and stage with a value, the original first."""
    rows = [row for curve in curves for row in chart_rows(curve, frame.title(curve.method))]
    return pd.DataFrame([{**row, "random": row["method"] == RANDOM} for row in rows])


def prediction_table(curves: Sequence[Curve], regression: bool) -> pd.DataFrame:
    """One row per prediction metric and stage, the original model first."""
    names = {"probability": SCORE} if regression else PREDICTION_TITLES
    return pd.DataFrame([row for curve in curves for row in chart_rows(curve, names[curve.metric])])


def numbers_table(curves: Sequence[Curve], titles: Mapping[str, str], models: bool = False) -> pd.DataFrame:
    """Values of the charts: one row per curve and stage, including those without a value.

    `models`: whether each row names its model.
    """
    return pd.DataFrame(
        [
            ({"Model": curve.model} if models else {}) | _row(curve, point, titles)
            for curve in curves
            for point in curve.points
        ]
    )


def span_of(curves: Iterable[Curve]) -> AxisRange:
    """Return the shared range of the similarity axis: up to 1, and below zero if values can be negative."""
    curves = list(curves)
    least = LEAST if any(curve.metric in CORRELATIONS for curve in curves) else 0.0
    lows = (point.interval[0] for curve in curves for point in curve.points if point.interval)
    values = (point.value for curve in curves for point in curve.points if point.value is not None)
    return min(least, *lows, *values), 1.0


def stage_names(curve: Curve) -> list[str]:
    """Return the labels of the horizontal axis: the original, then the part randomized at each stage."""
    return [ORIGINAL, *(point.stage.block for point in curve.points)]


def stage_axis(curve: Curve, titled: bool = True) -> ChartAxis:
    """Return the horizontal axis of stages. `titled`: whether it has a title."""
    names = stage_names(curve)
    ticks = alt.Axis(
        values=list(range(len(names))), labelExpr=f"{json.dumps(names)}[datum.value]", labelOverlap="greedy", grid=False
    )
    scale = alt.Scale(domain=[0, len(names) - 1], nice=False, padding=12)
    return ChartAxis([f"{MODE_TITLES[curve.mode]}:", ACROSS[curve.mode]] if titled else [], scale, ticks)


def likeness_axis(words: Sequence[str], span: AxisRange) -> ChartAxis:
    """Return the vertical axis of the similarity."""
    return ChartAxis(words, alt.Scale(domain=list(span), nice=False), alt.Axis(minExtent=LABELS, tickCount=7))


def _score_axis(table: pd.DataFrame) -> ChartAxis:
    ends = table[["low", "value", "high"]].to_numpy(dtype=np.float64)
    scale = alt.Scale(domain=[float(np.nanmin(ends)), float(np.nanmax(ends))])
    return ChartAxis([SCORE, "of the model"], scale, alt.Axis(minExtent=LABELS, tickCount=4))


def zero_line(frame: ChartFrame) -> alt.Chart:
    """Return a rule at zero."""
    line = alt.Chart(pd.DataFrame({"zero": [0.0]}))
    return line.mark_rule(color=PALETTES[frame.theme].muted, strokeWidth=1).encode(y="zero:Q")


def tooltips(line: str = "Line") -> list[alt.Tooltip]:
    """Return the tooltip of a point. `line`: title of the name of its line."""
    columns = {
        "name": line, "words": "Stage", "shown": "Mean", "interval": "95% interval",
        "seeds": "By randomization", "examples": "Examples", "skipped": "Missing values",
    }  # fmt: skip
    return [alt.Tooltip(f"{column}:N", title=title) for column, title in columns.items()]


def chart_rows(curve: Curve, name: str) -> list[dict[str, object]]:
    """Return the rows of a curve for its chart. `percent` and `slice` hold the stage and the mode for clicks."""
    click = {"model": curve.model, "method": curve.method, "metric": curve.metric, "slice": curve.mode, "name": name}
    start = {
        AT: 0, "percent": 0, "value": curve.start, "low": None, "high": None, "words": "original model",
        "shown": hundredths(curve.start), "interval": "none (original)", "seeds": "", "examples": "",
        "skipped": "none",
    }  # fmt: skip
    having = [point for point in curve.points if point.value is not None]
    return [{**click, **start}, *({**click, **_point(point)} for point in having)] if having else []


def _point(point: CurvePoint) -> dict[str, object]:
    low, high = point.interval or (None, None)
    return {
        AT: point.stage.number,
        "percent": point.stage.number,
        "value": point.value,
        "low": low,
        "high": high,
        "words": point.stage.words,
        "shown": hundredths(point.value or 0.0),
        "interval": "none (one example)" if low is None or high is None else f"{hundredths(low)} to {hundredths(high)}",
        "seeds": ", ".join("none" if one is None else hundredths(one) for one in point.by_seed),
        "examples": f"{point.n:,}",
        "skipped": skipped_words(point),
    }


def skipped_words(point: CurvePoint) -> str:
    """Describe the number of maps without a value, by reason."""
    return "; ".join(f"{count(number, 'map')}: {why}" for why, number in point.skipped.items()) or "none"


def _row(curve: Curve, point: CurvePoint, titles: Mapping[str, str]) -> dict[str, object]:
    low, high = point.interval or (None, None)
    return {
        "Line": titles.get(curve.method, curve.method) or PREDICTION_TITLES[curve.metric],
        "Randomized": point.stage.words.removesuffix(" randomized"),
        "Mean": round_number(point.value),
        "95% from": round_number(low),
        "95% to": round_number(high),
        "Examples": point.n,
        "Maps without a value": sum(point.skipped.values()),
        **({"Why": skipped_words(point)} if point.skipped else {}),
    }


def models_chart(curves: Sequence[Curve], frame: ChartFrame, span: AxisRange) -> alt.LayerChart:
    """Chart with a line and band for each model. The curves share the method, mode and measure."""
    table = models_table(curves)
    if table.empty:
        return blank_chart(frame)
    click, measure = click_selection(), MEASURES[curves[0].metric]
    names = _names(table)
    layers, points = _layers(curves, table, likeness_axis([measure, "with the original map"], span), titled=True)
    shown = points.encode(size=point_size(click)).add_params(click)
    return style_chart(alt.LayerChart(layer=[zero_line(frame), *layers, shown]), frame.height(names), frame.theme)


def class_chart(curves: Sequence[Curve], frame: ChartFrame) -> alt.LayerChart:
    """Chart of the probability of the original class by each model at each stage."""
    table = models_table(curves)
    if table.empty:
        return blank_chart(frame)
    layers, points = _layers(curves, table, LIKELY, titled=False)
    chart = alt.LayerChart(layer=[*layers, points.encode(size=alt.value(30))])
    return style_chart(chart, PREDICTION_HEIGHT + LEGEND_ROW * max(0, len(_names(table)) - 2), frame.theme)


def models_table(curves: Sequence[Curve]) -> pd.DataFrame:
    """One row per model and stage with a value, the original first."""
    table = pd.DataFrame(
        [{**row, "parts": len(curve.points)} for curve in curves for row in chart_rows(curve, curve.model)]
    )
    if not table.empty and not same_stages(curves):
        table[AT] = table["percent"] / table["parts"]
    return table


def same_stages(curves: Sequence[Curve]) -> bool:
    """Whether all curves have the same stages."""
    return len({tuple(stage_names(curve)) for curve in curves}) == 1


def _layers(
    curves: Sequence[Curve], table: pd.DataFrame, y: ChartAxis, titled: bool
) -> tuple[list[alt.Chart], alt.Chart]:  # fmt: skip
    """Return the layers of bands and lines, and the layer of points."""
    names = _names(table)
    long = max(map(len, names)) > LONG_NAME
    legend = line_legend(1, 2 * LABEL) if long else line_legend(alt.ExprRef(LEGEND_COLUMNS), LABEL)
    legend.symbolOpacity = 1
    x = stage_axis(curves[0], titled) if same_stages(curves) else _share_axis(curves[0].mode, titled)
    tones, dashes = alt.Scale(domain=names), alt.Scale(domain=names, range=list(map(dash_at, range(len(names)))))
    base = alt.Chart(table).encode(x=x.x(AT), color=alt.Color("name:N", scale=tones, title=None, legend=legend))
    dash = alt.StrokeDash("name:N", scale=dashes, title=None, legend=legend)
    lines = base.mark_line(strokeWidth=WIDTH).encode(y=y.y("value"), strokeDash=dash)
    points = base.mark_point(filled=True, opacity=1).encode(y=y.y("value"), tooltip=tooltips("Model"))
    return [*band_layers(base, table, y), lines], points


def _names(table: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(table["name"]))


def _share_axis(mode: str, titled: bool) -> ChartAxis:
    labels = f"datum.value == 0 ? '{ORIGINAL}' : format(datum.value, '.0%')"
    ticks = alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], labelExpr=labels, labelOverlap="greedy", grid=False)
    words = [f"{MODE_TITLES[mode]}:", SHARES[mode]] if titled else []
    return ChartAxis(words, alt.Scale(domain=[0, 1], nice=False, padding=12), ticks)
