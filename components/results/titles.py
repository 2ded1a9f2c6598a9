"""The results of a study with methods named by their titles, in the order of the design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import streamlit as st

from components.browse.thumbnails import thumbnail_url
from engine.errors import ExegesisError
from engine.registry import explainer
from engine.study.counted_votes import WITHOUT, CountedVote, method_names
from engine.study.design import Design
from engine.study.guesses import GuessSummary
from engine.study.items import ItemName, item_names, item_pictures
from engine.study.ratings import Rating
from engine.study.results import Results
from engine.study.studies import StudyRecord
from engine.study.summary import RankingSummary, VoteGroup

T = TypeVar("T")
MOST_STUDIES = 8


@dataclass(frozen=True)
class TitledResults:
    """Results with the titles of their methods. `untitled`: the same results with ids."""

    untitled: Results

    @property
    def study(self) -> StudyRecord:
        return self.untitled.study

    @property
    def votes(self) -> tuple[CountedVote, ...]:
        """The votes that count."""
        return self.untitled.votes

    @cached_property
    def titles(self) -> Mapping[str, str]:
        return method_titles(self.study.design)

    @cached_property
    def items(self) -> Mapping[str, ItemName]:
        """The names of the items by their places in votes."""
        return item_names(self.study.id)

    @cached_property
    def summary(self) -> RankingSummary | None:
        """The results of rankings; None if nothing is ranked."""
        return None if self.untitled.summary is None else titled_summary(self.untitled.summary, self.titles)

    @cached_property
    def forward(self) -> GuessSummary | None:
        """The results of guesses; None if nobody guesses."""
        return None if self.untitled.forward is None else titled_forward(self.untitled.forward, self.titles)

    def thumbnails(self, places: Sequence[str]) -> list[str]:
        """The `data:` URLs of thumbnails of these items; empty in a study of texts."""
        if self.study.design.kind != "image":
            return []
        urls = _thumbnails(self.study.id, self.study.token)
        return [urls[place] for place in places]


@st.cache_data(show_spinner="Creating thumbnails of the items", max_entries=MOST_STUDIES)
def _thumbnails(study: int, token: str) -> dict[str, str]:
    """Thumbnails by place. The pictures of an open study never change; `token` distinguishes databases."""
    return {place: thumbnail_url(picture.pixels) for place, picture in item_pictures(study).items()}


def method_titles(design: Design) -> dict[str, str]:
    """The title of each method by its name in the votes. A variant with other parameters has a number."""
    names = method_names(design)
    return {
        name: f"{_title(method.id, design.kind)}{name.removeprefix(method.id)}"
        for name, method in zip(names, design.ballot_methods, strict=True)
    }


def titled_summary(summary: RankingSummary, titles: Mapping[str, str]) -> RankingSummary:
    """Rename the methods of the results to their titles, and sort them in the order of the titles."""
    places = [summary.methods.index(name) for name in titles if name in summary.methods]
    return replace(
        summary,
        methods=tuple(titles[summary.methods[place]] for place in places),
        placebo=None if summary.placebo is None else titles[summary.placebo],
        ratings=_titled_ratings(summary.ratings, titles, places),
        smat=_titled_ratings(summary.smat, titles, places),
        course=summary.course[:, places],
        wins=summary.wins[places][:, places],
        worths=_titled_values(summary.worths, titles),
        by_item=_titled_groups(summary.by_item, titles),
        by_annotator=_titled_groups(summary.by_annotator, titles),
    )


def titled_forward(summary: GuessSummary, titles: Mapping[str, str]) -> GuessSummary:
    """Rename the methods of the results of guesses to their titles."""
    names = {WITHOUT: WITHOUT} | dict(titles)
    conditions = tuple(replace(one, name=names[one.name]) for one in summary.conditions)
    return replace(summary, conditions=conditions, placebo=names[summary.placebo] if summary.placebo else None)


def _title(method: str, kind: str) -> str:
    """The title of a method, or its id: an imported study may have methods that are unknown here."""
    try:
        return explainer(method, kind).title
    except ExegesisError:
        return method


def _titled_ratings(ratings: Sequence[Rating], titles: Mapping[str, str], places: Sequence[int]) -> tuple[Rating, ...]:
    return tuple(replace(ratings[place], method=titles[ratings[place].method]) for place in places)


def _titled_groups(groups: Sequence[VoteGroup], titles: Mapping[str, str]) -> tuple[VoteGroup, ...]:
    return tuple(replace(group, mean_rank=_titled_values(group.mean_rank, titles)) for group in groups)


def _titled_values(values: Mapping[str, T], titles: Mapping[str, str]) -> dict[str, T]:
    return {title: values[name] for name, title in titles.items() if name in values}
