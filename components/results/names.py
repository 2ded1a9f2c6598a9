"""The methods of a study by the names that an organiser knows, in the order of the design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from engine.errors import ExegesisError
from engine.registry import explainer
from engine.study.design import Design
from engine.study.ratings.headline import Rating
from engine.study.ratings.summary import Group, Summary
from engine.study.tally import method_names

T = TypeVar("T")


def titles_of(design: Design) -> dict[str, str]:
    """What each method is called, by its name in the votes. The same method with other parameters has a number."""
    names = method_names(design)
    return {
        name: f"{_title(method.id, design.kind)}{name.removeprefix(method.id)}"
        for name, method in zip(names, design.shown, strict=True)
    }


def titled(found: Summary, titles: Mapping[str, str]) -> Summary:
    """The same results under these names, and in their order."""
    places = [found.methods.index(name) for name in titles if name in found.methods]
    return replace(
        found,
        methods=tuple(titles[found.methods[place]] for place in places),
        placebo=None if found.placebo is None else titles[found.placebo],
        ratings=_ratings(found.ratings, titles, places),
        smat=_ratings(found.smat, titles, places),
        course=found.course[:, places],
        wins=found.wins[places][:, places],
        worths=_named(found.worths, titles),
        by_item=_groups(found.by_item, titles),
        by_annotator=_groups(found.by_annotator, titles),
    )


def _title(method: str, kind: str) -> str:
    """A study from elsewhere may have methods that are not known here."""
    try:
        return explainer(method, kind).title
    except ExegesisError:
        return method


def _ratings(ratings: Sequence[Rating], titles: Mapping[str, str], places: Sequence[int]) -> tuple[Rating, ...]:
    return tuple(replace(ratings[place], method=titles[ratings[place].method]) for place in places)


def _groups(groups: Sequence[Group], titles: Mapping[str, str]) -> tuple[Group, ...]:
    return tuple(replace(group, mean_rank=_named(group.mean_rank, titles)) for group in groups)


def _named(values: Mapping[str, T], titles: Mapping[str, str]) -> dict[str, T]:
    return {title: values[name] for name, title in titles.items() if name in values}
