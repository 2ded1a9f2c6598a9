"""Charts of a study's results, each drawn from one table; a method keeps its color in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import altair as alt
import pandas as pd

from components.charts.comparisons import interval_chart
from components.charts.frame import DOTTED, dashes, line_legend, method_colors, style_chart
from components.numbers import percent, plain, signed
from components.palette import PALETTES, Theme, step_of
from components.results.descriptions import rank_span
from components.results.tables import by_skill, course_table, power_table, time_table
from components.widgets.token_map.html import TONES
from engine.study.annotators import SUREST
from engine.study.counted_votes import WITHOUT
from engine.study.guesses import GuessShare, GuessSummary
from engine.study.ratings import Rating
from engine.study.summary import RankingSummary

CHART_HEIGHT = 320
ROOM = 0.04
"""Margin beyond the ends of the intervals, as a share of their range."""
LEGEND_COLUMNS, LEGEND_LABEL = 2, 150
"""Two columns fit on a phone."""
POINTS = 100
"""Percentage points in a share of 1."""
POINTS_ROOM = 5
EVEN = 0.5
WHOLE = alt.Axis(tickMinStep=1, format=",d")
"""An axis of whole numbers."""

Span = tuple[int | float, int | float]


def rating_span(*settings: Sequence[Rating]) -> Span:
    """The range of all intervals, so that charts beside each other share one axis."""
    ends = [end for ratings in settings for rating in ratings for end in rating.interval]
    room = ROOM * (max(ends) - min(ends))
    return min(ends) - room, max(ends) + room


def rating_chart(
    ratings: Sequence[Rating], methods: Sequence[str], placebo: str | None, span: Span, theme: Theme
) -> alt.LayerChart:
    """A point and its interval per method, the best on top; the placebo's interval is shaded.

    `methods`: all of the study.
    """
    axis = alt.X("Low:Q", title="skill", scale=alt.Scale(domain=list(span), nice=False))
    return interval_chart(rating_rows(ratings, placebo), methods, ("Skill", "rank"), axis, placebo, theme)


def rating_rows(ratings: Sequence[Rating], placebo: str | None) -> pd.DataFrame:
    """A row per method, the best first: the data of the chart and of its tooltips."""
    return pd.DataFrame(
        [
            {
                "Method": one.method,
                "Skill": one.skill,
                "Low": one.interval[0],
                "High": one.interval[1],
                "rank": f"{_placebo_prefix(one.method, placebo)}rank {rank_span(one)}",
                "skill": plain(one.skill),
                "interval": f"{plain(one.interval[0])} to {plain(one.interval[1])}",
            }
            for one in by_skill(ratings)
        ]
    )


def course_chart(summary: RankingSummary, theme: Theme) -> alt.LayerChart:
    """A line per method over the votes in time order; the placebo dotted. Tooltips show the values."""
    names = list(summary.methods)
    long = course_table(summary).melt("Votes", names, var_name="Method", value_name="Skill")
    long["skill"] = [plain(value) for value in long["Skill"]]
    legend = line_legend(LEGEND_COLUMNS, LEGEND_LABEL)
    colors = alt.Scale(domain=names, range=method_colors(names, theme))
    lines = [DOTTED if name == summary.placebo else own for name, own in zip(names, dashes(names), strict=True)]
    base = alt.Chart(long).encode(
        x=alt.X("Votes:Q", title="votes", axis=WHOLE),
        y=alt.Y("Skill:Q", title="skill"),
        color=alt.Color("Method:N", sort=names, scale=colors, title=None, legend=legend),
    )
    dashed = alt.StrokeDash(
        "Method:N", sort=names, scale=alt.Scale(domain=names, range=lines), title=None, legend=legend
    )
    tips = [alt.Tooltip("Method:N"), alt.Tooltip("Votes:Q"), alt.Tooltip("skill:N")]
    points = base.mark_point(filled=True, opacity=0, size=40).encode(tooltip=tips)
    chart = alt.LayerChart(layer=[base.mark_line(strokeWidth=2.2).encode(strokeDash=dashed), points])
    return style_chart(chart, CHART_HEIGHT, theme)


def power_chart(summary: RankingSummary, theme: Theme) -> alt.LayerChart:
    """Expected number of pairs with separate intervals as steps; a line marks the current number of votes."""
    table, pairs = power_table(summary), len(summary.needed)
    base = alt.Chart(table).encode(
        x=alt.X("Votes:Q", title="total votes", scale=alt.Scale(zero=True), axis=WHOLE),
        y=alt.Y(
            "Separated pairs:Q",
            title=f"separated pairs, of {pairs}",
            scale=alt.Scale(domain=[0, pairs]),
            axis=WHOLE,
        ),
    )
    now = alt.Chart(pd.DataFrame({"Votes": [summary.votes], "words": [f"now: {summary.votes:,}"]})).encode(x="Votes:Q")
    muted = PALETTES[theme].muted
    layers = [
        base.mark_line(interpolate="step-after", strokeWidth=2.2),
        base.mark_point(filled=True, opacity=1, size=45).encode(tooltip=[f"{name}:Q" for name in table.columns]),
        now.mark_rule(strokeDash=[4, 4], color=muted),
        now.mark_text(align="left", dx=5, color=muted).encode(text="words:N", y=alt.value(8)),
    ]
    return style_chart(alt.LayerChart(layer=layers), CHART_HEIGHT, theme)


def times_chart(seconds: Sequence[int | float], theme: Theme) -> alt.LayerChart:
    """Histogram of the times of votes."""
    table = time_table(seconds)
    base = alt.Chart(table).encode(
        x=alt.X("Seconds:N", sort=table["Seconds"].tolist(), title="seconds per vote", axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("Votes:Q", title="votes", axis=WHOLE),
        tooltip=["Seconds:N", "Votes:Q"],
    )
    return style_chart(alt.LayerChart(layer=[base.mark_bar()]), CHART_HEIGHT, theme)


def wins_html(summary: RankingSummary) -> str:
    """Share of votes that rank the row's method above the column's, as a table with colored cells.

    The best method first: blue above half of the votes, orange below.
    """
    places = {method: summary.methods.index(method) for method in summary.order}
    heads = "".join(f'<th scope="col">{escape(method)}</th>' for method in places)
    rows = "".join(
        f'<tr><th scope="row">{escape(method)}</th>{_win_cells(summary, row, list(places.values()))}</tr>'
        for method, row in places.items()
    )
    return (
        '<div class="xg"><div class="xg-scroll" role="region" tabindex="0" aria-label="Share of votes, row above '
        f'column"><table class="xg-wins"><thead><tr><th scope="col">ranked above</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></div>"
    )


def _win_cells(summary: RankingSummary, row: int, columns: list[int]) -> str:
    return "".join("<td></td>" if column == row else _win_cell(float(summary.wins[row, column])) for column in columns)


def _win_cell(share: float) -> str:
    step = step_of(share - EVEN, EVEN)
    kind = f' class="{TONES["for" if share > EVEN else "against"]}{step}"' if step else ""
    return f"<td{kind}>{100 * share:.0f}%</td>"


def accuracy_chart(summary: GuessSummary, theme: Theme) -> alt.LayerChart:
    """Accuracy of the guesses in each condition; the one without an explanation is shaded."""
    axis = alt.X("Low:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    table = accuracy_rows(summary)
    shaded = WITHOUT if WITHOUT in set(table["Method"]) else None
    return interval_chart(table, _conditions(summary), ("Accuracy", "right"), axis, shaded, theme)


def accuracy_rows(summary: GuessSummary) -> pd.DataFrame:
    """A row per condition with guesses: the data of the chart and of its tooltips."""
    return pd.DataFrame(
        [
            {"Method": one.name, **_share_columns(one.share, _placebo_prefix(one.name, summary.placebo))}
            for one in summary.conditions
            if one.share
        ]
    )


def gain_chart(summary: GuessSummary, theme: Theme) -> alt.LayerChart:
    """Gain of each explanation over none, in percentage points, with a line at 0."""
    table = gain_rows(summary)
    span = [min(float(table["Low"].min()), 0.0) - POINTS_ROOM, max(float(table["High"].max()), 0.0) + POINTS_ROOM]
    axis = alt.X("Low:Q", title="gain in accuracy (percentage points)", scale=alt.Scale(domain=span, nice=False))
    chart = interval_chart(table, _conditions(summary), ("Gain", "gain"), axis, None, theme)
    zero = alt.Chart(pd.DataFrame({"x": [0]})).mark_rule(strokeDash=[4, 4], color=PALETTES[theme].muted)
    chart.layer = [zero.encode(x="x:Q"), *chart.layer]
    return chart


def gain_rows(summary: GuessSummary) -> pd.DataFrame:
    """A row per explanation with a gain, in percentage points."""
    rows = []
    for one in summary.conditions:
        if one.gain:
            gain, low, high = (POINTS * value for value in (one.gain.accuracy, *one.gain.interval))
            rows.append(
                {
                    "Method": one.name,
                    "Gain": gain,
                    "Low": low,
                    "High": high,
                    "gain": f"{_placebo_prefix(one.name, summary.placebo)}{signed(gain)}",
                    "interval": f"{plain(low)} to {plain(high)}",
                }
            )
    return pd.DataFrame(rows)


def sureness_chart(summary: GuessSummary, theme: Theme) -> alt.LayerChart:
    """Accuracy of the guesses by sureness, with intervals."""
    table = sureness_rows(summary)
    scale = alt.Scale(domain=list(range(1, SUREST + 1)))
    base = alt.Chart(table).encode(x=alt.X("Sure:O", title="confidence", scale=scale, axis=alt.Axis(labelAngle=0)))
    share = alt.Y("Low:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    tips = [alt.Tooltip(f"{name}:N") for name in ("Sure", "right", "interval", "guesses")]
    layers = [
        base.mark_rule(strokeWidth=4, strokeCap="round", color=PALETTES[theme].muted).encode(
            y=share, y2="High:Q", tooltip=tips
        ),
        base.mark_line(strokeDash=[4, 4]).encode(y="Accuracy:Q"),
        base.mark_point(filled=True, opacity=1, size=130).encode(y="Accuracy:Q", tooltip=tips),
    ]
    return style_chart(alt.LayerChart(layer=layers), CHART_HEIGHT, theme)


def sureness_rows(summary: GuessSummary) -> pd.DataFrame:
    """A row per level of sureness in use."""
    return pd.DataFrame([{"Sure": level, **_share_columns(share)} for level, share in summary.by_sureness.items()])


def _share_columns(share: GuessShare, prefix: str = "") -> dict[str, float | str]:
    low, high = share.interval
    return {
        "Accuracy": share.accuracy,
        "Low": low,
        "High": high,
        "right": f"{prefix}{percent(share.accuracy)}",
        "interval": f"{percent(low)} to {percent(high)}",
        "guesses": f"{share.guesses:,}",
    }


def _conditions(summary: GuessSummary) -> list[str]:
    return [one.name for one in summary.conditions]


def _placebo_prefix(name: str, placebo: str | None) -> str:
    return "placebo, " if name == placebo else ""
