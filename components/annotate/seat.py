"""The participant of a browser tab, as plain values of the session. Everything else is read from the study.

The tab itself stores the viewing time, and the participant's code until it is closed, so that a participant can
continue after a reload. No address contains the code.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

import streamlit as st

from engine.errors import ExegesisError, UsageError
from engine.study.access import TooManyAttempts
from engine.study.annotators import Participant, StudyNotOpen, UnknownIdentifier
from engine.study.database import InvalidAddress

LOG = logging.getLogger(__name__)
Step = Literal["code", "instructions", "items"]
STEPS: tuple[Step, ...] = get_args(Step)
SEAT_KEY, MESSAGE_KEY, VIEW_KEY = "annotate.seat", "annotate.said", "annotate.shown"
FORGET_KEY, QUERIED_KEY = "annotate.forget", "annotate.asked"
"""Session keys: the tab must delete its code; the tab was queried for its code."""
SCRIPT = Path(__file__).resolve().parent.parent / "assets" / "annotate_tab.js"
COMPONENT, TAB_KEY = "exegesis_annotate_tab", "annotate.tab"
LONGEST_CODE = 100
UNREACHABLE = "The server cannot reach its database."
AGAIN = "Nothing was saved. Try again."


@dataclass(frozen=True)
class Seat:
    """A participant of a study.

    `study`: token of the study's link. `code`: the participant's code, to be stored by the tab; empty after a saved
    answer. `step`: the next screen. `last`: token of the ballot last answered in this session; empty before the first.
    """

    study: str
    person: int
    pseudonym: str
    code: str
    step: Step
    last: str = ""


def current_seat(study: str) -> Seat | None:
    """Return the participant of this study in this session, or None before they join or resume."""
    fields = st.session_state.get(SEAT_KEY)
    return Seat(**fields) if fields and fields["study"] == study else None


def take_seat(study: str, person: Participant, code: str, step: Step) -> None:
    """Assign this session to the participant."""
    st.session_state[SEAT_KEY] = dataclasses.asdict(Seat(study, person.id, person.pseudonym, code, step))


def change_seat(study: str, **changes: str) -> None:
    """Change the step, code or last ballot of the current participant."""
    st.session_state[SEAT_KEY] = {**st.session_state[SEAT_KEY], **changes, "study": study}


def leave_seat() -> None:
    """Sign the participant out of this session, and let the tab delete the code."""
    st.session_state.pop(SEAT_KEY, None)
    st.session_state[FORGET_KEY] = True


def viewed_since(ballot: str, age: int | float = 0.0) -> float:
    """Return the time at which this participant began to view the ballot, by the monotonic clock, in seconds.

    `age`: seconds since the ballot was issued; used when this session first shows it.
    """
    view = st.session_state.get(VIEW_KEY)
    if not view or view["ballot"] != ballot:
        now = time.monotonic()
        view = st.session_state[VIEW_KEY] = {"ballot": ballot, "since": now, "first": now - age}
    return float(view["since"])


def record_view(ballot: str, seconds: int | float) -> None:
    """Record for how many seconds the tab has shown the ballot, at most the time since it was issued."""
    view = st.session_state.get(VIEW_KEY)
    if view and view["ballot"] == ballot:
        now = time.monotonic()
        view["since"] = max(now - max(seconds, 0.0), view["first"])


def forget_view() -> None:
    """Restart the viewing time at the next ballot, even if it is the same one."""
    st.session_state.pop(VIEW_KEY, None)


def leave_message(text: str) -> None:
    """Leave a message for the next run."""
    st.session_state[MESSAGE_KEY] = text


def take_message() -> str:
    """Return the message for this run and remove it; empty if there is none."""
    return str(st.session_state.pop(MESSAGE_KEY, ""))


def failure_message(error: ExegesisError, participant: str, then: str = AGAIN) -> str:
    """Return the message of an error for participants: its own if they can act on it, else a general one.

    Other errors are logged for the organizer, because their messages may reveal the address of the database.
    `participant`: name in the log, at most a pseudonym. `then`: the sentence that follows the general message.
    """
    if isinstance(error, StudyNotOpen | UnknownIdentifier | TooManyAttempts | UsageError) and not isinstance(
        error, InvalidAddress
    ):
        return str(error)
    LOG.error("the study failed for %s", participant, exc_info=error)
    return f"{UNREACHABLE} {then}".strip()


def sync_tab(study: str, seat: Seat | None, screen: str, on_code: Callable[[str, Step], None]) -> None:
    """Exchange the code and the viewing time with the tab; draws nothing.

    A `screen` that differs from the last one is scrolled to its top. `on_code` is called with the tab's stored code and
    the next step, once per session, if the session has no participant yet.
    """
    fields = {"code": seat.code, "step": seat.step} if seat else {"code": "", "step": ""}
    _component()(
        key=TAB_KEY,
        data={"study": study, "wish": _wish(seat), "screen": screen, **fields},
        on_kept_change=partial(_receive_code, on_code),
        on_seen_change=_receive_view,
    )


def _wish(seat: Seat | None) -> str:
    if st.session_state.pop(FORGET_KEY, False):
        st.session_state[QUERIED_KEY] = True
        return "forget"
    return "ask" if seat is None and not st.session_state.get(QUERIED_KEY) else ""


def _receive_code(on_code: Callable[[str, Step], None]) -> None:
    """Receive the code that the browser sent, once. The code is not verified here."""
    sent = _sent("kept")
    code, steps = sent.get("code"), {str(name): name for name in STEPS}
    if isinstance(code, str) and len(code) <= LONGEST_CODE and not st.session_state.get(QUERIED_KEY):
        st.session_state[QUERIED_KEY] = True
        on_code(code, steps.get(str(sent.get("step")), "items"))


def _receive_view() -> None:
    """Receive the viewing time of a screen; `record_view` limits it by the server's clock."""
    sent = _sent("seen")
    screen, seconds = sent.get("screen"), sent.get("seconds")
    if not isinstance(screen, str) or not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return
    if math.isfinite(seconds):
        record_view(screen, seconds)


def _sent(event: str) -> Mapping[str, Any]:
    sent = st.session_state[TAB_KEY].get(event)
    return sent if isinstance(sent, dict) else {}


@cache
def _component() -> Callable[..., object]:
    component: Callable[..., object] = st.components.v2.component(COMPONENT, js=SCRIPT.read_text(encoding="utf-8"))
    return component
