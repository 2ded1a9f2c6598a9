"""What one browser tab's session knows of its participant, in plain values; all else is read from the study.

The tab itself keeps the participant's code until it is closed, so that a reload goes on, and how long they looked. No
address holds the code.
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

from components.styles import compact_script
from engine.errors import ExegesisError, UsageError
from engine.study.access import TooManyAttempts
from engine.study.annotators import Participant, StudyNotOpen, UnknownIdentifier
from engine.study.database import InvalidAddress

LOG = logging.getLogger(__name__)
Step = Literal["code", "instructions", "items"]
STEPS: tuple[Step, ...] = get_args(Step)
SEAT_KEY, MESSAGE_KEY, VIEW_KEY = "annotate.seat", "annotate.said", "annotate.shown"
FORGET_KEY, QUERIED_KEY = "annotate.forget", "annotate.asked"
"""In the session: the tab must forget its code, and the tab has been queried for it."""
SCRIPT = Path(__file__).resolve().parent.parent / "assets" / "annotate_tab.js"
COMPONENT, TAB_KEY = "exegesis_annotate_tab", "annotate.tab"
LONGEST_CODE = 100
UNREACHABLE = "The server cannot reach its store."
AGAIN = "Nothing was saved. Try again."


@dataclass(frozen=True)
class Seat:
    """A participant of the study with that link. `code` is known here until the tab has kept it.

    `step`: what they read next. `last`: the ballot that they answered last in this session; none yet: empty.
    """

    study: str
    person: int
    pseudonym: str
    code: str
    step: Step
    last: str = ""


def current_seat(study: str) -> Seat | None:
    """The participant of this study in this session; None before they have joined or gone on."""
    fields = st.session_state.get(SEAT_KEY)
    return Seat(**fields) if fields and fields["study"] == study else None


def take_seat(study: str, person: Participant, code: str, step: Step) -> None:
    """Make this session that participant's."""
    st.session_state[SEAT_KEY] = dataclasses.asdict(Seat(study, person.id, person.pseudonym, code, step))


def change_seat(study: str, **changes: str) -> None:
    """Move the same participant on."""
    st.session_state[SEAT_KEY] = {**st.session_state[SEAT_KEY], **changes, "study": study}


def leave_seat() -> None:
    """End taking part from here; the tab forgets the code."""
    st.session_state.pop(SEAT_KEY, None)
    st.session_state[FORGET_KEY] = True


def viewed_since(ballot: str, age: int | float = 0.0) -> float:
    """When this participant began to look at the ballot, by a clock that nobody sets, in seconds.

    `age`: for how many seconds the ballot has been theirs when this session first shows it.
    """
    view = st.session_state.get(VIEW_KEY)
    if not view or view["ballot"] != ballot:
        now = time.monotonic()
        view = st.session_state[VIEW_KEY] = {"ballot": ballot, "since": now, "first": now - age}
    return float(view["since"])


def record_view(ballot: str, seconds: int | float) -> None:
    """Note that the tab has shown the ballot for so long before now: no longer than it has been there."""
    view = st.session_state.get(VIEW_KEY)
    if view and view["ballot"] == ballot:
        now = time.monotonic()
        view["since"] = max(now - max(seconds, 0.0), view["first"])


def forget_view() -> None:
    """Start the next ballot's time when it is shown, even if it is the same again."""
    st.session_state.pop(VIEW_KEY, None)


def leave_message(text: str) -> None:
    """Set what the next run says once."""
    st.session_state[MESSAGE_KEY] = text


def take_message() -> str:
    """What this run is to say; empty if nothing."""
    return str(st.session_state.pop(MESSAGE_KEY, ""))


def failure_message(error: ExegesisError, participant: str, then: str = AGAIN) -> str:
    """What a participant reads when something fails: what they can act on. The rest is the organizer's, in the log.

    That is the error's own words, unless they may name the database and where it is. `participant`: whom the log
    names, a pseudonym at most. `then`: what follows where the server failed.
    """
    if isinstance(error, StudyNotOpen | UnknownIdentifier | TooManyAttempts | UsageError) and not isinstance(
        error, InvalidAddress
    ):
        return str(error)
    LOG.error("the study failed for %s", participant, exc_info=error)
    return f"{UNREACHABLE} {then}".strip()


def sync_tab(study: str, seat: Seat | None, screen: str, on_code: Callable[[str, Step], None]) -> None:
    """Exchange the code and the time of viewing with the tab; draws nothing.

    A `screen` that differs from the last one begins at its top. `on_code` gets the code that the tab has kept and what
    its participant reads next, once a session, if nobody takes part from here yet.
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
    """Take the code that the browser just sent, once; nothing of it is believed yet."""
    sent = _sent("kept")
    code, steps = sent.get("code"), {str(name): name for name in STEPS}
    if isinstance(code, str) and len(code) <= LONGEST_CODE and not st.session_state.get(QUERIED_KEY):
        st.session_state[QUERIED_KEY] = True
        on_code(code, steps.get(str(sent.get("step")), "items"))


def _receive_view() -> None:
    """Take for how long a screen was seen; the server's own time is the most that is believed."""
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
    component: Callable[..., object] = st.components.v2.component(
        COMPONENT, js=compact_script(SCRIPT.read_text(encoding="utf-8"))
    )
    return component
