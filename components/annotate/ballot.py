"""One item of a study as its participant answers it: what they see, the board, and how to go back or pause."""

from __future__ import annotations

import logging
import time
from functools import partial

import streamlit as st

from components.annotate.ranking import Ranked, forget, ranking
from components.annotate.session import (
    Seat,
    change_seat,
    forget_look,
    leave_seat,
    looking_since,
    tell_next,
)
from components.ballot_maps import draw_input, explanation_html, scale_html
from components.component_key import component_key
from components.prediction import prediction_html
from components.safe_markdown import markdown
from components.study.told import told_of
from engine.errors import ExegesisError
from engine.request import Picture
from engine.result import Prediction
from engine.study.annotators import NotOpen
from engine.study.ballots import Ballot
from engine.study.codes import new_token
from engine.study.design import Design
from engine.study.voting import Answer, confirm, undo

LOG = logging.getLogger(__name__)
MOST_BARS = 3
LOST = "Your last answer came after the end of the study and is not kept."
QUESTION = "annotate_question"
COLUMN = 920
"""Width in pixels that texts are read in."""
PAUSE = (
    "Simply close this page: what you confirmed is saved. To go on, open the link that you were sent and type your "
    "code. In this tab you go on without it, even after a reload."
)


def draw_ballot(design: Design, ballot: Ballot, seat: Seat) -> None:
    """The item with its explanations to rank."""
    looking_since(ballot.token, ballot.age)
    draw_progress(ballot, seat)
    draw_question(design)
    pictured = isinstance(ballot.input, Picture)
    shown, said = st.columns(2, gap="medium") if pictured else (st.container(), st.container())
    with shown:
        draw_input(ballot.input)
    with said:
        _draw_prediction(ballot.prediction, ballot.maps[0].colors)
    explanations = [explanation_html(ballot.input, drawn) for drawn in ballot.maps]
    ranking(explanations, board(ballot.token), partial(_save, seat, ballot.token), pictured)
    draw_foot(design, ballot, seat)


def draw_progress(ballot: Ballot, seat: Seat) -> None:
    """Where they are, and that the last answer is saved."""
    st.title("Practice" if ballot.practice else f"Item {ballot.done + 1} of {ballot.of}", anchor=False)
    st.progress(ballot.done / max(1, ballot.of))
    saved = "Your last answer is saved. " if seat.last else ""
    trial = "This one is for practice and does not count." if ballot.practice else ""
    st.caption(f"{saved}{trial}" or "Take the time that you need.")


def draw_question(design: Design) -> None:
    """What is asked of every item."""
    with st.container(key=QUESTION):
        markdown(design.question)


def draw_foot(design: Design, ballot: Ballot, seat: Seat) -> None:
    """The way back, the instructions again, and how to pause."""
    if ballot.done > 0 or seat.last:
        draw_way_back(seat, ballot.token)
    with st.expander("What to do"):
        markdown(design.instructions)
    with st.expander("Pause"):
        st.text(PAUSE)
        draw_leave()


def draw_way_back(seat: Seat, screen: str) -> None:
    """Opens the last answer again. A second click on the button of the same screen takes back nothing more."""
    key = f"annotate.back.{screen}"
    st.button("Take back my last answer", key=key, on_click=_take_back, args=(seat, new_token()))


def draw_leave() -> None:
    """For a device that others use too."""
    st.button("Forget me in this tab", on_click=leave_seat, help="Then somebody else can take part from here.")


def board(ballot: str) -> str:
    """The key of a ballot's board."""
    return component_key(f"annotate.board.{ballot}")


def send(seat: Seat, answer: Answer) -> None:
    """Keeps the answer; it is saved when this returns. Errors are fit for a participant's eyes."""
    try:
        confirm(seat.person, answer)
    except NotOpen:
        tell_next(LOST)  # the board, which would say it, is not drawn any more
        raise
    except ExegesisError as error:
        raise ExegesisError(told_of(error, seat.pseudonym, then="")) from error
    except Exception as error:
        LOG.error("an answer of %s could not be saved", seat.pseudonym, exc_info=error)
        raise ExegesisError("The server failed.") from error
    forget_look()
    change_seat(seat.study, last=answer.ballot, code="")


def _save(seat: Seat, ballot: str, ranked: Ranked) -> None:
    send(seat, Answer(ballot, ranked.token, ranked.ranks, time.monotonic() - looking_since(ballot)))


def _take_back(seat: Seat, token: str) -> None:
    """The last answer, of this session or of an earlier one, is open again."""
    try:
        ballot = undo(seat.person, token)
    except ExegesisError as error:
        tell_next(told_of(error, seat.pseudonym))
        return
    forget_look()
    change_seat(seat.study, last="")
    if ballot is not None:
        forget(board(ballot))
    tell_next("Your last answer is taken back: here it is again." if ballot else "There is no answer to take back.")


def _draw_prediction(said: Prediction | None, colors: str) -> None:
    if said is None:
        return
    bars = prediction_html(said, said.index, most=MOST_BARS)
    st.html(f'<div class="xg"><p class="xg-small">The model says</p>{bars}</div>')
    st.html(scale_html("a higher score" if said.regression else said.label, colors))
