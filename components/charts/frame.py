"""Common parts of charts: methods with their titles, colors, dashes and shapes, legends, axes, clicks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import altair as alt
import pandas as pd

from components.charts.files import LEGEND_COLUMNS
from components.palette import PALETTES, Theme
from engine.evaluation.scores import ScoreFilter
from engine.experiments.options import RANDOM

COLORS = 8
"""The theme has so many colors for lines; after that they come again with another dash."""
SOLID, DASHED, DASH_DOT, DOTTED = [1, 0], [9, 3], [9, 3, 2, 3], [2, 3]
DASHES = (SOLID, DASHED, DASH_DOT)
SHAPES, CHANCE = ("circle", "square", "triangle-up"), "cross"
"""Of points: the next shape when the colors come again; random's."""
PICKED = "picked"
FIELDS = ("model", "method", "metric", "percent", "slice")
"""The name of the click, and what it says of its point."""
PLOT, LEGEND_ROW, FOOT = 320, 22, 80
"""Height in pixels: of the plot on a telephone, of a row of the legend, of the axis with its title."""
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
    """`titles`: of the methods. `methods`: those drawn, None for all. `order`: of all methods there are, by which each
    has its color in every chart where no other in the company has it; that of `titles` where it is empty.

    `slice`: the name of the slice of the examples. `value_range`: where the axis of the values ends, so that charts
    side by side can be compared.
    """

    titles: Mapping[str, str]
    theme: Theme = "light"
    methods: tuple[str, ...] | None = None
    order: tuple[str, ...] = ()
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

    def color_order(self, company: Sequence[str]) -> list[str]:
        """All methods in the order of their colors, which come again only where the company is larger than they."""
        return spread_colors(list(dict.fromkeys([*(self.order or self.titles), *company])), company)

    def scale(self, company: Sequence[str], range: Sequence[Any] | None = None) -> alt.Scale:
        """A value for each method, of a `range` as `color_order`; the theme's colors where none is given."""
        domain = [self.title(method) for method in self.color_order(company)]
        # By its type: left alone, a scale of opacities takes the ends of the range and what lies between.
        return (
            alt.Scale(domain=domain) if range is None else alt.Scale(type="ordinal", domain=domain, range=list(range))
        )

    def color(self, company: Sequence[str], legend: alt.Legend | None) -> alt.Color:
        """The theme's color of each method."""
        return alt.Color("name:N", scale=self.scale(company), title=None, legend=legend)

    def dash(self, company: Sequence[str], legend: alt.Legend | None) -> alt.StrokeDash:
        """Dashes where the colors come again, dots for random."""
        scale = self.scale(company, dashes(self.color_order(company)))
        return alt.StrokeDash("name:N", scale=scale, title=None, legend=legend)

    def shape(self, company: Sequence[str], legend: alt.Legend | None) -> alt.Shape:
        """Another shape where the colors come again, a cross for random."""
        scale = self.scale(company, shapes(self.color_order(company)))
        return alt.Shape("name:N", scale=scale, title=None, legend=legend)


def spread_colors(order: Sequence[str], company: Sequence[str]) -> list[str]:
    """Reorder `order` so that methods of the company have different colors as far as there are enough.

    Each is at the place of its color by `order`, or at the next free one where another of the company has that.
    Random, which is in every company, comes first.
    """
    places: dict[int, str] = {}
    for method in sorted(set(company), key=lambda method: (method != RANDOM, order.index(method))):
        start, usual = len(places) // COLORS * COLORS, order.index(method) % COLORS
        free = [place for place in range(start, min(start + COLORS, len(order))) if place not in places]
        places[min(free, key=lambda place: (place - usual) % COLORS)] = method
    rest = iter([method for method in order if method not in company])
    return [places[place] if place in places else next(rest) for place in range(len(order))]


def dashes(methods: Sequence[str]) -> list[list[int]]:
    """Solid lines, other dashes each time that the colors come again, dots for random."""
    return [DOTTED if method == RANDOM else dash_at(place) for place, method in enumerate(methods)]


def dash_at(place: int) -> list[int]:
    """The dashes of a line by its place among all."""
    return DASHES[place // COLORS % len(DASHES)]


def shapes(methods: Sequence[str]) -> list[str]:
    """The shape of each method's points."""
    return [
        CHANCE if method == RANDOM else SHAPES[place // COLORS % len(SHAPES)] for place, method in enumerate(methods)
    ]


def line_legend(columns: int | alt.ExprRef, label: int) -> alt.Legend:
    """The legend of a chart of lines, below it; `label`: pixels after which a name is cut."""
    return alt.Legend(
        orient="bottom", columns=columns, labelLimit=label, symbolType="stroke", symbolSize=420, symbolStrokeWidth=2.5
    )


def style_chart(chart: alt.LayerChart, height: int, theme: Theme) -> alt.LayerChart:
    """The chart at this height, with text that can be read in the theme."""
    text = PALETTES[theme].muted  # Streamlit's own gray is too faint to read on a light ground
    return (
        chart.properties(height=height)
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
