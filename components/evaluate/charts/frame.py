"""What charts of an evaluation are told besides its numbers, and what they have in common: colours, legend, click."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import pandas as pd

from components.charts import COLOURS, dashes, line_legend
from components.palette import Theme
from engine.evaluation.views.points import Wanted

PICKED = "picked"
FIELDS = ("model", "method", "metric", "percent", "slice")
"""The name of the click, and what it says of its point."""
PLOT, LEGEND_ROW, FOOT = 320, 22, 80
"""Height in pixels: of what is drawn on a telephone, of a row of the legend, of the axis with its words."""
COLUMNS = "width < 460 ? 1 : width < 700 ? 2 : width < 900 ? 3 : 4"
"""Of the legend, by the width of what is drawn."""
LABEL = 210
SHAPES, CHANCE = ("circle", "square", "triangle-up"), "cross"
"""Of points: the next shape when the colours come again; random's."""
POINT, PICKED_POINT = 70, 280
"""Areas in square pixels: of a point, of the one that was clicked."""

Symbols = Literal["stroke", "points"]
Span = tuple[int | float, int | float]


@dataclass(frozen=True)
class Frame:
    """`titles`: of the methods. `methods`: those drawn, None for all. `order`: of all methods there are, by which each
    has its colour in every chart where no other in the company has it; that of `titles` where it is empty.

    `slice`: the name of the slice that the evaluation is cut to. `span`: where the axis of the values ends, so that
    charts beside each other can be compared.
    """

    titles: Mapping[str, str]
    theme: Theme = "light"
    methods: tuple[str, ...] | None = None
    order: tuple[str, ...] = ()
    slice: str = ""
    span: Span | None = None

    def wanted(self, models: Sequence[str] | None = None) -> Wanted:
        """What a view is asked for."""
        return Wanted(models, self.methods)

    def title(self, method: str) -> str:
        """What a method is called."""
        return self.titles.get(method, method)

    def drawn(self, company: Sequence[str]) -> list[str]:
        """The methods that may be drawn, of all that were evaluated."""
        return [method for method in company if self.methods is None or method in self.methods]

    def height(self, seen: Sequence[str]) -> int:
        """Of a chart in pixels, with its legend below it in one column; where there are more, the plot is higher."""
        return PLOT + FOOT + LEGEND_ROW * len(seen)

    def seen(self, company: Sequence[str], table: pd.DataFrame) -> list[str]:
        """The methods that have a row in the table of a chart: a legend names no others."""
        there = set(table["method"])
        return [method for method in self.drawn(company) if method in there]

    def legend(self, seen: Sequence[str], symbols: Symbols = "stroke") -> alt.Legend:
        """Below the chart, of the methods seen alone."""
        legend = line_legend(alt.ExprRef(COLUMNS), LABEL)
        legend.values, legend.symbolOpacity = [self.title(method) for method in seen], 1
        return _of_points(legend) if symbols == "points" else legend

    def ranked(self, company: Sequence[str]) -> list[str]:
        """All methods in the order of their colours, which come again only where the company is larger than they."""
        return spread(list(dict.fromkeys([*(self.order or self.titles), *company])), company)

    def names(self, company: Sequence[str], range: Sequence[Any] | None = None) -> alt.Scale:
        """A scale that gives each method its own, of a `range` as `ranked`; the theme's colours where none is given."""
        domain = [self.title(method) for method in self.ranked(company)]
        # By its type: left alone, a scale of opacities takes the ends of the range and what lies between.
        return (
            alt.Scale(domain=domain) if range is None else alt.Scale(type="ordinal", domain=domain, range=list(range))
        )

    def colour(self, company: Sequence[str], legend: alt.Legend | None) -> alt.Color:
        return alt.Color("name:N", scale=self.names(company), title=None, legend=legend)

    def dash(self, company: Sequence[str], legend: alt.Legend | None) -> alt.StrokeDash:
        """Dashes where the colours come again, dots for random."""
        return alt.StrokeDash(
            "name:N", scale=self.names(company, dashes(self.ranked(company))), title=None, legend=legend
        )

    def shape(self, company: Sequence[str], legend: alt.Legend | None) -> alt.Shape:
        """Another shape where the colours come again, a cross for random."""
        scale = self.names(company, shapes(self.ranked(company)))
        return alt.Shape("name:N", scale=scale, title=None, legend=legend)


def spread(order: Sequence[str], company: Sequence[str]) -> list[str]:
    """All of `order`, so that those of the company have places of different colours as far as there are as many.

    Each is at the place of its colour by `order`, or at the next free one where another of the company has that.
    Random, which is in every company, comes first.
    """
    places: dict[int, str] = {}
    for method in sorted(set(company), key=lambda method: (method != "random", order.index(method))):
        start, usual = len(places) // COLOURS * COLOURS, order.index(method) % COLOURS
        free = [place for place in range(start, min(start + COLOURS, len(order))) if place not in places]
        places[min(free, key=lambda place: (place - usual) % COLOURS)] = method
    rest = iter([method for method in order if method not in company])
    return [places[place] if place in places else next(rest) for place in range(len(order))]


def shapes(company: Sequence[str]) -> list[str]:
    """The shape of each method's points."""
    return [
        CHANCE if method == "random" else SHAPES[place // COLOURS % len(SHAPES)] for place, method in enumerate(company)
    ]


def picked() -> alt.Parameter:
    """The click on a point, by its name `PICKED`; what is picked grows by `picked_size`."""
    return alt.selection_point(name=PICKED, fields=list(FIELDS), empty=False)


def picked_size(click: alt.Parameter) -> Any:
    """How large a point is."""
    return alt.when(click).then(alt.value(PICKED_POINT)).otherwise(alt.value(POINT))


def _of_points(legend: alt.Legend) -> alt.Legend:
    """In the shapes of the chart."""
    legend.symbolSize, legend.symbolStrokeWidth, legend.symbolType = POINT, 1.5, alt.Undefined
    return legend
