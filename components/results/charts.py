"""Tables of a study's results, and the charts that are drawn from them.

A method keeps its color in all charts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from components.charts.comparisons import interval_chart
from components.charts.frame import DOTTED, dashes, line_legend, method_colors, style_chart
from components.numbers import percent, plain, signed
from components.palette import PALETTES, Theme, step_of
from components.results.descriptions import rank_span
from components.styles import TONES
from engine.study.annotators import SUREST
from engine.study.counted_votes import WITHOUT, Exclusion, GuessAnswer
from engine.study.guesses import WORDS, GuessGain, GuessShare, GuessSummary
from engine.study.items import ItemName
from engine.study.ratings import Rating
from engine.study.summary import PairForecast, RankingSummary, VoteGroup

DECIMALS = 3
MOST_POINTS = 200
"""Maximum number of points of a course: the first, the last, and others evenly spaced between them."""
BOUNDS = (0, 5, 10, 20, 30, 60, 120, 300, 600)
"""Lower bounds of the bins of the chart of times, in seconds; the last bin has no upper bound."""

Row = Mapping[str, Any]


def rating_table(summary: RankingSummary) -> pd.DataFrame:
    """Main ratings next to those in SMaT's setting, the best method first."""
    smat = {rating.method: rating for rating in summary.smat}
    placebo = {summary.placebo: f"{summary.placebo} (placebo)"}
    return _table(
        {
            "Method": placebo.get(one.method, one.method),
            **_rating_columns(one, ""),
            **_rating_columns(smat[one.method], ", SMaT"),
        }
        for one in by_skill(summary.ratings)
    )


def by_skill(ratings: Sequence[Rating]) -> list[Rating]:
    """Return the ratings sorted by skill, the best first."""
    return sorted(ratings, key=lambda rating: -rating.skill)


def course_table(summary: RankingSummary) -> pd.DataFrame:
    """A row per drawn number of votes: the skill of each method after that many votes."""
    last = len(summary.course) - 1
    steps = np.unique(np.linspace(0, last, min(last + 1, MOST_POINTS)).round().astype(int))
    skills = pd.DataFrame(summary.course[steps].round(DECIMALS), columns=list(summary.methods))
    skills.insert(0, "Votes", steps)
    return skills


def order_table(summary: RankingSummary) -> pd.DataFrame:
    """Spread of each skill over orders of the votes, next to half of its interval for other people."""
    return _table(
        {
            "Method": one.method,
            "Skill": one.skill,
            "Spread over orders": one.spread,
            "Half of the interval": (one.interval[1] - one.interval[0]) / 2,
        }
        for one in by_skill(summary.ratings)
    )


def worth_table(summary: RankingSummary) -> pd.DataFrame:
    """Each method's place by skill and by the Plackett-Luce model."""
    return _table(
        {
            "Method": method,
            "Rank by skill": place,
            "Rank by Plackett-Luce": summary.worth_order.index(method) + 1,
            "Log worth": summary.worths[method],
        }
        for place, method in enumerate(summary.order, start=1)
    )


def power_table(summary: RankingSummary) -> pd.DataFrame:
    """Expected number of pairs with separate intervals, by number of votes."""
    return pd.DataFrame(
        [{"Annotators": one.annotators, "Votes": one.votes, "Separated pairs": one.pairs} for one in summary.power]
    )


def needed_table(summary: RankingSummary) -> pd.DataFrame:
    """For each pair the total number of votes that separates its intervals."""
    return _table(
        {
            "Better": pair.better,
            "Worse": pair.worse,
            "Gap": pair.gap,
            "Total votes": _needed_votes(pair, forecast=bool(summary.power)),
        }
        for pair in summary.needed
    )


def time_table(seconds: Sequence[int | float]) -> pd.DataFrame:
    """Histogram of the votes by their time; unknown times are left out."""
    counts, _ = np.histogram([value for value in seconds if value > 0], bins=[*BOUNDS, np.inf])
    spans = [f"{low}–{high}" for low, high in pairwise(BOUNDS)]
    return pd.DataFrame({"Seconds": [*spans, f"over {BOUNDS[-1]}"], "Votes": counts})


def group_table(groups: Sequence[VoteGroup], name: str) -> pd.DataFrame:
    """A row per item or annotator: votes, the median time, and the mean place of each method."""
    return pd.DataFrame(
        [
            {
                name: group.name,
                "Votes": group.votes,
                "Median seconds": None if group.seconds is None else round(group.seconds.median, 1),
                **{method: round(place, 2) for method, place in group.mean_rank.items()},
            }
            for group in groups
        ]
    )


def exclusion_table(excluded: Sequence[Exclusion], items: Mapping[str, ItemName]) -> pd.DataFrame:
    """A row per exclusion, with its reason."""
    return pd.DataFrame(
        [
            {
                "Annotator": one.annotator,
                "Item": "all" if one.item is None else items[one.item].name,
                "Answers": one.votes,
                "Reason": one.reason,
            }
            for one in excluded
        ]
    )


def condition_table(summary: GuessSummary) -> pd.DataFrame:
    """A row per condition of a study of guesses, no explanation first; shares are from 0 to 1."""
    placebo = {summary.placebo: f"{summary.placebo} (placebo)"}
    return _table(
        {
            "Explanation": placebo.get(one.name, one.name),
            **_table_columns(one.share),
            "Guesses": one.share.guesses if one.share else 0,
            "Cannot tell": one.cannot_tell,
            "Confidence": one.sure,
            "Median seconds": None if one.seconds is None else round(one.seconds.median, 1),
            **_gain_columns(one.gain),
            "Misled": one.misled.accuracy if one.misled else None,
            "Guesses, misled": one.misled.guesses if one.misled else 0,
        }
        for one in summary.conditions
    )


def sureness_table(summary: GuessSummary) -> pd.DataFrame:
    """A row per condition and level of sureness in use, all conditions together first.

    The interval is in one column: five columns fit on a phone.
    """
    groups = {"all": summary.by_sureness} | {one.name: one.by_sureness for one in summary.conditions}
    return _table(
        {
            "Explanation": name,
            "Confidence": level,
            "Guesses": share.guesses,
            "Right": share.accuracy,
            "Interval": f"{plain(share.interval[0])} to {plain(share.interval[1])}",
        }
        for name, levels in groups.items()
        for level, share in levels.items()
    )


def guess_item_table(guesses: Sequence[GuessAnswer], items: Mapping[str, ItemName], mode: str) -> pd.DataFrame:
    """A row per item: the right class, people's guesses, how many were right, and how sure people were.

    Only first views are counted, here and by annotator.
    """
    groups = _group_first_views((guess.item, guess) for guess in guesses)
    return pd.DataFrame(
        [
            {
                "Item": items[place].title,
                WORDS[mode].answer: items[place].prediction.labels[groups[place][0].target.label],
                "Guessed": _class_counts(groups[place], items[place].prediction.labels),
                "Right": _right(groups[place]),
                **_sureness_columns(groups[place]),
            }
            for place in sorted(groups, key=int)
        ]
    )


def guesser_table(guesses: Sequence[GuessAnswer]) -> pd.DataFrame:
    """A row per annotator: how many guesses were right, with and without an explanation, and how sure they were."""
    groups = _group_first_views((guess.annotator, guess) for guess in guesses)
    return pd.DataFrame(
        [
            {
                "Annotator": name,
                "Right": _right(own),
                "With an explanation": _right([one for one in own if one.explained]),
                "Without": _right([one for one in own if not one.explained]),
                **_sureness_columns(own),
            }
            for name, own in sorted(groups.items())
        ]
    )


def _table(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the rows as a rounded table."""
    return pd.DataFrame(list(rows)).round(DECIMALS)


def _rating_columns(rating: Rating, setting: str) -> Row:
    low, high = rating.interval
    values = {"Rank": rank_span(rating), "Skill": rating.skill, "Low": low, "High": high}
    return {f"{name}{setting}": value for name, value in values.items()}


def _needed_votes(pair: PairForecast, forecast: bool) -> str:
    if pair.apart:
        return "separated"
    if not forecast:
        return "unknown"
    return "too close" if pair.votes is None else f"{pair.votes:,}"


def _table_columns(share: GuessShare | None) -> Row:
    low, high = share.interval if share else (None, None)
    return {"Right": share.accuracy if share else None, "Low": low, "High": high}


def _gain_columns(gain: GuessGain | None) -> Row:
    low, high = gain.interval if gain else (None, None)
    sure_low, sure_high = gain.sure_interval if gain else (None, None)
    return {
        "Gain": gain.accuracy if gain else None,
        "Low, gain": low,
        "High, gain": high,
        "Confidence gain": gain.sure if gain else None,
        "Low, confidence": sure_low,
        "High, confidence": sure_high,
    }


def _group_first_views(named: Iterable[tuple[str, GuessAnswer]]) -> dict[str, list[GuessAnswer]]:
    groups: dict[str, list[GuessAnswer]] = defaultdict(list)
    for name, guess in named:
        if not guess.repeat:
            groups[name].append(guess)
    return groups


def _right(own: Sequence[GuessAnswer]) -> str | None:
    """Describe the share of right answers among the guesses; None without guesses."""
    guesses = [guess for guess in own if guess.label is not None]
    return f"{sum(guess.right for guess in guesses):,} of {len(guesses):,}" if guesses else None


def _class_counts(own: Sequence[GuessAnswer], labels: Sequence[str]) -> str | None:
    """Describe the guessed classes with their counts, the most frequent first; None without guesses."""
    counts = Counter(guess.label for guess in own if guess.label is not None).most_common()
    return ", ".join(f"{labels[label]} {times:,}" for label, times in counts) or None


def _sureness_columns(own: Sequence[GuessAnswer]) -> Row:
    sure = [guess.sure for guess in own if guess.sure is not None]
    took = [guess.seconds for guess in own if guess.seconds > 0]
    return {
        "Confidence": round(float(np.mean(sure)), 1) if sure else None,
        "Cannot tell": sum(guess.label is None for guess in own),
        "Median seconds": round(float(np.median(took)), 1) if took else None,
    }


CHART_HEIGHT = 320
ROOM = 0.04
"""Margin beyond the ends of the intervals, as a share of their range."""
LEGEND_COLUMNS, LEGEND_LABEL = 2, 150
"""Number of columns of the legend, of which two fit on a phone, and width of a label in pixels."""
POINTS = 100
"""Percentage points in a share of 1."""
POINTS_ROOM = 5
EVEN = 0.5
WHOLE = alt.Axis(tickMinStep=1, format=",d")
"""An axis of integers."""

Span = tuple[int | float, int | float]


def rating_span(*settings: Sequence[Rating]) -> Span:
    """Return the range of all intervals, so that charts side by side share one axis."""
    ends = [end for ratings in settings for rating in ratings for end in rating.interval]
    room = ROOM * (max(ends) - min(ends))
    return min(ends) - room, max(ends) + room


def rating_chart(
    ratings: Sequence[Rating], methods: Sequence[str], placebo: str | None, span: Span, theme: Theme
) -> alt.LayerChart:
    """Chart with a point and its interval per method, the best on top; the placebo's interval is shaded.

    `methods`: all methods of the study.
    """
    axis = alt.X("Low:Q", title="skill", scale=alt.Scale(domain=list(span), nice=False))
    return interval_chart(rating_rows(ratings, placebo), methods, ("Skill", "rank"), axis, placebo, theme)


def rating_rows(ratings: Sequence[Rating], placebo: str | None) -> pd.DataFrame:
    """A row per method, the best first, for the chart and its tooltips."""
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
    """Chart with a line per method over the votes in time order, dotted for the placebo. Tooltips show the values."""
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
    """HTML table of the share of votes that rank the row's method above the column's, with colored cells.

    The best method is first. Cells are blue above half of the votes and orange below.
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
    """A row per condition with guesses, for the chart and its tooltips."""
    return pd.DataFrame(
        [
            {"Method": one.name, **_chart_columns(one.share, _placebo_prefix(one.name, summary.placebo))}
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
    return pd.DataFrame([{"Sure": level, **_chart_columns(share)} for level, share in summary.by_sureness.items()])


def _chart_columns(share: GuessShare, prefix: str = "") -> dict[str, float | str]:
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
