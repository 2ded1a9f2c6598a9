"""Examples of a study's data set as an organiser sees them before it opens: no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import streamlit as st

from components.picture.open_pictures import Stamp, stamp
from components.picture.thumbnails import thumbnail_url
from engine.data.sources import Candidate, Source, source_of
from engine.request import Picture
from engine.study.choosing import candidates
from engine.study.design import Design

FIRST = 6
"""So many items are shown of what the choice gives."""
MOST_CHARACTERS = 160


@dataclass(frozen=True)
class Look:
    """An example in short: its text on one line, or the `data:` URL of a small picture."""

    index: int
    label: str
    text: str = ""
    url: str = ""

    @property
    def name(self) -> str:
        """Its number in the data set and its class."""
        return f"{self.index} · {self.label}" if self.label else f"{self.index}"


def opened_source(kind: str, dataset: str, split: str | None) -> Source:
    """The data set of that name, read once, and again when its file changes. Errors: those of reading it."""
    return _opened(kind, dataset, split, stamp(dataset))


def look_at(one: Candidate) -> Look:
    """What is shown of it."""
    label = one.label or ""
    if isinstance(one.input, Picture):
        return Look(one.index, label, url=thumbnail_url(one.input.pixels))
    whole = " / ".join(filter(None, [one.input.text, one.input.text_pair]))
    return Look(one.index, label, _short(whole))


def first_items(design: Design, source: Source, most: int = FIRST) -> list[tuple[Candidate, bool]]:
    """The first that the choice gives, and whether each is for practice.

    Where the model must be right or wrong, they are those that it will be asked of first, and none is for practice yet.
    """
    there = wanted(design)
    found = islice(candidates(design, source), min(most, there))
    by_hand, known = design.items.how == "hand", not awaits_model(design)
    first, end = (0, design.practice) if by_hand else (design.items.count, there)
    return [(one, known and first <= place < end) for place, one in enumerate(found)]


def wanted(design: Design) -> int:
    """How many items are chosen, those for practice too."""
    chosen: Sequence[int] = design.items.indices
    return len(chosen) if design.items.how == "hand" else design.items.count + design.practice


def awaits_model(design: Design) -> bool:
    """Whether the model decides which of the examples become items."""
    return design.items.how == "filter" and design.items.judged != "any"


@st.cache_resource(max_entries=4, show_spinner="Reading the data set …")
def _opened(kind: str, dataset: str, split: str | None, stamp: Stamp) -> Source:
    return source_of(kind, dataset, split)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"
