"""The results of a study as its page shows them: methods go by their titles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import streamlit as st

from components.results.forward import titled_forward
from components.results.names import titled, titles_of
from engine.study.forward.summary import ForwardSummary
from engine.study.item_names import NamedItem, named_items, pictures_of
from engine.study.ratings.summary import Summary
from engine.study.results import Results

MOST_STUDIES = 8


@dataclass(frozen=True)
class Shown:
    """Results, and what each of their methods is called."""

    found: Results

    @cached_property
    def titles(self) -> Mapping[str, str]:
        return titles_of(self.found.study.design)

    @cached_property
    def items(self) -> Mapping[str, NamedItem]:
        """By the place that votes name."""
        return named_items(self.found.study.id)

    def thumbnails(self, places: Sequence[str]) -> list[str]:
        """The URLs of small pictures of these items; none in a study of texts."""
        if self.found.study.design.kind != "image":
            return []
        known = _thumbnails(self.found.study.id, self.found.study.token)
        return [known[place] for place in places]

    @cached_property
    def summary(self) -> Summary | None:
        """None where nothing is ranked."""
        return None if self.found.summary is None else titled(self.found.summary, self.titles)

    @cached_property
    def forward(self) -> ForwardSummary | None:
        """None where nobody guesses."""
        return None if self.found.forward is None else titled_forward(self.found.forward, self.titles)


@st.cache_data(show_spinner="Making small pictures of the items", max_entries=MOST_STUDIES)
def _thumbnails(study: int, token: str) -> dict[str, str]:
    """By place. A study that has opened keeps its pictures, so they are made once; `token` tells databases apart."""
    from components.picture.thumbnails import thumbnail_url

    return {place: thumbnail_url(picture.pixels) for place, picture in pictures_of(study).items()}
