"""One item of a study: the ballot, the ranking board or the form of a guess, undo and pause."""

from __future__ import annotations

import logging
import time
from functools import partial

import streamlit as st

from components.annotate.seat import (
    Seat,
    change_seat,
    current_seat,
    failure_message,
    forget_view,
    leave_message,
    leave_seat,
    viewed_since,
)
from components.ballot_maps import draw_input, explanation_html, scale_html
from components.errors import escape_label, show_note
from components.prediction import prediction_html
from components.safe_markdown import markdown
from components.widgets.base import component_key
from components.widgets.ranking import ConfirmedRanking, draw_ranking_board, forget_ranking
from engine.errors import ExegesisError
from engine.request import Picture
from engine.result import Prediction
from engine.study.access import new_token
from engine.study.annotators import SUREST, Answer, Guess, StudyNotOpen, confirm, undo
from engine.study.ballots import Ballot
from engine.study.design import PREDICT, Design

LOG = logging.getLogger(__name__)
MOST_BARS = 3
LOST = "Your last answer came after the study closed and was not saved."
QUESTION = "annotate_question"
PAUSE = (
    "You can close this page at any time: confirmed answers are saved. To continue, open the study link again and "
    "enter your code. In this tab you can continue without it, even after a reload."
)
CLASS_KEY, SURE_KEY, MISSING_KEY = "annotate.class", "annotate.sure", "annotate.missing"
MOST_RADIOS = 12
"""More classes are chosen in a select box, where typing searches."""
ENDS = {1: "1, just guessing", SUREST: f"{SUREST}, certain"}
BOTH = "Choose the model's answer and how sure you are."


def draw_ballot(design: Design, ballot: Ballot, seat: Seat) -> None:
    """Draw the item with the board of its explanations, or with the form of a guess."""
    viewed_since(ballot.token, ballot.age)
    _draw_progress(ballot, seat)
    with st.container(key=QUESTION):
        markdown(design.question)
    if design.mode == PREDICT:
        _draw_guess(ballot, seat)
    else:
        _draw_ranking(ballot, seat)
    if ballot.done > 0 or seat.last:
        draw_way_back(seat, ballot.token)
    with st.expander("Instructions"):
        markdown(design.instructions)
    with st.expander("Pause"):
        st.text(PAUSE)
        draw_leave()


def draw_way_back(seat: Seat, screen: str) -> None:
    """Draw the button that undoes the last answer. A second click on the same screen has no effect."""
    key = f"annotate.back.{screen}"
    st.button("Undo my last answer", key=key, on_click=_take_back, args=(seat, new_token()))


def draw_leave() -> None:
    """Draw the button that signs out, for a shared device."""
    st.button(
        "Sign out in this tab",
        on_click=leave_seat,
        help="Removes your code from this tab, so that somebody else can take part on this device.",
    )


def board_key(ballot: str) -> str:
    """The key of a ballot's board."""
    return component_key(f"annotate.board.{ballot}")


def _draw_progress(ballot: Ballot, seat: Seat) -> None:
    """Draw the progress, and that the last answer is saved."""
    st.title("Practice" if ballot.practice else f"Item {ballot.done + 1} of {ballot.of}", anchor=False)
    st.progress(ballot.done / max(1, ballot.of))
    saved = "Your last answer is saved. " if seat.last else ""
    trial = "This item is for practice and does not count." if ballot.practice else ""
    st.caption(f"{saved}{trial}" or "Take as much time as you need.")


def _draw_ranking(ballot: Ballot, seat: Seat) -> None:
    is_picture = isinstance(ballot.input, Picture)
    left, right = st.columns(2, gap="medium") if is_picture else (st.container(), st.container())
    with left:
        draw_input(ballot.input)
    with right:
        _draw_prediction(ballot.prediction, ballot.maps[0].colors)
    explanations = [explanation_html(ballot.input, one) for one in ballot.maps]
    draw_ranking_board(explanations, board_key(ballot.token), partial(_save, seat, ballot.token), is_picture)


def _draw_prediction(prediction: Prediction | None, colors: str) -> None:
    if prediction is None:
        return
    bars = prediction_html(prediction, prediction.index, most=MOST_BARS)
    st.html(f'<div class="xg"><p class="xg-small">The model says</p>{bars}</div>')
    st.html(scale_html("a higher score" if prediction.regression else prediction.label, colors))


def _draw_guess(ballot: Ballot, seat: Seat) -> None:
    """Draw one explanation or none, and the form of the guess. The prediction is not sent to the browser."""
    draw_input(ballot.input)
    for one in ballot.maps:
        framed = f'<div class="xg xg-framed">{explanation_html(ballot.input, one)}</div>'
        st.html(framed + scale_html(None, one.colors))
    with st.form(f"annotate.guess.{ballot.token}", border=False):
        _draw_choices(ballot)
        if st.session_state.pop(MISSING_KEY, False):
            show_note(BOTH)
        with st.container(horizontal=True):
            st.form_submit_button("Confirm", type="primary", on_click=_guess, args=(seat, ballot.token))
            st.form_submit_button("Cannot tell", on_click=_save_guess, args=(seat, ballot.token, None))


def _draw_choices(ballot: Ballot) -> None:
    """Draw the choices. Their keys contain the ballot, so that the next one starts without a choice."""
    names = dict(enumerate(map(escape_label, ballot.classes)))
    choose = partial(st.radio, horizontal=True) if len(names) <= MOST_RADIOS else st.selectbox
    choose(
        "What does the model say?", list(names), index=None, format_func=names.__getitem__,
        key=f"{CLASS_KEY}.{ballot.token}",
    )  # fmt: skip
    st.radio(
        "How sure are you?", list(range(1, SUREST + 1)), index=None, horizontal=True,
        format_func=lambda sure: ENDS.get(sure, str(sure)), key=f"{SURE_KEY}.{ballot.token}",
    )  # fmt: skip


def _guess(seat: Seat, ballot: str) -> None:
    label, sure = (st.session_state[f"{key}.{ballot}"] for key in (CLASS_KEY, SURE_KEY))
    if label is None or sure is None:
        st.session_state[MISSING_KEY] = True
    else:
        _save_guess(seat, ballot, Guess(label, sure))


def _save_guess(seat: Seat, ballot: str, guess: Guess | None) -> None:
    """Save the guess once: a second click on the same button has no effect."""
    now = current_seat(seat.study)
    if now is None or now.last == ballot:
        return
    try:
        _send(seat, Answer(ballot, new_token(), None, time.monotonic() - viewed_since(ballot), guess))
    except ExegesisError as error:
        leave_message(f"{error} Your answer was not saved.")


def _save(seat: Seat, ballot: str, ranking: ConfirmedRanking) -> None:
    _send(seat, Answer(ballot, ranking.token, ranking.ranks, time.monotonic() - viewed_since(ballot)))


def _send(seat: Seat, answer: Answer) -> None:
    """Save the answer; it is on the disk when this returns. Error messages are for participants."""
    try:
        confirm(seat.person, answer)
    except StudyNotOpen:
        leave_message(LOST)  # the board, which would say it, is not drawn any more
        raise
    except ExegesisError as error:
        raise ExegesisError(failure_message(error, seat.pseudonym, then="")) from error
    except Exception as error:
        LOG.error("an answer of %s could not be saved", seat.pseudonym, exc_info=error)
        raise ExegesisError("The server failed.") from error
    forget_view()
    change_seat(seat.study, last=answer.ballot, code="")


def _take_back(seat: Seat, token: str) -> None:
    """Undo the last answer, of this session or of an earlier one."""
    try:
        ballot = undo(seat.person, token)
    except ExegesisError as error:
        leave_message(failure_message(error, seat.pseudonym))
        return
    forget_view()
    change_seat(seat.study, last="")
    if ballot is not None:
        forget_ranking(board_key(ballot))
    leave_message(
        "Your last answer is undone. You can answer this item again." if ballot else "There is no answer to undo."
    )
