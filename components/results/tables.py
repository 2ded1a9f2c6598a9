"""The numbers of a study's results as tables: what its charts draw, and what has no chart."""

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
"""Of a longer course, so many points are drawn: the first, the last, and others evenly between."""
BOUNDS = (0, 5, 10, 20, 30, 60, 120, 300, 600)
"""Seconds at which a vote falls into the next bin of the chart of times; the last bin has no end."""

Row = Mapping[str, Any]


def rating_table(summary: RankingSummary) -> pd.DataFrame:
    """The headline beside SMaT's setting, the best method first."""
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
    """The best first."""
    return sorted(ratings, key=lambda rating: -rating.skill)


def course_table(summary: RankingSummary) -> pd.DataFrame:
    """A row for each number of votes that is drawn: the skill of each method after them."""
    last = len(summary.course) - 1
    steps = np.unique(np.linspace(0, last, min(last + 1, MOST_POINTS)).round().astype(int))
    skills = pd.DataFrame(summary.course[steps].round(DECIMALS), columns=list(summary.methods))
    skills.insert(0, "Votes", steps)
    return skills


def order_table(summary: RankingSummary) -> pd.DataFrame:
    """How far the order of the votes moves each skill, beside how far other people would."""
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
    """Each method's place by skill and by Plackett and Luce's model."""
    return _table(
        {
            "Method": method,
            "Place by skill": place,
            "Place by Plackett-Luce": summary.worth_order.index(method) + 1,
            "Log worth": summary.worths[method],
        }
        for place, method in enumerate(summary.order, start=1)
    )


def power_table(summary: RankingSummary) -> pd.DataFrame:
    """Pairs that are expected to be told apart, by number of votes."""
    return pd.DataFrame(
        [{"Annotators": one.annotators, "Votes": one.votes, "Pairs told apart": one.pairs} for one in summary.power]
    )


def needed_table(summary: RankingSummary) -> pd.DataFrame:
    """For each pair the votes in all that tell it apart."""
    return _table(
        {
            "Better": pair.better,
            "Worse": pair.worse,
            "Gap": pair.gap,
            "Votes in all": _needed_votes(pair, forecast=bool(summary.power)),
        }
        for pair in summary.needed
    )


def time_table(seconds: Sequence[int | float]) -> pd.DataFrame:
    """How many votes took so long; those whose time is not known are left out."""
    counts, _ = np.histogram([value for value in seconds if value > 0], bins=[*BOUNDS, np.inf])
    spans = [f"{low}–{high}" for low, high in pairwise(BOUNDS)]
    return pd.DataFrame({"Seconds": [*spans, f"over {BOUNDS[-1]}"], "Votes": counts})


def group_table(groups: Sequence[VoteGroup], name: str) -> pd.DataFrame:
    """A row an item or an annotator: votes, the median time, and the mean place of each method."""
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
    """Who or what was left out, and why."""
    return pd.DataFrame(
        [
            {
                "Annotator": one.annotator,
                "Item": "all" if one.item is None else items[one.item].name,
                "Answers": one.votes,
                "Why": one.reason,
            }
            for one in excluded
        ]
    )


def condition_table(summary: GuessSummary) -> pd.DataFrame:
    """A row a condition of a study of guesses, no explanation first; shares are from 0 to 1."""
    placebo = {summary.placebo: f"{summary.placebo} (placebo)"}
    return _table(
        {
            "Explanation": placebo.get(one.name, one.name),
            **_share_columns(one.share),
            "Guesses": one.share.guesses if one.share else 0,
            "Cannot tell": one.cannot_tell,
            "How sure": one.sure,
            "Median seconds": None if one.seconds is None else round(one.seconds.median, 1),
            **_gain_columns(one.gain),
        }
        for one in summary.conditions
    )


def sureness_table(summary: GuessSummary) -> pd.DataFrame:
    """A row for each condition and level of sureness that was used, all conditions together first.

    The interval stands in one column: five fit on a telephone.
    """
    groups = {"all": summary.by_sureness} | {one.name: one.by_sureness for one in summary.conditions}
    return _table(
        {
            "Explanation": name,
            "How sure": level,
            "Guesses": share.guesses,
            "Right": share.accuracy,
            "Interval": f"{plain(share.interval[0])} to {plain(share.interval[1])}",
        }
        for name, levels in groups.items()
        for level, share in levels.items()
    )


def guess_item_table(guesses: Sequence[GuessAnswer], items: Mapping[str, ItemName]) -> pd.DataFrame:
    """A row an item: what the model said, what people guessed, how many were right, and how sure they were.

    First looks alone are counted, here and by annotator.
    """
    groups = _first_looks((guess.item, guess) for guess in guesses)
    return pd.DataFrame(
        [
            {
                "Item": items[place].title,
                "Model said": items[place].prediction.label,
                "Guessed": _class_counts(groups[place], items[place].prediction.labels),
                "Right": _right(groups[place]),
                **_sureness_columns(groups[place]),
            }
            for place in sorted(groups, key=int)
        ]
    )


def guesser_table(guesses: Sequence[GuessAnswer]) -> pd.DataFrame:
    """A row an annotator: how many were right, with and without an explanation, and how sure they were."""
    groups = _first_looks((guess.annotator, guess) for guess in guesses)
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
    """The rows with their fractions rounded."""
    return pd.DataFrame(
        [
            {name: round(value, DECIMALS) if isinstance(value, float) else value for name, value in row.items()}
            for row in rows
        ]
    )


def _rating_columns(rating: Rating, setting: str) -> Row:
    low, high = rating.interval
    values = {"Rank": rank_span(rating), "Skill": rating.skill, "Low": low, "High": high}
    return {f"{name}{setting}": value for name, value in values.items()}


def _needed_votes(pair: PairForecast, forecast: bool) -> str:
    if pair.apart:
        return "told apart"
    if not forecast:
        return "not known"
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
        "Surer": gain.sure if gain else None,
        "Low, surer": sure_low,
        "High, surer": sure_high,
    }


def _first_looks(named: Iterable[tuple[str, GuessAnswer]]) -> dict[str, list[GuessAnswer]]:
    groups: dict[str, list[GuessAnswer]] = defaultdict(list)
    for name, guess in named:
        if not guess.repeat:
            groups[name].append(guess)
    return groups


def _right(own: Sequence[GuessAnswer]) -> str | None:
    """Of those that were guesses."""
    guesses = [guess for guess in own if guess.label is not None]
    return f"{sum(guess.right for guess in guesses):,} of {len(guesses):,}" if guesses else None


def _class_counts(own: Sequence[GuessAnswer], labels: Sequence[str]) -> str | None:
    """The classes that were guessed, the most frequent first."""
    counts = Counter(guess.label for guess in own if guess.label is not None).most_common()
    return ", ".join(f"{labels[label]} {times:,}" for label, times in counts) or None


def _sureness_columns(own: Sequence[GuessAnswer]) -> Row:
    sure = [guess.sure for guess in own if guess.sure is not None]
    took = [guess.seconds for guess in own if guess.seconds > 0]
    return {
        "How sure": round(float(np.mean(sure)), 1) if sure else None,
        "Cannot tell": sum(guess.label is None for guess in own),
        "Median seconds": round(float(np.median(took)), 1) if took else None,
    }
