"""The numbers of a study's results as tables: what its charts draw, and what has no chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from components.results.words import rank_text
from engine.study.exclusion import Exclusion
from engine.study.item_names import NamedItem
from engine.study.ratings.headline import Rating
from engine.study.ratings.power import Needed
from engine.study.ratings.summary import Group, Summary

DECIMALS = 3
MOST_POINTS = 200
"""Of a longer course, so many points are drawn: the first, the last, and others evenly between."""
BOUNDS = (0, 5, 10, 20, 30, 60, 120, 300, 600)
"""Seconds at which a vote falls into the next bin of the chart of times; the last bin has no end."""


def rank_table(found: Summary) -> pd.DataFrame:
    """The headline beside SMaT's setting, the best method first."""
    smat = {rating.method: rating for rating in found.smat}
    placebo = {found.placebo: f"{found.placebo} (placebo)"}
    return pd.DataFrame(
        [
            {"Method": placebo.get(one.method, one.method)} | _rated(one, "") | _rated(smat[one.method], ", SMaT")
            for one in by_skill(found.ratings)
        ]
    )


def by_skill(ratings: Sequence[Rating]) -> list[Rating]:
    """The best first."""
    return sorted(ratings, key=lambda rating: -rating.skill)


def course_table(found: Summary) -> pd.DataFrame:
    """A row for each number of votes that is drawn: the skill of each method after them."""
    last = len(found.course) - 1
    steps = np.unique(np.linspace(0, last, min(last + 1, MOST_POINTS)).round().astype(int))
    skills = pd.DataFrame(found.course[steps].round(DECIMALS), columns=list(found.methods))
    skills.insert(0, "Votes", steps)
    return skills


def order_table(found: Summary) -> pd.DataFrame:
    """How far the order of the votes moves each skill, beside how far other people would."""
    return pd.DataFrame(
        [
            {
                "Method": one.method,
                "Skill": round(one.skill, DECIMALS),
                "Spread over orders": round(one.spread, DECIMALS),
                "Half of the interval": round((one.interval[1] - one.interval[0]) / 2, DECIMALS),
            }
            for one in by_skill(found.ratings)
        ]
    )


def worth_table(found: Summary) -> pd.DataFrame:
    """Each method's place by skill and by Plackett and Luce's model."""
    return pd.DataFrame(
        [
            {
                "Method": method,
                "Place by skill": place,
                "Place by Plackett-Luce": found.worth_order.index(method) + 1,
                "Log worth": round(found.worths[method], DECIMALS),
            }
            for place, method in enumerate(found.order, start=1)
        ]
    )


def power_table(found: Summary) -> pd.DataFrame:
    """Pairs that are expected to be told apart, by number of votes."""
    return pd.DataFrame(
        [{"Annotators": one.annotators, "Votes": one.votes, "Pairs told apart": one.pairs} for one in found.power]
    )


def needed_table(found: Summary) -> pd.DataFrame:
    """For each pair the votes in all that tell it apart."""
    return pd.DataFrame(
        [
            {
                "Better": pair.better,
                "Worse": pair.worse,
                "Gap": round(pair.gap, DECIMALS),
                "Votes in all": _votes(pair, forecast=bool(found.power)),
            }
            for pair in found.needed
        ]
    )


def time_table(seconds: Sequence[int | float]) -> pd.DataFrame:
    """How many votes took so long; those whose time is not known are left out."""
    counts, _ = np.histogram([value for value in seconds if value > 0], bins=[*BOUNDS, np.inf])
    return pd.DataFrame({"Seconds": _bins(), "Votes": counts})


def group_table(groups: Sequence[Group], name: str) -> pd.DataFrame:
    """A row an item or an annotator: votes, the median time, and the mean place of each method."""
    rows = []
    for group in groups:
        took = None if group.seconds is None else round(group.seconds.median, 1)
        places = {method: round(place, 2) for method, place in group.mean_rank.items()}
        rows.append({name: group.name, "Votes": group.votes, "Median seconds": took} | places)
    return pd.DataFrame(rows)


def exclusion_table(excluded: Sequence[Exclusion], items: Mapping[str, NamedItem]) -> pd.DataFrame:
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


def _votes(pair: Needed, forecast: bool) -> str:
    if pair.apart:
        return "told apart"
    if not forecast:
        return "not known"
    return "too close" if pair.votes is None else f"{pair.votes:,}"


def _rated(rating: Rating, setting: str) -> dict[str, str | float]:
    low, high = rating.interval
    values = {"Skill": rating.skill, "Low": low, "High": high}
    told = {f"{name}{setting}": round(value, DECIMALS) for name, value in values.items()}
    return {f"Rank{setting}": rank_text(rating), **told}


def _bins() -> list[str]:
    spans = [f"{low}–{high}" for low, high in pairwise(BOUNDS)]
    return [*spans, f"over {BOUNDS[-1]}"]
