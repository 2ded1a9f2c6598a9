"""The Library page: which section it shows stands in the link and is kept over a page change."""

from __future__ import annotations

import streamlit as st

from components.library.cache import draw_cache
from components.library.datasets import draw_datasets
from components.library.device import draw_device
from components.library.jobs import draw_job_form, draw_jobs
from components.library.models import draw_model_check, draw_models
from components.trouble import say_error
from engine.errors import unknown

SECTIONS = {"jobs": "Jobs", "models": "Models", "data": "Data", "cache": "Cache", "device": "Device"}
PARAMETER = "section"
WIDGET = "library.section"
CHOSEN_KEY, ADDRESS_KEY = "library_kept_section", "library_seen_section"
"""In the session: the section that was chosen last, and what the address said at the last run."""


def draw_library() -> None:
    """Draw the choice of a section, and the section."""
    section = _choose_section()
    with st.container(width=960):
        if section == "jobs":
            draw_job_form()
            draw_jobs()
        elif section == "models":
            draw_models()
            draw_model_check()
        elif section == "data":
            draw_datasets()
        elif section == "cache":
            draw_cache()
        else:
            draw_device()


def _choose_section() -> str:
    """The section to show. An unknown one in a link is said, and the first is shown."""
    first = next(iter(SECTIONS))
    address = st.query_params.get(PARAMETER)
    if address != st.session_state.get(ADDRESS_KEY) and (address or WIDGET in st.session_state):
        st.session_state[WIDGET] = address if address in SECTIONS else first
    st.session_state.setdefault(WIDGET, st.session_state.get(CHOSEN_KEY, first))
    chosen = st.segmented_control(
        "Section", list(SECTIONS), key=WIDGET, required=True, format_func=SECTIONS.__getitem__,
        label_visibility="collapsed", on_change=_ignore_address,
    )  # fmt: skip
    chosen = chosen or first
    if address and address not in SECTIONS and chosen == first:
        say_error(str(unknown(PARAMETER, address[:40], SECTIONS)))
    elif chosen != (address or first):
        st.query_params[PARAMETER] = address = chosen
    st.session_state[CHOSEN_KEY], st.session_state[ADDRESS_KEY] = chosen, address
    return chosen


def _ignore_address() -> None:
    """A choice counts more than the address, which may still be that of the choice before."""
    st.session_state[ADDRESS_KEY] = st.query_params.get(PARAMETER)
