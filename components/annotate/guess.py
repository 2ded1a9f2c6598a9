"""One item of a study of guesses: what does the model say, and how sure are you? The model's answer is not sent."""

from __future__ import annotations

import time
from functools import partial

import streamlit as st

from components.annotate.ballot import draw_foot, draw_progress, draw_question, send
from components.annotate.session import Seat, looking_since, seat_of, tell_next
from components.ballot_maps import draw_input, explanation_html, scale_html
from components.trouble import literal, say_note
from engine.errors import ExegesisError
from engine.study.ballots import Ballot
from engine.study.codes import new_token
from engine.study.design import Design
from engine.study.forward.guesses import SUREST
from engine.study.voting import Answer, Guess

CLASS, SURE, MISSING = "annotate.class", "annotate.sure", "annotate.missing"
MOST_RADIOS = 12
"""Of more classes one is found by typing."""
ENDS = {1: "1, a mere guess", SUREST: f"{SUREST}, certain"}
BOTH = "Choose what the model says, and how sure you are."


def draw_guess(design: Design, ballot: Ballot, seat: Seat) -> None:
    """The item, with one explanation or none, and the form of the guess."""
    looking_since(ballot.token, ballot.age)
    draw_progress(ballot, seat)
    draw_question(design)
    draw_input(ballot.input)
    for drawn in ballot.maps:
        framed = f'<div class="xg xg-framed">{explanation_html(ballot.input, drawn)}</div>'
        st.html(framed + scale_html(None, drawn.colors))
    with st.form(f"annotate.guess.{ballot.token}", border=False):
        _draw_choices(ballot)
        if st.session_state.pop(MISSING, False):
            say_note(BOTH)
        with st.container(horizontal=True):
            st.form_submit_button("Confirm", type="primary", on_click=_guess, args=(seat, ballot.token))
            st.form_submit_button("Cannot tell", on_click=_answer, args=(seat, ballot.token, None))
    draw_foot(design, ballot, seat)


def _draw_choices(ballot: Ballot) -> None:
    """Keys have the ballot's name: another one begins without a choice."""
    names = dict(enumerate(map(literal, ballot.classes)))
    choose = partial(st.radio, horizontal=True) if len(names) <= MOST_RADIOS else st.selectbox
    choose(
        "What does the model say?",
        list(names),
        index=None,
        format_func=names.__getitem__,
        key=_key(CLASS, ballot.token),
    )
    st.radio(
        "How sure are you?",
        list(range(1, SUREST + 1)),
        index=None,
        horizontal=True,
        format_func=lambda sure: ENDS.get(sure, str(sure)),
        key=_key(SURE, ballot.token),
    )


def _guess(seat: Seat, ballot: str) -> None:
    label, sure = (st.session_state[_key(name, ballot)] for name in (CLASS, SURE))
    if label is None or sure is None:
        st.session_state[MISSING] = True
    else:
        _answer(seat, ballot, Guess(label, sure))


def _answer(seat: Seat, ballot: str, guess: Guess | None) -> None:
    """A second click on the same button changes nothing."""
    now = seat_of(seat.study)
    if now is None or now.last == ballot:
        return
    try:
        send(seat, Answer(ballot, new_token(), None, time.monotonic() - looking_since(ballot), guess))
    except ExegesisError as error:
        tell_next(f"{error} Your answer is not saved.")


def _key(name: str, ballot: str) -> str:
    return f"{name}.{ballot}"
