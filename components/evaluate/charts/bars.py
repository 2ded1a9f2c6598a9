"""Bars in groups, a method each, with a rule for the 95 % interval: they lie, each with its name before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import altair as alt
import pandas as pd

from components.charts import COLOURS, dashes, finished
from components.evaluate.charts.axes import TICKS, Axis
from components.evaluate.charts.frame import FOOT, Frame, picked
from components.evaluate.charts.words import tips
from components.palette import PALETTES

GROUP = "group"
"""The column of the group's name, which stands above its bars."""
BAR, NAME = 17, 34
"""Height in pixels: of a bar, of a group's name with the room above it."""
FULL, CHANCE = (0.8, 0.6, 0.45), 0.3
"""How opaque a bar is: at first, and each time that the colours come again; random's."""
BESIDE, LETTERS = 132, 11.5
"""Of a bar's name in pixels: the room for it, and the size of its letters."""


def bar_chart(
    table: pd.DataFrame, company: Sequence[str], frame: Frame, x: Axis, told: Mapping[str, str]
) -> alt.LayerChart:
    """`table`: a row a bar, as `record` makes it, with its `GROUP`; groups come in the order of the table.

    The axis must hold 0, from which the bars start: a bar's length is its value. `told`: more columns on hovering.
    """
    seen = frame.seen(company, table)
    groups, names = list(dict.fromkeys(table[GROUP])), [frame.title(method) for method in seen]
    step = len(names) * BAR + NAME
    base = alt.Chart(table).encode(y=_of_groups(groups, NAME / step))
    scale = alt.Scale(domain=names, paddingInner=0.15)
    inside = alt.YOffset("name:N", sort=names, scale=scale)
    middle = alt.YOffset("name:N", sort=names, scale=scale, bandPosition=0.5)
    x = replace(x, ticks=alt.Axis(tickCount=TICKS, titleAnchor="end"))  # its words have no room in the middle
    bars = _bars(base, company, frame, x, told).encode(yOffset=inside)
    layers = [bars, _names(base, frame), _methods(base, frame).encode(yOffset=middle)]
    if (sure := table[table["low"].notna()]).size:
        rules = base.properties(data=sure).mark_rule(strokeWidth=1.5, color=PALETTES[frame.theme].text)
        layers.insert(1, rules.encode(x=x.x("low"), x2="high:Q", yOffset=middle, tooltip=tips(frame, told)))
    return finished(alt.LayerChart(layer=layers), len(groups) * step + FOOT, frame.theme)


def _of_groups(groups: Sequence[str], name: float) -> alt.Y:
    """`name`: the room for a group's name above its bars, as a share of the group."""
    scale = alt.Scale(domain=list(groups), paddingInner=name, paddingOuter=name / 2, align=1)
    room = alt.Axis(labels=False, ticks=False, domain=False, grid=False, minExtent=BESIDE)
    return alt.Y(f"{GROUP}:N", sort=list(groups), title=None, axis=room, scale=scale)


def _bars(base: alt.Chart, company: Sequence[str], frame: Frame, x: Axis, told: Mapping[str, str]) -> alt.Chart:
    click, ranked = picked(), frame.ranked(company)
    opaque, edges = frame.names(company, full(ranked)), frame.names(company, dashes(ranked))
    return (
        base.mark_bar(height=alt.RelativeBandSize(1), stroke=PALETTES[frame.theme].text)
        .encode(
            x=x.x("value"),
            color=frame.colour(company, None),
            opacity=alt.Opacity("name:N", scale=opaque, legend=None),
            strokeDash=alt.StrokeDash("name:N", scale=edges, legend=None),
            strokeWidth=alt.when(click).then(alt.value(4)).otherwise(alt.value(1)),
            tooltip=tips(frame, told),
        )
        .add_params(click)
    )


def full(methods: Sequence[str]) -> list[float]:
    """How opaque each method's bars are."""
    return [
        CHANCE if method == "random" else FULL[place // COLOURS % len(FULL)] for place, method in enumerate(methods)
    ]


def _methods(base: alt.Chart, frame: Frame) -> alt.Chart:
    """What each bar is of, to its left."""
    words = base.mark_text(
        align="right", baseline="middle", fontSize=LETTERS, limit=BESIDE - 8, color=PALETTES[frame.theme].text
    )
    return words.encode(x=alt.value(-6), text="name:N")


def _names(base: alt.Chart, frame: Frame) -> alt.Chart:
    """The name of each group, once, above its first bar."""
    words = base.transform_aggregate(groupby=[GROUP]).mark_text(
        align="left", baseline="bottom", dy=-4, fontSize=13, fontWeight=600, color=PALETTES[frame.theme].text
    )
    return words.encode(x=alt.value(6 - BESIDE), text=f"{GROUP}:N", y=alt.Y(f"{GROUP}:N", bandPosition=0))
