"""Charts of a study of guesses: how often people are right, what explanations add, and whether people know."""

from __future__ import annotations

import altair as alt
import pandas as pd

from components.charts import finished, interval_chart
from components.numbers import percent, plain, signed
from components.palette import PALETTES, Theme
from components.results.charts import CHART_HEIGHT, Span
from engine.study.forward.guesses import SUREST, WITHOUT
from engine.study.forward.summary import ForwardSummary
from engine.study.ratings.partial_order import Interval

POINTS = 100
"""Percentage points of a share."""
ROOM = 5


def accuracy_chart(found: ForwardSummary, theme: Theme) -> alt.LayerChart:
    """How often people guess right in each condition; what is without an explanation is shaded."""
    axis = alt.X("Low:Q", title="right guesses", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    table = accuracy_rows(found)
    shaded = WITHOUT if WITHOUT in set(table["Method"]) else None
    return interval_chart(table, _names(found), ("Accuracy", "right"), axis, shaded, theme)


def gain_chart(found: ForwardSummary, theme: Theme) -> alt.LayerChart:
    """What each explanation adds to none, in percentage points, with a line at nothing."""
    table = gain_rows(found)
    axis = alt.X("Low:Q", title="percentage points more right", scale=alt.Scale(domain=list(_span(table)), nice=False))
    chart = interval_chart(table, _names(found), ("Gain", "gain"), axis, None, theme)
    nothing = alt.Chart(pd.DataFrame({"x": [0]})).mark_rule(strokeDash=[4, 4], color=PALETTES[theme].muted)
    chart.layer = [nothing.encode(x="x:Q"), *chart.layer]
    return chart


def sureness_chart(found: ForwardSummary, theme: Theme) -> alt.LayerChart:
    """How often the guesses of each sureness are right, with their intervals."""
    table = sureness_rows(found)
    scale = alt.Scale(domain=list(range(1, SUREST + 1)))
    base = alt.Chart(table).encode(x=alt.X("Sure:O", title="how sure", scale=scale, axis=alt.Axis(labelAngle=0)))
    share = alt.Y("Low:Q", title="right guesses", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    tips = [alt.Tooltip(f"{name}:N") for name in ("Sure", "right", "interval", "guesses")]
    layers = [
        base.mark_rule(strokeWidth=4, strokeCap="round", color=PALETTES[theme].muted).encode(
            y=share, y2="High:Q", tooltip=tips
        ),
        base.mark_line(strokeDash=[4, 4]).encode(y="Accuracy:Q"),
        base.mark_point(filled=True, opacity=1, size=130).encode(y="Accuracy:Q", tooltip=tips),
    ]
    return finished(alt.LayerChart(layer=layers), CHART_HEIGHT, theme)


def accuracy_rows(found: ForwardSummary) -> pd.DataFrame:
    """A row a condition with guesses: what the chart needs, and what hovering tells."""
    return pd.DataFrame(
        [
            {
                "Method": one.name,
                "Accuracy": one.share.accuracy,
                "Low": one.share.interval[0],
                "High": one.share.interval[1],
                "right": f"{_placebo(found, one.name)}{percent(one.share.accuracy)}",
                "interval": f"{percent(one.share.interval[0])} to {percent(one.share.interval[1])}",
                "guesses": f"{one.share.guesses:,}",
            }
            for one in found.conditions
            if one.share
        ]
    )


def gain_rows(found: ForwardSummary) -> pd.DataFrame:
    """The same of what explanations add, in percentage points."""
    return pd.DataFrame(
        [
            {
                "Method": one.name,
                "Gain": POINTS * one.gain.accuracy,
                "Low": POINTS * one.gain.interval[0],
                "High": POINTS * one.gain.interval[1],
                "gain": f"{_placebo(found, one.name)}{signed(POINTS * one.gain.accuracy)}",
                "interval": _ends(one.gain.interval),
            }
            for one in found.conditions
            if one.gain
        ]
    )


def sureness_rows(found: ForwardSummary) -> pd.DataFrame:
    """A row for each level of sureness that was used."""
    return pd.DataFrame(
        [
            {
                "Sure": level,
                "Accuracy": share.accuracy,
                "Low": share.interval[0],
                "High": share.interval[1],
                "right": percent(share.accuracy),
                "interval": f"{percent(share.interval[0])} to {percent(share.interval[1])}",
                "guesses": f"{share.guesses:,}",
            }
            for level, share in found.by_sureness.items()
        ]
    )


def _names(found: ForwardSummary) -> list[str]:
    return [one.name for one in found.conditions]


def _placebo(found: ForwardSummary, name: str) -> str:
    return "placebo, " if name == found.placebo else ""


def _span(table: pd.DataFrame) -> Span:
    """All intervals, and nothing."""
    return min(float(table["Low"].min()), 0.0) - ROOM, max(float(table["High"].max()), 0.0) + ROOM


def _ends(interval: Interval) -> str:
    low, high = (POINTS * end for end in interval)
    return f"{plain(low)} to {plain(high)}"
