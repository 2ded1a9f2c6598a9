"""The screens of a participant: consent, code, instructions, items, and the end.

An item is a ballot with a board to rank its explanations, or with a form for a guess.
"""

from __future__ import annotations

import logging
import time
from functools import partial

import streamlit as st

from components.annotate.seat import (
    Seat,
    Step,
    change_seat,
    current_seat,
    failure_message,
    forget_view,
    leave_message,
    leave_seat,
    sync_tab,
    take_message,
    take_seat,
    viewed_since,
)
from components.ballot_maps import draw_input, edit_html, explanation_html, scale_html, use_ballot_styles
from components.errors import escape_label, show_error, show_note
from components.navigation import ANNOTATE, heading
from components.numbers import count
from components.organizer import client_of, current_visit
from components.prediction import prediction_html
from components.safe_markdown import markdown
from components.widgets.base import component_key
from components.widgets.ranking import ConfirmedRanking, draw_ranking_board, forget_ranking
from engine.errors import ExegesisError
from engine.request import Example, Picture
from engine.result import Prediction
from engine.study.access import new_token
from engine.study.annotators import (
    SUREST,
    Answer,
    Guess,
    StudyNotOpen,
    UnknownIdentifier,
    confirm,
    consent,
    join,
    resume,
    undo,
)
from engine.study.ballots import Ballot, next_ballot
from engine.study.design import COUNTERFACTUAL, DECIDE, PREDICT, Design
from engine.study.studies import DRAFT, StudyRecord, find_by_token

LOG = logging.getLogger(__name__)
COLUMN = 920
"""Width of the text column, in pixels."""
RELOAD = "Only confirmed answers are saved. Reload the page."
NO_LINK = "You need a study link to take part. Ask the organizer to send you one."
UNKNOWN = "This link does not belong to any study. Ask the sender for a new one."
NOT_YET = "This study has not opened yet. Come back later with the same link."
OVER = "This study is closed. Your confirmed answers are saved. Thank you."
TYPED_CODE = "annotate.typed"
KEEP_IT = (
    "Write it down or take a picture of it. With this code you can continue later, here or on another device. It is "
    "shown only now, and nobody can look it up for you."
)
MOST_BARS = 3
LOST = "Your last answer came after the study closed and was not saved."
QUESTION = "annotate_question"
PAUSE = (
    "You can close this page at any time: confirmed answers are saved. To continue, open the study link again and "
    "enter your code. In this tab you can continue without it, even after a reload."
)
CLASS_KEY, SURE_KEY, MISSING_KEY = "annotate.class", "annotate.sure", "annotate.missing"
MOST_RADIOS = 12
"""Maximum number of classes shown as radio buttons. More are shown in a select box, which can be searched."""
ENDS = {1: "1, just guessing", SUREST: f"{SUREST}, certain"}
BOTH = "Choose an answer and how sure you are."
CHOICES = {
    PREDICT: "What does the model say?",
    COUNTERFACTUAL: "What does the model say about the edited text?",
    DECIDE: "What is the correct answer?",
}


def draw_study(token: str) -> None:
    """Draw the next screen of a study, or an error message. `token`: of the study's link."""
    try:
        study = find_by_token(token) if token else None
        if study is None:
            _draw_no_study(token)
            return
        seat = current_seat(token)
        if message := take_message():
            show_note(message)
        sync_tab(token, seat, _draw_screen(study, seat), partial(_go_on, token))
    except ExegesisError as error:
        seat = current_seat(token)
        show_error(failure_message(error, seat.pseudonym if seat else "somebody with the link", RELOAD))


def _draw_no_study(token: str) -> None:
    """Draw the page without a link, or with an unknown one."""
    heading(ANNOTATE)
    if token:
        show_error(UNKNOWN)
    else:
        st.info(NO_LINK)


def _draw_screen(study: StudyRecord, seat: Seat | None) -> str:
    """Draw the screen and return its name, which is unique per ballot."""
    try:
        return _draw_open(study, seat) if study.takes_votes else _draw_shut(study)
    except StudyNotOpen:  # the study closed during the run
        return _draw_shut(study)
    except UnknownIdentifier as error:
        leave_seat()
        show_error(str(error))
        return "unknown"


def _draw_open(study: StudyRecord, seat: Seat | None) -> str:
    ballot = next_ballot(seat.person) if seat and seat.step == "items" else None
    is_wide = ballot is not None and isinstance(ballot.input, Picture)
    with st.container(width="stretch" if is_wide else COLUMN):
        if seat is None:
            _draw_welcome(study)
            return "welcome"
        if seat.step == "code":
            _draw_code(seat)
            return seat.step
        if seat.step == "instructions":
            _draw_instructions(study.design, seat)
            return seat.step
        if ballot is None:
            _draw_thanks(seat)
            return "thanks"
        draw_ballot(study.design, ballot, seat)
        return ballot.token


def _draw_shut(study: StudyRecord) -> str:
    """Draw the screen of a study that takes no votes and return its name."""
    st.title(escape_label(study.design.title), anchor=False)
    st.info(NOT_YET if study.state == DRAFT else OVER)
    return "shut"


def _draw_welcome(study: StudyRecord) -> None:
    """Draw the consent text and both ways to take part: agree, or enter a code."""
    st.title(escape_label(study.design.title), anchor=False)
    markdown(study.design.consent)
    st.text(workload(study.design))
    st.button("I agree and take part", type="primary", on_click=_agree, args=(study.token,))
    with st.expander("I have taken part before and have a code"), st.form("annotate.again", border=False):
        st.text_input("Your code", key=TYPED_CODE, placeholder="abcd-efgh-jkmn-pqrs", max_chars=60, autocomplete="off")
        st.form_submit_button("Continue", on_click=_submit_code, args=(study.token,))


def _draw_code(seat: Seat) -> None:
    """Draw the code until the participant confirms having it."""
    use_ballot_styles()
    st.title("Your code", anchor=False)
    with st.container(key="annotate_code"):
        st.code(seat.code, language=None)
    st.text(KEEP_IT)
    st.button("I have it", type="primary", on_click=partial(change_seat, seat.study, step="instructions"))


def _draw_instructions(design: Design, seat: Seat) -> None:
    """Draw the instructions before the first item, with the meaning of the colors."""
    use_ballot_styles()
    st.title("Instructions", anchor=False)
    markdown(design.instructions)
    st.html(scale_html(None, design.colors))
    st.text(workload(design))
    st.button("Begin", type="primary", on_click=partial(change_seat, seat.study, step="items"))


def _draw_thanks(seat: Seat) -> None:
    """Draw the last screen: all answers are saved, under this pseudonym."""
    st.title("Thank you", anchor=False)
    st.text(
        "You have answered every item. All of your answers are saved, and you can close this page.\n"
        f"They are stored under the pseudonym {seat.pseudonym}. Give it to the organizer if you want them deleted."
    )
    draw_way_back(seat, "thanks")
    draw_leave()


def workload(design: Design) -> str:
    """Return the number of items of a participant, in words."""
    number = design.practice + min(design.items_per_annotator, design.item_count) + design.repeats
    practice = f" The first {design.practice} are for practice." if design.practice > 1 else ""
    practice = " The first is for practice." if design.practice == 1 else practice
    return f"There {'is' if number == 1 else 'are'} {count(number, 'item')}.{practice}"


def _go_on(study: str, code: str, step: Step = "items") -> None:
    """Take a participant's seat with a code, or leave a message with the reason for a failure.

    `code`: typed by the participant, or stored by the tab. `step`: the next screen. The code is shown again until the
    participant confirms having it.
    """
    if current_seat(study):  # a tab that just received a code may still answer an older query
        return
    try:
        take_seat(study, resume(study, code, _source()), code, step)
    except StudyNotOpen:
        return  # the screen of a closed study shows it
    except UnknownIdentifier as error:
        leave_seat()
        leave_message(str(error))
    except ExegesisError as error:
        leave_message(failure_message(error, "somebody with a code"))


def _submit_code(study: str) -> None:
    _go_on(study, st.session_state[TYPED_CODE])


def _agree(study: str) -> None:
    """Join the study once: a second click on the same button has no effect."""
    if current_seat(study):
        return
    try:
        person, code = join(study, _source())
        take_seat(study, consent(person.id), code, "code")
    except ExegesisError as error:
        leave_message(failure_message(error, "somebody who agreed"))


def _source() -> str:
    """Return the source to which the limits of wrong codes and of joins apply."""
    return client_of(current_visit())


def draw_ballot(design: Design, ballot: Ballot, seat: Seat) -> None:
    """Draw an item with the board of its explanations, or with the form for a guess."""
    viewed_since(ballot.token, ballot.age)
    _draw_progress(ballot, seat)
    with st.container(key=QUESTION):
        markdown(design.question)
    if design.guessing:
        _draw_guess(design, ballot, seat)
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
    """Draw the progress, and a note that the last answer is saved."""
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
        if ballot.prediction is not None:
            _draw_prediction(ballot.prediction)
            st.html(_scale_html(ballot.prediction, ballot.maps[0].colors))
    explanations = [explanation_html(ballot.input, one) for one in ballot.maps]
    draw_ranking_board(explanations, board_key(ballot.token), partial(_save, seat, ballot.token), is_picture)


def _draw_prediction(prediction: Prediction) -> None:
    bars = prediction_html(prediction, prediction.index, most=MOST_BARS)
    of = ", of these two tokens alone" if prediction.of_two_tokens else ""
    st.html(f'<div class="xg"><p class="xg-small">The model says{of}</p>{bars}</div>')


def _scale_html(prediction: Prediction | None, colors: str) -> str:
    if prediction is None:
        return scale_html(None, colors)
    return scale_html("a higher score" if prediction.regression else prediction.label, colors)


def _draw_guess(design: Design, ballot: Ballot, seat: Seat) -> None:
    """Draw one explanation or none, and the form for a guess. The correct answer is not sent to the browser."""
    draw_input(ballot.input)
    if ballot.prediction is not None:
        _draw_prediction(ballot.prediction)
    for one in ballot.maps:
        framed = f'<div class="xg xg-framed">{explanation_html(ballot.input, one)}</div>'
        st.html(framed + _scale_html(ballot.prediction, one.colors))
    if ballot.edit is not None and isinstance(ballot.input, Example):
        st.html(edit_html(ballot.input, ballot.edit))
    with st.form(f"annotate.guess.{ballot.token}", border=False):
        _draw_choices(design, ballot)
        if st.session_state.pop(MISSING_KEY, False):
            show_note(BOTH)
        with st.container(horizontal=True):
            st.form_submit_button("Confirm", type="primary", on_click=_guess, args=(seat, ballot.token))
            st.form_submit_button("Cannot tell", on_click=_save_guess, args=(seat, ballot.token, None))


def _draw_choices(design: Design, ballot: Ballot) -> None:
    """Draw the choices. Their keys contain the ballot, so that the next ballot starts without a choice."""
    names = dict(enumerate(map(escape_label, ballot.classes)))
    choose = partial(st.radio, horizontal=True) if len(names) <= MOST_RADIOS else st.selectbox
    choose(
        CHOICES[design.mode], list(names), index=None, format_func=names.__getitem__,
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
    """Save the answer; it is on disk when this returns. Messages of errors are written for participants."""
    try:
        confirm(seat.person, answer)
    except StudyNotOpen:
        leave_message(LOST)  # the board, which would show the error, is no longer drawn
        raise
    except ExegesisError as error:
        raise ExegesisError(failure_message(error, seat.pseudonym, then="")) from error
    except Exception as error:
        LOG.error("an answer of %s could not be saved", seat.pseudonym, exc_info=error)
        raise ExegesisError("The server failed.") from error
    forget_view()
    change_seat(seat.study, last=answer.ballot, code="")


def _take_back(seat: Seat, token: str) -> None:
    """Undo the participant's last answer, also of an earlier session."""
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
