"""The participant's tab: it keeps their code until it is closed, so that a reload goes on; no address holds it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import streamlit as st

from components.annotate_session import FORGET, Seat
from components.compact import compact_script

SCRIPT = Path(__file__).resolve().parent / "assets" / "annotate_tab.js"
NAME = "exegesis_annotate_tab"
ASKED = "annotate.asked"
LONGEST_CODE = 100


def tab(study: str, seat: Seat | None, screen: str, on_code: Callable[[str], None]) -> None:
    """Draws nothing. Another `screen` than before begins at its top.

    `on_code` gets the code that the tab has kept, once a session, if nobody takes part from here yet.
    """
    key = "annotate.tab"
    data = {"study": study, "code": seat.code if seat else "", "wish": _wish(seat), "screen": screen}
    _component()(key=key, data=data, on_code_change=partial(_take, key, on_code))


def _wish(seat: Seat | None) -> str:
    if st.session_state.pop(FORGET, False):
        st.session_state[ASKED] = True
        return "forget"
    return "ask" if seat is None and not st.session_state.get(ASKED) else ""


def _take(key: str, on_code: Callable[[str], None]) -> None:
    """Takes what the browser just sent: a code once, of which nothing is believed yet."""
    code = st.session_state[key].get("code")
    if isinstance(code, str) and len(code) <= LONGEST_CODE and not st.session_state.get(ASKED):
        st.session_state[ASKED] = True
        on_code(code)


@cache
def _component() -> Callable[..., object]:
    made: Callable[..., object] = st.components.v2.component(
        NAME, js=compact_script(SCRIPT.read_text(encoding="utf-8"))
    )
    return made
