"""Tables of a study's results: the data of its charts, and numbers without a chart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from components.numbers import plain
from components.results.descriptions import rank_span
from engine.study.counted_votes import Exclusion, GuessAnswer
from engine.study.guesses import GuessGain, GuessShare, GuessSummary
from engine.study.items import ItemName
from engine.study.ratings import Rating
from engine.study.summary import PairForecast, RankingSummary, VoteGroup

DECIMALS = 3
MOST_POINTS = 200
"""Maximum number of points of a course: the first, the last, and others evenly between."""
BOUNDS = (0, 5, 10, 20, 30, 60, 120, 300, 600)
"""Lower bounds of the bins of the chart of times, in seconds; the last bin has no upper bound."""

Row = Mapping[str, Any]


def rating_table(summary: RankingSummary) -> pd.DataFrame:
    """The headline ratings beside those in SMaT's setting, the best method first."""
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
    """Sort ratings, the best first."""
    return sorted(ratings, key=lambda rating: -rating.skill)


def course_table(summary: RankingSummary) -> pd.DataFrame:
    """A row per drawn number of votes: the skill of each method after that many votes."""
    last = len(summary.course) - 1
    steps = np.unique(np.linspace(0, last, min(last + 1, MOST_POINTS)).round().astype(int))
    skills = pd.DataFrame(summary.course[steps].round(DECIMALS), columns=list(summary.methods))
    skills.insert(0, "Votes", steps)
    return skills


def order_table(summary: RankingSummary) -> pd.DataFrame:
    """Spread of each skill over orders of the votes, beside half of its interval for other people."""
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
            **_share_columns(one.share),
            "Guesses": one.share.guesses if one.share else 0,
            "Cannot tell": one.cannot_tell,
            "Confidence": one.sure,
            "Median seconds": None if one.seconds is None else round(one.seconds.median, 1),
            **_gain_columns(one.gain),
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


def guess_item_table(guesses: Sequence[GuessAnswer], items: Mapping[str, ItemName]) -> pd.DataFrame:
    """A row per item: the model's prediction, people's guesses, how many were right, and how sure people were.

    Only first views are counted, here and by annotator.
    """
    groups = _group_first_views((guess.item, guess) for guess in guesses)
    return pd.DataFrame(
        [
            {
                "Item": items[place].title,
                "Prediction": items[place].prediction.label,
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
    """The rows, rounded."""
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


def _share_columns(share: GuessShare | None) -> Row:
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
    """Share of right answers among the guesses, in words; None without guesses."""
    guesses = [guess for guess in own if guess.label is not None]
    return f"{sum(guess.right for guess in guesses):,} of {len(guesses):,}" if guesses else None


def _class_counts(own: Sequence[GuessAnswer], labels: Sequence[str]) -> str | None:
    """The guessed classes with their counts, the most frequent first."""
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
