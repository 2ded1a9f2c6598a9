"""Common parts of charts: titles, colors, dashes and shapes of methods, legends, axes, and clicks."""

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
"""Styles of methods, the same on all pages: the place in a row gives the color, and the row gives the dash and
shape."""
COLORS = len(METHOD_STYLES[0])
"""Number of method colors. The last color of `CHART_COLORS` is reserved for random."""
SOLID, DASHED, DASH_DOT, DOTTED = [1, 0], [9, 3], [9, 3, 2, 3], [2, 3]
DASHES = (SOLID, DASHED, DASH_DOT, [14, 4], [9, 2, 2, 2, 2, 2])
SHAPES, CHANCE = ("circle", "square", "triangle-up", "diamond", "triangle-down"), "cross"
"""Shapes of points, by the row of the method; and the shape of random."""
PICKED = "picked"
FIELDS = ("model", "method", "metric", "percent", "slice")
"""Fields of the clicked point in the selection `PICKED`."""
PLOT, LEGEND_ROW, FOOT = 320, 22, 80
"""Heights in pixels: of the plot on a phone, of a row of the legend, and of the axis with its title."""
FOOT_PADDING = 4
"""Padding below a chart in pixels. Streamlit's own padding of 20 looks empty."""
LABEL = 210
"""Width in pixels at which a name in a legend is cut."""
POINT, PICKED_POINT = 70, 280
"""Areas in square pixels: of a point, and of the clicked point."""
NOTHING = "Nothing to draw: no example has a value."
BLANK_HEIGHT = 80
BEYOND = 1.3
"""Factor by which a logarithmic axis extends beyond its points."""
FINE = (1, 2, 5)
"""Ticks of each power of ten, if few powers are visible."""
FEW = 2
TICKS = 8
"""Approximate number of ticks of a linear axis."""
PLAIN = "format(datum.value, ',')"
"""Vega expression that labels each tick with the plain number: 0.001, 1,000."""

Symbols = Literal["stroke", "points"]
AxisRange = tuple[int | float, int | float]


@dataclass(frozen=True)
class ChartFrame:
    """Common settings of the charts of a page.

    `titles`: of the methods. `methods`: the methods drawn, None for all. `slice`: name of the slice of the examples.
    `value_range`: ends of the value axis, so that charts side by side can be compared.
    """

    titles: Mapping[str, str]
    theme: Theme = "light"
    methods: tuple[str, ...] | None = None
    slice: str = ""
    value_range: AxisRange | None = None

    def filter(self, models: Sequence[str] | None = None) -> ScoreFilter:
        """Return the filter of scores for a chart of these models."""
        return ScoreFilter(models, self.methods)

    def title(self, method: str) -> str:
        """Return the display name of a method."""
        return self.titles.get(method, method)

    def drawn_methods(self, company: Sequence[str]) -> list[str]:
        """Return the methods of `company` that may be drawn. `company`: all evaluated methods."""
        return [method for method in company if self.methods is None or method in self.methods]

    def methods_in(self, company: Sequence[str], table: pd.DataFrame) -> list[str]:
        """Return the methods that have a row in the table of a chart; the legend names only these."""
        there = set(table["method"])
        return [method for method in self.drawn_methods(company) if method in there]

    def height(self, methods: Sequence[str]) -> int:
        """Return the height in pixels for a one-column legend below the plot; with more columns the plot is higher."""
        return PLOT + FOOT + LEGEND_ROW * len(methods)

    def legend(self, methods: Sequence[str], symbols: Symbols = "stroke") -> alt.Legend:
        """Return the legend below the chart, for these methods only. `symbols`: "points" for the chart's shapes."""
        legend = line_legend(alt.ExprRef(LEGEND_COLUMNS), LABEL)
        legend.values, legend.symbolOpacity = [self.title(method) for method in methods], 1
        if symbols == "points":
            legend.symbolSize, legend.symbolStrokeWidth, legend.symbolType = POINT, 1.5, alt.Undefined
        return legend

    def scale(self, company: Sequence[str], range: Sequence[Any]) -> alt.Scale:
        """Return a scale with a value of `range` for each method of `company`."""
        # The type is explicit because a scale of opacities would interpolate between the ends of the range.
        return alt.Scale(type="ordinal", domain=[self.title(method) for method in company], range=list(range))

    def color(self, company: Sequence[str], legend: alt.Legend | None) -> alt.Color:
        """Return the encoding of the methods' colors."""
        scale = self.scale(company, method_colors(company, self.theme))
        return alt.Color("name:N", scale=scale, title=None, legend=legend)

    def dash(self, company: Sequence[str], legend: alt.Legend | None) -> alt.StrokeDash:
        """Return the encoding of the methods' dashes, dots for random."""
        scale = self.scale(company, dashes(company))
        return alt.StrokeDash("name:N", scale=scale, title=None, legend=legend)

    def shape(self, company: Sequence[str], legend: alt.Legend | None) -> alt.Shape:
        """Return the encoding of the methods' shapes, a cross for random."""
        scale = self.scale(company, shapes(company))
        return alt.Shape("name:N", scale=scale, title=None, legend=legend)


def method_of(name: str) -> str:
    """Return the id of a method given by id or title, even with a variant's number; `name` itself if unknown."""
    titles = {method.title: id for kind in EXPLAINERS for id, method in all_explainers(kind).items()}
    if name in titles.values():
        return name
    known = [text for text in (*titles, *titles.values()) if name.startswith(text)]
    longest = max(known, key=len, default=name)
    return titles.get(longest, longest)


def style_place(method: str) -> int:
    """Return the index of a method's style: that of the table, else a free one chosen by the method's name.

    A method of a plugin or an imported set keeps its style whichever other methods exist, unless two want the same:
    then the later one takes the next free style, as long as there is one.
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
    """Return the color of each method, given by id or title. It does not depend on the other methods drawn."""
    colors, methods = CHART_COLORS[theme], map(method_of, names)
    return [colors[-1 if method == RANDOM else style_place(method) % COLORS] for method in methods]


def style_rows(names: Sequence[str]) -> list[int | None]:
    """Return the index of the dash and shape of each method, None for random."""
    methods = map(method_of, names)
    return [None if method == RANDOM else style_place(method) // COLORS % len(DASHES) for method in methods]


def dashes(names: Sequence[str]) -> list[list[int]]:
    """Return the dash of each method's line, dots for random."""
    return [DOTTED if row is None else DASHES[row] for row in style_rows(names)]


def dash_at(place: int) -> list[int]:
    """Return the dash of a line by its place, for lines of models, which have the theme's colors in order."""
    return DASHES[place // len(CHART_COLORS["light"]) % len(DASHES)]


def shapes(names: Sequence[str]) -> list[str]:
    """Return the shape of each method's points, a cross for random."""
    return [CHANCE if row is None else SHAPES[row] for row in style_rows(names)]


def line_legend(columns: int | alt.ExprRef, label: int) -> alt.Legend:
    """Return the legend below a chart of lines. `label`: width in pixels at which a name is cut."""
    return alt.Legend(
        orient="bottom", columns=columns, labelLimit=label, symbolType="stroke", symbolSize=420, symbolStrokeWidth=2.5
    )


def style_chart(chart: alt.LayerChart, height: int, theme: Theme) -> alt.LayerChart:
    """Return the chart with this height and with text that is legible in the theme."""
    text = PALETTES[theme].muted  # Streamlit's own gray is too faint to read on a light ground
    return (
        chart.properties(height=height, padding={"left": 0, "top": 0, "right": 0, "bottom": FOOT_PADDING})
        .configure_axis(labelColor=text, titleColor=text)
        .configure_legend(labelColor=text)
    )


def blank_chart(frame: ChartFrame) -> alt.LayerChart:
    """Return a chart with only a sentence, for missing values. It accepts clicks as other charts do, without effect."""
    text = alt.Chart(pd.DataFrame({"words": [NOTHING]})).mark_text(fontSize=14, color=PALETTES[frame.theme].muted)
    layer = text.encode(text="words:N").add_params(click_selection())
    return style_chart(alt.LayerChart(layer=[layer]), BLANK_HEIGHT, frame.theme)


def click_selection() -> alt.Parameter:
    """Return the selection of a point by a click, named `PICKED`; `point_size` enlarges the clicked point."""
    return alt.selection_point(name=PICKED, fields=list(FIELDS), empty=False)


def point_size(click: alt.Parameter) -> Any:
    """Return the size of each point: larger for the clicked point."""
    return alt.when(click).then(alt.value(PICKED_POINT)).otherwise(alt.value(POINT))


@dataclass(frozen=True)
class ChartAxis:
    """Title, ends and ticks of an axis, the same for all layers on it. `title`: one string per line."""

    title: Sequence[str]
    scale: alt.Scale
    ticks: alt.Axis = field(default_factory=alt.Axis)

    def x(self, column: str) -> alt.X:
        """Return the encoding of a column on the horizontal axis."""
        return alt.X(f"{column}:Q", title=list(self.title), scale=self.scale, axis=self.ticks)

    def y(self, column: str) -> alt.Y:
        """Return the encoding of a column on the vertical axis."""
        return alt.Y(f"{column}:Q", title=list(self.title), scale=self.scale, axis=self.ticks)


def linear_axis(title: Sequence[str], ends: AxisRange | None) -> ChartAxis:
    """Return a linear axis between two ends, or with automatic ends for None."""
    scale = alt.Scale(zero=False) if ends is None else alt.Scale(domain=list(ends), nice=False)
    return ChartAxis(title, scale, alt.Axis(tickCount=TICKS))


def log_axis(title: Sequence[str], values: Sequence[int | float]) -> ChartAxis:
    """Return a logarithmic axis around these values. 0 has no logarithm and is drawn at the left end."""
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
