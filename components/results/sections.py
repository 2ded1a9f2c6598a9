"""The rest of a study's results: sections that are computed when they are opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import streamlit as st

from components.results.answers import annotators_section, items_section
from components.results.downloads import downloads_section
from components.results.forward import sureness_section
from components.results.ranked import (
    agreement_section,
    checks_section,
    course_section,
    power_section,
    wins_section,
)
from components.results.shown import Shown
from components.results.votes import excluded_section, times_section
from engine.study.forward.summary import ForwardSummary
from engine.study.ratings.summary import Summary

T = TypeVar("T")
RANKED: Mapping[str, tuple[str, Callable[[Summary], None]]] = {
    "wins": ("Which method is ranked above which?", wins_section),
    "course": ("How did the rating move as votes came in?", course_section),
    "checks": ("Would another order of the votes, or another model, say the same?", checks_section),
    "agreement": ("Do people agree with each other, and with themselves?", agreement_section),
    "power": ("How many votes would tell more methods apart?", power_section),
}
FORWARD: Mapping[str, tuple[str, Callable[[ForwardSummary], None]]] = {
    "sureness": ("Do people know when they are right?", sureness_section),
}
VOTES: Mapping[str, tuple[str, Callable[[Shown], None]]] = {
    "times": ("How long did a vote take?", times_section),
    "items": ("By item, with what people saw", items_section),
    "annotators": ("By annotator, with what they saw", annotators_section),
    "excluded": ("What is left out, and by which rule?", excluded_section),
    "downloads": ("Download", downloads_section),
}
"""Titles and what draws them, by the end of their keys."""


def sections(shown: Shown) -> None:
    """One after the other, closed at first; on a live page those that are open stay open."""
    if shown.summary is not None:
        for name, (title, draw) in RANKED.items():
            _section(name, title, draw, shown.summary)
    if shown.forward is not None:
        for name, (title, draw_guesses) in FORWARD.items():
            _section(name, title, draw_guesses, shown.forward)
    for name, (title, draw_votes) in VOTES.items():
        _section(name, title, draw_votes, shown)


def _section(name: str, title: str, draw: Callable[[T], None], given: T) -> None:
    box = st.expander(title, key=f"results.{name}", on_change="rerun")
    if box.open:
        with box:
            draw(given)
