"""Common parts of charts: methods with their titles, colors, dashes and shapes, legends, axes, clicks."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import altair as alt
import pandas as pd

from components.charts.files import LEGEND_COLUMNS
from components.palette import CHART_COLORS, PALETTES, Theme
from engine.evaluation.scores import ScoreFilter
from engine.experiments.options import RANDOM
from engine.registry import EXPLAINERS, all_explainers, method_order

METHOD_STYLES = (
    ("lime", "attention_mean", "gradient_x_input", "kernel_shap", "attention_rollout", "integrated_gradients",
     "gradient"),
    ("occlusion", "attention_last_layer", "smoothgrad", "exact_shapley", "ensemble_top3", "ensemble_all",
     "gradient_l2"),
    ("smat", "attention_head", "attention_x_gradient", "attn_lrp", "attention_logits", "deep_lift",
     "attention_logits_last"),
    ("deconvolution", "grad_cam", "guided_backprop", "gradient_shap", "shapley_sampling", "deep_lift_shap",
     "feature_ablation"),
    ("least_sensitive", "least_complex", "bee", "empirical"),
)  # fmt: skip
"""The color of each method, by its place in a row, and its dash and shape, by its row: the same on all pages."""
COLORS = len(METHOD_STYLES[0])
"""Colors of methods. The last color of `CHART_COLORS` is that of random alone."""
SOLID, DASHED, DASH_DOT, DOTTED = [1, 0], [9, 3], [9, 3, 2, 3], [2, 3]
DASHES = (SOLID, DASHED, DASH_DOT, [14, 4], [9, 2, 2, 2, 2, 2])
SHAPES, CHANCE = ("circle", "square", "triangle-up", "diamond", "triangle-down"), "cross"
"""Shapes of points, by the row of the method; that of random."""
PICKED = "picked"
FIELDS = ("model", "method", "metric", "percent", "slice")
"""The name of the click, and what it says of its point."""
PLOT, LEGEND_ROW, FOOT = 320, 22, 80
"""Height in pixels: of the plot on a telephone, of a row of the legend, of the axis with its title."""
FOOT_PADDING = 4
"""Pixels below a chart; Streamlit's own are 20, and they look empty."""
LABEL = 210
"""Pixels after which a name in a legend is cut."""
POINT, PICKED_POINT = 70, 280
"""Areas in square pixels: of a point, of the one that was clicked."""
NOTHING = "Nothing to draw: no example has a value."
BLANK_HEIGHT = 80
BEYOND = 1.3
"""By which factor a logarithmic axis goes on beyond its points."""
FINE = (1, 2, 5)
"""Ticks of each power of ten, where few powers are in sight."""
FEW = 2
TICKS = 8
"""About so many on a linear axis."""
PLAIN = "format(datum.value, ',')"
"""Each tick as a number of its own: 0.001, 1,000."""

Symbols = Literal["stroke", "points"]
AxisRange = tuple[int | float, int | float]


@dataclass(frozen=True)
class ChartFrame:
    """`titles`: of the methods. `methods`: those drawn, None for all.

    `slice`: the name of the slice of the examples. `value_range`: where the axis of the values ends, so that charts
    side by side can be compared.
    """

    titles: Mapping[str, str]
    theme: Theme = "light"
    methods: tuple[str, ...] | None = None
    slice: str = ""
    value_range: AxisRange | None = None

    def filter(self, models: Sequence[str] | None = None) -> ScoreFilter:
        """The scores that a chart of these models needs."""
        return ScoreFilter(models, self.methods)

    def title(self, method: str) -> str:
        """The name of a method for people."""
        return self.titles.get(method, method)

    def drawn_methods(self, company: Sequence[str]) -> list[str]:
        """The methods that may be drawn, of all that were evaluated."""
        return [method for method in company if self.methods is None or method in self.methods]

    def methods_in(self, company: Sequence[str], table: pd.DataFrame) -> list[str]:
        """The methods that have a row in the table of a chart: a legend names no others."""
        there = set(table["method"])
        return [method for method in self.drawn_methods(company) if method in there]

    def height(self, methods: Sequence[str]) -> int:
        """The height in pixels, with the legend below the plot in one column; with more columns the plot is higher."""
        return PLOT + FOOT + LEGEND_ROW * len(methods)

    def legend(self, methods: Sequence[str], symbols: Symbols = "stroke") -> alt.Legend:
        """Below the chart, of these methods alone; `symbols`: "points" for the shapes of the chart."""
        legend = line_legend(alt.ExprRef(LEGEND_COLUMNS), LABEL)
        legend.values, legend.symbolOpacity = [self.title(method) for method in methods], 1
        if symbols == "points":
            legend.symbolSize, legend.symbolStrokeWidth, legend.symbolType = POINT, 1.5, alt.Undefined
        return legend

    def scale(self, company: Sequence[str], range: Sequence[Any]) -> alt.Scale:
        """A value of the `range` for each method of the company."""
        # By its type: left alone, a scale of opacities takes the ends of the range and what lies between.
        return alt.Scale(type="ordinal", domain=[self.title(method) for method in company], range=list(range))

    def color(self, company: Sequence[str], legend: alt.Legend | None) -> alt.Color:
        """The color of each method."""
        scale = self.scale(company, method_colors(company, self.theme))
        return alt.Color("name:N", scale=scale, title=None, legend=legend)

    def dash(self, company: Sequence[str], legend: alt.Legend | None) -> alt.StrokeDash:
        """The dash of each method, dots for random."""
        scale = self.scale(company, dashes(company))
        return alt.StrokeDash("name:N", scale=scale, title=None, legend=legend)

    def shape(self, company: Sequence[str], legend: alt.Legend | None) -> alt.Shape:
        """The shape of each method, a cross for random."""
        scale = self.scale(company, shapes(company))
        return alt.Shape("name:N", scale=scale, title=None, legend=legend)


def method_of(name: str) -> str:
    """The id of a method by its id or title, also of a variant with a number after it; `name` itself if unknown."""
    titles = {method.title: id for kind in EXPLAINERS for id, method in all_explainers(kind).items()}
    if name in titles.values():
        return name
    known = [text for text in (*titles, *titles.values()) if name.startswith(text)]
    longest = max(known, key=len, default=name)
    return titles.get(longest, longest)


def style_place(method: str) -> int:
    """The place of a method among all styles: that of the table, else one of the free ones by the name.

    A method of a plugin or an imported set keeps its place whichever others there are, unless two want the same: then
    the later one takes the next that is free, as long as there are free ones.
    """
    table = [id for row in METHOD_STYLES for id in row]
    if method in table:
        return table.index(method)
    free = COLORS * len(DASHES) - len(table)
    taken: dict[int, str] = {}
    for other in (*(id for id in method_order() if id not in table and id != RANDOM), method):
        wanted = zlib.crc32(other.encode()) % free
        place = next((at % free for at in range(wanted, wanted + free) if at % free not in taken), wanted)
        if other == method:
            return len(table) + place
        taken[place] = other
    raise AssertionError("the loop ends with the method itself")


def method_colors(names: Sequence[str], theme: Theme) -> list[str]:
    """The color of each method, by its id or title, whichever others are drawn with it."""
    colors, methods = CHART_COLORS[theme], map(method_of, names)
    return [colors[-1 if method == RANDOM else style_place(method) % COLORS] for method in methods]


def style_rows(names: Sequence[str]) -> list[int | None]:
    """The number of the dash and shape of each method, None for random."""
    methods = map(method_of, names)
    return [None if method == RANDOM else style_place(method) // COLORS % len(DASHES) for method in methods]


def dashes(names: Sequence[str]) -> list[list[int]]:
    """The dash of each method's line, dots for random."""
    return [DOTTED if row is None else DASHES[row] for row in style_rows(names)]


def dash_at(place: int) -> list[int]:
    """The dash of a line by its place, where lines are of models and have the theme's colors in order."""
    return DASHES[place // len(CHART_COLORS["light"]) % len(DASHES)]


def shapes(names: Sequence[str]) -> list[str]:
    """The shape of each method's points, a cross for random."""
    return [CHANCE if row is None else SHAPES[row] for row in style_rows(names)]


def line_legend(columns: int | alt.ExprRef, label: int) -> alt.Legend:
    """The legend of a chart of lines, below it; `label`: pixels after which a name is cut."""
    return alt.Legend(
        orient="bottom", columns=columns, labelLimit=label, symbolType="stroke", symbolSize=420, symbolStrokeWidth=2.5
    )


def style_chart(chart: alt.LayerChart, height: int, theme: Theme) -> alt.LayerChart:
    """The chart at this height, with text that can be read in the theme."""
    text = PALETTES[theme].muted  # Streamlit's own gray is too faint to read on a light ground
    return (
        chart.properties(height=height, padding={"left": 0, "top": 0, "right": 0, "bottom": FOOT_PADDING})
        .configure_axis(labelColor=text, titleColor=text)
        .configure_legend(labelColor=text)
    )


def blank_chart(frame: ChartFrame) -> alt.LayerChart:
    """A sentence in the place of a chart without values; it can be clicked as other charts can, and answers nothing."""
    text = alt.Chart(pd.DataFrame({"words": [NOTHING]})).mark_text(fontSize=14, color=PALETTES[frame.theme].muted)
    layer = text.encode(text="words:N").add_params(click_selection())
    return style_chart(alt.LayerChart(layer=[layer]), BLANK_HEIGHT, frame.theme)


def click_selection() -> alt.Parameter:
    """The click on a point, by its name `PICKED`; the point clicked grows by `point_size`."""
    return alt.selection_point(name=PICKED, fields=list(FIELDS), empty=False)


def point_size(click: alt.Parameter) -> Any:
    """The size of each point: a larger one for the point that was clicked."""
    return alt.when(click).then(alt.value(PICKED_POINT)).otherwise(alt.value(POINT))


@dataclass(frozen=True)
class ChartAxis:
    """Title, ends and ticks of an axis, the same for all layers on it. `title`: a line each."""

    title: Sequence[str]
    scale: alt.Scale
    ticks: alt.Axis = field(default_factory=alt.Axis)

    def x(self, column: str) -> alt.X:
        """The column across."""
        return alt.X(f"{column}:Q", title=list(self.title), scale=self.scale, axis=self.ticks)

    def y(self, column: str) -> alt.Y:
        """The column upwards."""
        return alt.Y(f"{column}:Q", title=list(self.title), scale=self.scale, axis=self.ticks)


def linear_axis(title: Sequence[str], ends: AxisRange | None) -> ChartAxis:
    """A linear axis between two ends."""
    scale = alt.Scale(zero=False) if ends is None else alt.Scale(domain=list(ends), nice=False)
    return ChartAxis(title, scale, alt.Axis(tickCount=TICKS))


def log_axis(title: Sequence[str], values: Sequence[int | float]) -> ChartAxis:
    """Powers of ten at equal distances, around these values. 0 has no logarithm: it is at the left end."""
    above = [value for value in values if value > 0] or [1.0]
    low, high, zero = min(above) / BEYOND, max(above) * BEYOND, min(values) <= 0
    ticks = alt.Axis(labelExpr=PLAIN, labelOverlap="greedy", values=_log_ticks(low, high, zero))
    if zero:
        return ChartAxis(title, alt.Scale(type="symlog", constant=low, domain=[0, high], nice=False), ticks)
    return ChartAxis(title, alt.Scale(type="log", domain=[low, high], nice=False), ticks)


def _log_ticks(low: int | float, high: int | float, zero: bool) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = FINE if len(powers) - 2 <= FEW else FINE[:1]
    inside = (step * 10.0**power for power in powers for step in steps)
    return [*([0.0] if zero else []), *(tick for tick in inside if low <= tick <= high)]
