"""The sections of the Library: which one is shown stands in the link and is kept over a page change."""

from __future__ import annotations

import streamlit as st

from components.trouble import say_error
from engine.errors import unknown

SECTIONS = {"jobs": "Jobs", "models": "Models", "data": "Data", "cache": "Cache", "device": "Device"}
PARAMETER = "section"
WIDGET = "library.section"
KEPT, SEEN = "library_kept_section", "library_seen_section"


def section() -> str:
    """The section to show. An unknown one in a link is said, and the first is shown."""
    first = next(iter(SECTIONS))
    asked = st.query_params.get(PARAMETER)
    if asked != st.session_state.get(SEEN) and (asked or WIDGET in st.session_state):
        st.session_state[WIDGET] = asked if asked in SECTIONS else first
    st.session_state.setdefault(WIDGET, st.session_state.get(KEPT, first))
    chosen = st.segmented_control(
        "Section", list(SECTIONS), key=WIDGET, required=True, format_func=SECTIONS.__getitem__,
        label_visibility="collapsed", on_change=_clicked,
    )  # fmt: skip
    chosen = chosen or first
    if asked and asked not in SECTIONS and chosen == first:
        say_error(str(unknown(PARAMETER, asked[:40], SECTIONS)))
    elif chosen != (asked or first):
        st.query_params[PARAMETER] = asked = chosen
    st.session_state[KEPT], st.session_state[SEEN] = chosen, asked
    return chosen


def _clicked() -> None:
    """A choice counts more than the address, which may still be that of the choice before."""
    st.session_state[SEEN] = st.query_params.get(PARAMETER)
