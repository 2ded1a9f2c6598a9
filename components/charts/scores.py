"""Charts of means over examples with their 95% intervals: lines, bars, points of two metrics, and their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import altair as alt
import pandas as pd

from components.charts.frame import (
    FOOT,
    TICKS,
    AxisRange,
    ChartAxis,
    ChartFrame,
    blank_chart,
    click_selection,
    dashes,
    linear_axis,
    log_axis,
    point_size,
    style_chart,
    style_rows,
)
from components.numbers import plain
from components.palette import PALETTES
from engine.evaluation.result import format_reasons
from engine.evaluation.scores import ScorePair
from engine.metrics.catalog import Better, metric
from engine.metrics.results import MetricScore

BETTER: dict[Better, str] = {"high": "higher is better", "low": "lower is better", "neither": "no direction is better"}
WHY = "Why"
"""Table column with the reasons why examples have no value, if any has none."""
DOUBT = "Interval"
"""Table column with the reason why a value has no interval, if any has none."""
AT = "at"
"""Table column for the x axis of lines."""
BAND, WIDTH = 0.14, 2.2
"""Opacity of a band, and width of a line in pixels."""
MOST_BANDS = 4
"""More overlapping bands cannot be distinguished. Only tooltips show the intervals then."""
GROUP = "group"
"""Table column with the name of the group, which is drawn above its bars."""
BAR, NAME = 17, 34
"""Heights in pixels: of a bar, and of a group's name with the space above it."""
FULL, CHANCE = (0.8, 0.6, 0.45), 0.3
"""Opacities of bars: for the first and each further use of the same colors; and for random."""
BESIDE, LETTERS = 132, 11.5
"""In pixels: width of the space for the name of a bar, and font size of the name."""


def axis_title(id: str) -> list[str]:
    """Return the lines of a metric's axis title: its name and unit, and which direction is better."""
    of = metric(id)
    unit = "" if of.unit in of.title.lower() else f" ({of.unit})"
    return [f"{of.title}{unit}", BETTER[of.better]]


def interval_text(score: MetricScore) -> str:
    """Return the ends of the 95% interval, or the reason why there is none."""
    return score.doubt or " to ".join(map(plain, score.interval or ()))


def skips_text(score: MetricScore) -> str:
    """Return the number of examples without a value, and the reasons."""
    return format_reasons(score.skipped) or "none"


def missing_values_text(table: pd.DataFrame) -> str:
    """Return a sentence on what a chart of the table cannot draw; empty if it draws everything. Not escaped."""
    if table.empty:
        return ""
    without = table[table["Value"].isna()]
    places = ("Slice", "Method", "Model", WHY)
    rows = without[[name for name in places if name in table]].drop_duplicates().to_dict("records")
    each = []
    for row in rows:
        slice = f", {row['Slice']}" if isinstance(row.get("Slice"), str) else ""
        each.append(f"{row['Method']} on {row['Model']}{slice} ({row[WHY]})")
    return f"Not drawn, because no example has a value: {', '.join(each)}." if each else ""


def score_tooltips(frame: ChartFrame, more: Mapping[str, str]) -> list[alt.Tooltip]:
    """Return the tooltip columns with their titles. `more`: columns between the names and the values."""
    slice = {"slice": "Slice"} if frame.slice else {}
    numbers = {"shown": "Value", "interval": "95% interval", "examples": "Examples", "skipped": "Without a value"}
    titles = {"name": "Method", "model": "Model", **slice, **more, **numbers}
    return [alt.Tooltip(f"{column}:N", title=title) for column, title in titles.items()]


def chart_row(score: MetricScore, frame: ChartFrame) -> dict[str, object]:
    """Return a point of a chart: the fields for clicks, its position, and the texts of its tooltip."""
    assert score.value is not None
    low, high = score.interval or (None, None)
    return {
        "model": score.model,
        "method": score.method,
        "metric": score.metric,
        "percent": score.percent,
        "slice": frame.slice,
        "name": frame.title(score.method),
        "value": score.value,
        "low": low,
        "high": high,
        "shown": plain(score.value),
        "interval": interval_text(score),
        "examples": f"{score.n:,}",
        "skipped": skips_text(score),
    }


def table_row(score: MetricScore, frame: ChartFrame, more: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return a table row for reading and for files: plain numbers, and None for a missing value."""
    low, high = (None if score.doubt else score.interval) or (None, None)
    return {
        **({"Slice": frame.slice} if frame.slice else {}),
        "Method": frame.title(score.method),
        "Model": score.model,
        **(more or {}),
        "Value": round_number(score.value),
        "95% from": round_number(low),
        "95% to": round_number(high),
        "Examples": score.n,
        "Without a value": sum(score.skipped.values()),
        **({DOUBT: score.doubt} if score.doubt else {}),
        **({WHY: skips_text(score)} if score.skipped else {}),
    }


def round_number(value: float | None) -> float | None:
    """Round to four significant digits, which is more than an interval leaves certain."""
    return None if value is None else float(f"{value:.4g}")


def range_of(scores: Iterable[MetricScore], room: float = 0.04) -> tuple[float, float] | None:
    """Return the range of all intervals with a margin, or None without values."""
    ends = _ends(one for one in scores if one.value is not None)
    if not ends:
        return None
    beside = room * (max(ends) - min(ends)) or room
    return min(ends) - beside, max(ends) + beside


def range_from_zero(scores: Iterable[MetricScore], frame: ChartFrame) -> AxisRange:
    """Return the range of bars, which start at 0: that of the frame, if any, else of the scores, extended to 0."""
    low, high = frame.value_range or range_of(scores) or (0.0, 1.0)
    return min(0.0, low), max(0.0, high)


def _ends(scores: Iterable[MetricScore]) -> list[float]:
    """Return the values and the ends of their intervals."""
    return [end for one in scores for end in (*(one.interval or ()), one.value) if end is not None]


def line_chart(
    table: pd.DataFrame,
    company: Sequence[str],
    frame: ChartFrame,
    axes: tuple[ChartAxis, ChartAxis],
    more: Mapping[str, str],
) -> alt.LayerChart:
    """Chart with a line per method, a band of its intervals behind it, and points that can be clicked.

    `table`: a row per point from `chart_row`, with its position `AT` on the x axis. `more`: additional tooltip columns.
    Only the points have tooltips, because a line would show the values of its first point everywhere.
    """
    x, y = axes
    methods, click = frame.methods_in(company, table), click_selection()
    legend = frame.legend(methods)
    base = alt.Chart(table).encode(x=x.x(AT), color=frame.color(company, legend))
    lines = base.mark_line(strokeWidth=WIDTH).encode(y=y.y("value"), strokeDash=frame.dash(company, legend))
    points = base.mark_point(filled=True, opacity=1).encode(
        y=y.y("value"), size=point_size(click), tooltip=score_tooltips(frame, more)
    )
    clear = table["method"].nunique() <= MOST_BANDS
    layers = [*(band_layers(base, table, y) if clear else []), lines, points.add_params(click)]
    return style_chart(alt.LayerChart(layer=layers), frame.height(methods), frame.theme)


def band_layers(base: alt.Chart, table: pd.DataFrame, y: ChartAxis) -> list[alt.Chart]:
    """Return the bands behind lines, of the points with an interval (one example has none), or no layer without any."""
    known = table[table["low"].notna()]
    if known.empty:
        return []
    return [base.properties(data=known).mark_area(opacity=BAND, line=False).encode(y=y.y("low"), y2="high:Q")]


def bar_chart(
    table: pd.DataFrame, company: Sequence[str], frame: ChartFrame, x: ChartAxis, more: Mapping[str, str]
) -> alt.LayerChart:
    """Chart with groups of horizontal bars, one per method with its name, and a rule for the 95% interval.

    `table`: a row per bar from `chart_row`, with its `GROUP`; groups are in the order of the table. The axis must
    contain 0, where the bars start, so that the length of a bar is its value. `more`: additional tooltip columns.
    """
    groups = list(dict.fromkeys(table[GROUP]))
    names = [frame.title(method) for method in frame.methods_in(company, table)]
    step = len(names) * BAR + NAME
    base = alt.Chart(table).encode(y=_group_axis(groups, NAME / step))
    scale = alt.Scale(domain=names, paddingInner=0.15)
    inside = alt.YOffset("name:N", sort=names, scale=scale)
    middle = alt.YOffset("name:N", sort=names, scale=scale, bandPosition=0.5)
    x = replace(x, ticks=alt.Axis(tickCount=TICKS, titleAnchor="end"))  # there is no space for the title in the middle
    bars = _bars(base, company, frame, x, more).encode(yOffset=inside)
    layers = [bars, _group_names(base, frame), _bar_names(base, frame).encode(yOffset=middle)]
    if (known := table[table["low"].notna()]).size:
        rules = base.properties(data=known).mark_rule(strokeWidth=1.5, color=PALETTES[frame.theme].text)
        tooltips = score_tooltips(frame, more)
        layers.insert(1, rules.encode(x=x.x("low"), x2="high:Q", yOffset=middle, tooltip=tooltips))
    return style_chart(alt.LayerChart(layer=layers), len(groups) * step + FOOT, frame.theme)


def opacities(methods: Sequence[str]) -> list[float]:
    """Return the opacity of each method's bars."""
    return [CHANCE if row is None else FULL[row % len(FULL)] for row in style_rows(methods)]


def _group_axis(groups: Sequence[str], name: float) -> alt.Y:
    """Return the axis of the groups. `name`: the space for a group's name above its bars, as a share of the group."""
    scale = alt.Scale(domain=list(groups), paddingInner=name, paddingOuter=name / 2, align=1)
    room = alt.Axis(labels=False, ticks=False, domain=False, grid=False, minExtent=BESIDE)
    return alt.Y(f"{GROUP}:N", sort=list(groups), title=None, axis=room, scale=scale)


def _bars(
    base: alt.Chart, company: Sequence[str], frame: ChartFrame, x: ChartAxis, more: Mapping[str, str]
) -> alt.Chart:  # fmt: skip
    click = click_selection()
    opaque, edges = frame.scale(company, opacities(company)), frame.scale(company, dashes(company))
    return (
        base.mark_bar(height=alt.RelativeBandSize(1), stroke=PALETTES[frame.theme].text)
        .encode(
            x=x.x("value"),
            color=frame.color(company, None),
            opacity=alt.Opacity("name:N", scale=opaque, legend=None),
            strokeDash=alt.StrokeDash("name:N", scale=edges, legend=None),
            strokeWidth=alt.when(click).then(alt.value(4)).otherwise(alt.value(1)),
            tooltip=score_tooltips(frame, more),
        )
        .add_params(click)
    )


def _bar_names(base: alt.Chart, frame: ChartFrame) -> alt.Chart:
    """Return the names of the methods, to the left of their bars."""
    names = base.mark_text(
        align="right", baseline="middle", fontSize=LETTERS, limit=BESIDE - 8, color=PALETTES[frame.theme].text
    )
    return names.encode(x=alt.value(-6), text="name:N")


def _group_names(base: alt.Chart, frame: ChartFrame) -> alt.Chart:
    """Return the names of the groups, each once, above its first bar."""
    names = base.transform_aggregate(groupby=[GROUP]).mark_text(
        align="left", baseline="bottom", dy=-4, fontSize=13, fontWeight=600, color=PALETTES[frame.theme].text
    )
    return names.encode(x=alt.value(6 - BESIDE), text=f"{GROUP}:N", y=alt.Y(f"{GROUP}:N", bandPosition=0))


def scatter_chart(
    pairs: Sequence[ScorePair], company: Sequence[str], frame: ChartFrame, log: bool = False
) -> alt.LayerChart:  # fmt: skip
    """Chart of two metrics against each other, with a point per method and its 95% intervals as a cross.

    `pairs`: the scores of one model. `log`: whether the x axis is logarithmic, as far as values are above 0.
    """
    drawn = [one for one in pairs if one.x.value is not None]
    if not drawn:
        return blank_chart(frame)
    x, y = drawn[0].x.metric, drawn[0].y.metric
    at = [one.x for one in drawn]
    across = log_axis(axis_title(x), _ends(at)) if log else linear_axis(axis_title(x), range_of(at))
    up = linear_axis(axis_title(y), frame.value_range or range_of(one.y for one in drawn))
    return _crosses(pd.DataFrame([_pair_row(one, frame) for one in drawn]), company, frame, across, up, metric(x).title)


def scatter_table(pairs: Sequence[ScorePair], frame: ChartFrame) -> pd.DataFrame:
    """Return a row per method, even without values: the metric on the y axis, and the metric on the x axis."""
    return pd.DataFrame(
        [table_row(one.y, frame, {metric(one.x.metric).title: round_number(one.x.value)}) for one in pairs]
    )


def _crosses(
    table: pd.DataFrame, company: Sequence[str], frame: ChartFrame, x: ChartAxis, y: ChartAxis, across: str
) -> alt.LayerChart:
    methods, click = frame.methods_in(company, table), click_selection()
    legend = frame.legend(methods, "points")
    base = alt.Chart(table).encode(color=frame.color(company, legend))
    whiskers = {
        "low": {"x": x.x("x"), "y": y.y("low"), "y2": "high:Q"},
        "left": {"x": x.x("left"), "x2": "right:Q", "y": y.y("value")},
    }
    layers = [
        base.properties(data=known).mark_rule(strokeWidth=1.5, opacity=0.7).encode(**places)
        for end, places in whiskers.items()
        if (known := table[table[end].notna()]).size
    ]
    tooltips = score_tooltips(frame, {"across": across, "around": f"{across}, 95% interval"})
    points = base.mark_point(filled=True, opacity=1).encode(
        x=x.x("x"), y=y.y("value"), size=point_size(click), shape=frame.shape(company, legend), tooltip=tooltips
    )
    chart = alt.LayerChart(layer=[*layers, points.add_params(click)])
    return style_chart(chart, frame.height(methods), frame.theme)


def _pair_row(pair: ScorePair, frame: ChartFrame) -> dict[str, object]:
    value, (left, right) = pair.x.value, pair.x.interval or (None, None)
    assert value is not None
    across = {"x": value, "left": left, "right": right, "across": plain(value), "around": interval_text(pair.x)}
    return {**chart_row(pair.y, frame), **across}
