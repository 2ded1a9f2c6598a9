"""Choices that the browser sends before it has received the result of the previous one.

With each choice the browser sends its address and the values of all its controls. For a choice made a moment after
another, both are stale: the address is not a link that somebody opens, and values that Python has set since must not be
undone. The address tells when the browser has caught up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

Query = dict[str, list[str]]
SET = "stale_choices_set"
"""Session key: the controls that Python has set, each with its value before and after."""
SENT = "stale_choices_sent"
"""Session key: the link sent to the browser together with them, and when; absent until it is sent."""
ENDED, ENDED_BEFORE = "stale_choices_ended", "stale_choices_ended_before"
"""Session keys: when the last run of the page ended, absent while one runs or after it was interrupted; and the same as
it was when the present run began."""
DRAWN_SECONDS = 1.0
"""How long a browser may take to draw the controls after the run that changed its address has ended."""


def query() -> Query:
    """The parameters of the address."""
    return {name: st.query_params.get_all(name) for name in st.query_params}


def is_history() -> bool:
    """Whether a person went back or forward to the address."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def set_control(key: str, new: object) -> None:
    """Set a control, in a callback or before it is drawn."""
    before = st.session_state.get(key)
    st.session_state[key] = new
    given = st.session_state.setdefault(SET, {})
    if before != new:
        given[key] = (before, new)
        st.session_state.pop(SENT, None)
    elif key in given and given[key][1] != new:
        del given[key]  # a person has chosen this since


def link_sent(link: Mapping[str, list[str]]) -> None:
    """Record that the browser is sent this link, and with it all values set before."""
    if st.session_state.get(SENT, (None,))[0] != link:
        st.session_state[SENT] = (dict(link), time.monotonic())


def run_begins() -> None:
    """Record that the page is being drawn."""
    st.session_state[ENDED_BEFORE] = st.session_state.pop(ENDED, 0.0)


def run_ended() -> None:
    """Record that the page is drawn to its end."""
    st.session_state[ENDED] = time.monotonic()


def restore_controls() -> None:
    """Set again the controls that a stale choice has reset. In a callback: before it reads their values."""
    link, since = st.session_state.get(SENT, (None, 0.0))
    ended = st.session_state.get(ENDED, st.session_state.get(ENDED_BEFORE, since))
    if link == query() and ended >= since and time.monotonic() - ended > DRAWN_SECONDS:
        clear()
    for key, (before, new) in st.session_state.get(SET, {}).items():
        if st.session_state.get(key) == before:
            st.session_state[key] = new


def clear() -> None:
    """Forget what was set: the browser has caught up, or shows another link."""
    for name in (SET, SENT):
        st.session_state.pop(name, None)
