"""The participant's tab: until it is closed it keeps their code, so that a reload goes on, and how long they looked.

No address holds the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import streamlit as st

from components.annotate.session import FORGET, STEPS, Seat, Step
from components.compact import compact_script

SCRIPT = Path(__file__).resolve().parent.parent / "assets" / "annotate_tab.js"
NAME = "exegesis_annotate_tab"
ASKED = "annotate.asked"
LONGEST_CODE = 100


def tab(
    study: str,
    seat: Seat | None,
    screen: str,
    on_code: Callable[[str, Step], None],
    on_seen: Callable[[str, float], None],
) -> None:
    """Draws nothing. Another `screen` than before begins at its top.

    `on_code` gets the code that the tab has kept and what its participant reads next, once a session, if nobody takes
    part from here yet. `on_seen` gets a screen and for how many seconds it was seen before now, after a time in which
    it was not.
    """
    key = "annotate.tab"
    held = {"code": seat.code, "step": seat.step} if seat else {"code": "", "step": ""}
    _component()(
        key=key,
        data={"study": study, "wish": _wish(seat), "screen": screen, **held},
        on_kept_change=partial(_take, key, on_code),
        on_seen_change=partial(_look, key, on_seen),
    )


def _wish(seat: Seat | None) -> str:
    if st.session_state.pop(FORGET, False):
        st.session_state[ASKED] = True
        return "forget"
    return "ask" if seat is None and not st.session_state.get(ASKED) else ""


def _take(key: str, on_code: Callable[[str, Step], None]) -> None:
    """Takes what the browser just sent: a code once, of which nothing is believed yet."""
    sent = _sent(key, "kept")
    code, steps = sent.get("code"), {str(name): name for name in STEPS}
    if isinstance(code, str) and len(code) <= LONGEST_CODE and not st.session_state.get(ASKED):
        st.session_state[ASKED] = True
        on_code(code, steps.get(str(sent.get("step")), "items"))


def _look(key: str, on_seen: Callable[[str, float], None]) -> None:
    """Takes for how long a screen was seen; the server's own time is the most that is believed."""
    sent = _sent(key, "seen")
    screen, seconds = sent.get("screen"), sent.get("seconds")
    if not isinstance(screen, str) or not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return
    if math.isfinite(seconds):
        on_seen(screen, seconds)


def _sent(key: str, event: str) -> Mapping[str, Any]:
    sent = st.session_state[key].get(event)
    return sent if isinstance(sent, dict) else {}


@cache
def _component() -> Callable[..., object]:
    made: Callable[..., object] = st.components.v2.component(
        NAME, js=compact_script(SCRIPT.read_text(encoding="utf-8"))
    )
    return made
