"""A callback that takes long, and a refresh whose end takes long, so that another choice comes before they are over."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import streamlit as st

SECONDS = 0.7


def add_one() -> None:
    time.sleep(SECONDS)
    st.session_state["count"] = st.session_state.get("count", 0) + 1


def end_slowly(_: str) -> None:
    """Streamlit calls it at the end of each run, to close the figures of matplotlib, which is not here."""
    sys.modules.pop("matplotlib.pyplot", None)
    time.sleep(SECONDS)


def refresh() -> None:
    st.text("New")
    sys.modules["matplotlib.pyplot"] = SimpleNamespace(close=end_slowly)  # type: ignore[assignment]


st.page_link(Path(__file__).with_name("said_page.py"), label="Another page")
st.button("Add one", on_click=add_one)
st.text(f"Count: {st.session_state.get('count', 0)}")
is_on = st.toggle("Refresh")
with st.container():
    st.text("Above")
    if is_on:
        st.fragment(refresh, run_every=3 * SECONDS)()
