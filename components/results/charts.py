"""Charts of a study's results. Each draws one table of `result_tables`; a method keeps its colour in all of them."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from components.charts import DOTTED, SOLID, finished, interval_chart, line_legend
from components.numbers import plain
from components.palette import PALETTES, Theme
from components.results.tables import by_skill, course_table, power_table, time_table
from components.results.words import rank_text
from engine.study.ratings.headline import Rating
from engine.study.ratings.summary import Summary

CHART_HEIGHT = 320
ROOM = 0.04
"""Beside the ends of the intervals, as a share of what they span."""
LEGEND_COLUMNS, LEGEND_LABEL = 2, 150
"""Two columns fit on a telephone."""

Span = tuple[int | float, int | float]


def span_of(*settings: Sequence[Rating]) -> Span:
    """From the lowest end of an interval to the highest, so that charts beside each other can be compared."""
    ends = [end for ratings in settings for rating in ratings for end in rating.interval]
    room = ROOM * (max(ends) - min(ends))
    return min(ends) - room, max(ends) + room


def intervals_chart(
    ratings: Sequence[Rating], methods: Sequence[str], placebo: str | None, span: Span, theme: Theme
) -> alt.LayerChart:
    """A point and its interval a method, the best on top; what the placebo covers is shaded.

    `methods`: in the order that gives them their colours.
    """
    axis = alt.X("Low:Q", title="skill", scale=alt.Scale(domain=list(span), nice=False))
    return interval_chart(interval_rows(ratings, placebo), methods, ("Skill", "rank"), axis, placebo, theme)


def interval_rows(ratings: Sequence[Rating], placebo: str | None) -> pd.DataFrame:
    """A row a method, the best first: what the chart needs, and what hovering tells."""
    return pd.DataFrame(
        [
            {
                "Method": one.method,
                "Skill": one.skill,
                "Low": one.interval[0],
                "High": one.interval[1],
                "rank": f"{'placebo, ' if one.method == placebo else ''}rank {rank_text(one)}",
                "skill": plain(one.skill),
                "interval": f"{plain(one.interval[0])} to {plain(one.interval[1])}",
            }
            for one in by_skill(ratings)
        ]
    )


def course_chart(found: Summary, theme: Theme) -> alt.LayerChart:
    """A line a method over the votes in time order; the placebo dotted. Hovering tells the values."""
    names = list(found.methods)
    long = course_table(found).melt("Votes", names, var_name="Method", value_name="Skill")
    long["skill"] = [plain(value) for value in long["Skill"]]
    legend = line_legend(LEGEND_COLUMNS, LEGEND_LABEL)
    dashes = [DOTTED if name == found.placebo else SOLID for name in names]
    base = alt.Chart(long).encode(
        x=alt.X("Votes:Q", title="votes"),
        y=alt.Y("Skill:Q", title="skill"),
        color=alt.Color("Method:N", sort=names, scale=alt.Scale(domain=names), title=None, legend=legend),
    )
    dashed = alt.StrokeDash(
        "Method:N", sort=names, scale=alt.Scale(domain=names, range=dashes), title=None, legend=legend
    )
    tips = [alt.Tooltip("Method:N"), alt.Tooltip("Votes:Q"), alt.Tooltip("skill:N")]
    points = base.mark_point(filled=True, opacity=0, size=40).encode(tooltip=tips)
    chart = alt.LayerChart(layer=[base.mark_line(strokeWidth=2.2).encode(strokeDash=dashed), points])
    return finished(chart, CHART_HEIGHT, theme)


def power_chart(found: Summary, theme: Theme) -> alt.LayerChart:
    """Steps of how many pairs are expected to be told apart; a line where the study stands."""
    table, pairs = power_table(found), len(found.needed)
    base = alt.Chart(table).encode(
        x=alt.X("Votes:Q", title="votes in all", scale=alt.Scale(zero=True)),
        y=alt.Y(
            "Pairs told apart:Q",
            title=f"pairs told apart, of {pairs}",
            scale=alt.Scale(domain=[0, pairs]),
            axis=alt.Axis(tickMinStep=1, format="d"),
        ),
    )
    now = alt.Chart(pd.DataFrame({"Votes": [found.votes], "words": [f"now: {found.votes:,}"]})).encode(x="Votes:Q")
    muted = PALETTES[theme].muted
    layers = [
        base.mark_line(interpolate="step-after", strokeWidth=2.2),
        base.mark_point(filled=True, opacity=1, size=45).encode(tooltip=[f"{name}:Q" for name in table.columns]),
        now.mark_rule(strokeDash=[4, 4], color=muted),
        now.mark_text(align="left", dx=5, color=muted).encode(text="words:N", y=alt.value(8)),
    ]
    return finished(alt.LayerChart(layer=layers), CHART_HEIGHT, theme)


def times_chart(seconds: Sequence[int | float], theme: Theme) -> alt.LayerChart:
    """How many votes took how long."""
    table = time_table(seconds)
    base = alt.Chart(table).encode(
        x=alt.X("Seconds:N", sort=table["Seconds"].tolist(), title="seconds a vote", axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("Votes:Q", title="votes", axis=alt.Axis(tickMinStep=1, format="d")),
        tooltip=["Seconds:N", "Votes:Q"],
    )
    return finished(alt.LayerChart(layer=[base.mark_bar()]), CHART_HEIGHT, theme)
