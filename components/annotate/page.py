"""Which screen a participant is at, and its drawing."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components.annotate.ballot import COLUMN, draw_ballot
from components.annotate.begin import draw_code, draw_instructions, draw_welcome, go_on
from components.annotate.guess import draw_guess
from components.annotate.session import Seat, leave_seat, seat_of, seen, told
from components.annotate.states import draw_no_study, draw_shut, draw_thanks
from components.annotate.tab import tab
from components.study.told import told_of
from components.trouble import say_error, say_note
from engine.errors import ExegesisError
from engine.request import Picture
from engine.study.annotators import NotKnown, NotOpen
from engine.study.ballots import next_ballot
from engine.study.design import PREDICT
from engine.study.studies import StudyRecord, by_token

RELOAD = "What it did not confirm is not saved. Load the page again."


def draw_study(token: str) -> None:
    """The screen of the study with that link which comes next, or that the server fails."""
    try:
        _draw_next(token)
    except ExegesisError as error:
        seat = seat_of(token)
        say_error(told_of(error, seat.pseudonym if seat else "somebody with the link", RELOAD))


def _draw_next(token: str) -> None:
    study = by_token(token) if token else None
    if study is None:
        draw_no_study(token)
        return
    seat = seat_of(token)
    said = told()
    if said:
        say_note(said)
    tab(token, seat, _draw(study, seat), partial(go_on, token), seen)


def _draw(study: StudyRecord, seat: Seat | None) -> str:
    """Draws the screen; its name, which is another for each ballot."""
    try:
        return _draw_open(study, seat) if study.takes_votes else _shut(study)
    except NotOpen:  # it ended while this was drawn
        return _shut(study)
    except NotKnown as error:
        leave_seat()
        say_error(str(error))
        return "unknown"


def _draw_open(study: StudyRecord, seat: Seat | None) -> str:
    ballot = next_ballot(seat.person) if seat and seat.step == "items" else None
    wide = ballot is not None and isinstance(ballot.input, Picture)
    with st.container(width="stretch" if wide else COLUMN):
        if seat is None or seat.step != "items":
            return _begin(study, seat)
        if ballot is None:
            draw_thanks(seat)
            return "thanks"
        draw = draw_guess if study.design.mode == PREDICT else draw_ballot
        draw(study.design, ballot, seat)
        return ballot.token


def _begin(study: StudyRecord, seat: Seat | None) -> str:
    if seat is None:
        draw_welcome(study)
        return "welcome"
    if seat.step == "code":
        draw_code(seat)
    else:
        draw_instructions(study.design, seat)
    return seat.step


def _shut(study: StudyRecord) -> str:
    draw_shut(study)
    return "shut"
