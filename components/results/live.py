"""The page of results follows the votes: a cheap look now and then, and a new drawing only where something changed."""

from __future__ import annotations

import time

import streamlit as st

from engine.errors import ExegesisError
from engine.study.following import votes_shown
from engine.study.results import Votes
from engine.study.studies import StudyRecord, find

LOOK_SECONDS = 5.0
SHARE = 4
"""A drawing that took long is followed by a pause of so many times its length."""

Mark = tuple[Votes, bool] | None
"""The votes whose results are there, and whether more may come; none: the study is gone."""


def mark(study: int) -> Mark:
    """What the page depends on, by two small queries."""
    try:
        return votes_shown(study), find(study).takes_votes
    except ExegesisError:
        return None


def follow(record: StudyRecord, drawn: Mark, took: float) -> None:
    """Draws the page again once its mark is another than `drawn`. `took`: seconds that this drawing needed."""
    pause = max(LOOK_SECONDS, SHARE * took)
    st.fragment(_look, run_every=pause if record.takes_votes else None)(record.id, drawn, time.monotonic() + pause / 2)


def _look(study: int, drawn: Mark, due: float) -> None:
    """Runs within the page too, where it is too early to look."""
    if time.monotonic() >= due and mark(study) != drawn:
        st.rerun()
    live = drawn is not None and drawn[1]
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Look for new votes", key="results.look", icon=":material/refresh:", type="tertiary"):
            st.rerun()
        st.caption("The study is open, and this page follows it." if live else "The study takes no votes now.")
