"""What one browser tab's session knows of its participant, in plain values; all else is asked of the study."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Literal, get_args

import streamlit as st

from engine.study.annotators import Person

Step = Literal["code", "instructions", "items"]
STEPS: tuple[Step, ...] = get_args(Step)
KEY, SAID, SHOWN, FORGET = "annotate.seat", "annotate.said", "annotate.shown", "annotate.forget"


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


def seat_of(study: str) -> Seat | None:
    """Who takes part in this study from here; None before they have joined or gone on."""
    kept = st.session_state.get(KEY)
    return Seat(**kept) if kept and kept["study"] == study else None


def take_seat(study: str, person: Person, code: str, step: Step) -> None:
    """From now on this session is that participant's."""
    st.session_state[KEY] = dataclasses.asdict(Seat(study, person.id, person.pseudonym, code, step))


def change_seat(study: str, **changes: str) -> None:
    """The same participant further on."""
    st.session_state[KEY] = {**st.session_state[KEY], **changes, "study": study}


def leave_seat() -> None:
    """Nobody takes part from here any more, and the tab forgets the code."""
    st.session_state.pop(KEY, None)
    st.session_state[FORGET] = True


def looking_since(ballot: str, age: int | float = 0.0) -> float:
    """When this participant began to look at the ballot, by a clock that nobody sets, in seconds.

    `age`: for how many seconds the ballot has been theirs when this session first shows it.
    """
    kept = st.session_state.get(SHOWN)
    if not kept or kept["ballot"] != ballot:
        now = time.monotonic()
        kept = st.session_state[SHOWN] = {"ballot": ballot, "since": now, "first": now - age}
    return float(kept["since"])


def seen(ballot: str, seconds: int | float) -> None:
    """The tab has shown the ballot for so long before now, and not in between: no longer than it has been there."""
    kept = st.session_state.get(SHOWN)
    if kept and kept["ballot"] == ballot:
        now = time.monotonic()
        kept["since"] = max(now - max(seconds, 0.0), kept["first"])


def forget_look() -> None:
    """The next ballot's time starts when it is shown, even if it is the same again."""
    st.session_state.pop(SHOWN, None)


def tell_next(said: str) -> None:
    """What the next run says once."""
    st.session_state[SAID] = said


def told() -> str:
    """What this run is to say; empty if nothing."""
    return str(st.session_state.pop(SAID, ""))
