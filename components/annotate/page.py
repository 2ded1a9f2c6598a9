"""The screens of a participant: consent, code, instructions, the items, and the end."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components.annotate.ballot import draw_ballot, draw_leave, draw_way_back
from components.annotate.seat import (
    Seat,
    Step,
    change_seat,
    current_seat,
    failure_message,
    leave_message,
    leave_seat,
    sync_tab,
    take_message,
    take_seat,
)
from components.ballot_maps import scale_html, use_ballot_styles
from components.errors import escape_label, show_error, show_note
from components.navigation import ANNOTATE, heading
from components.numbers import count
from components.organizer import client_of, current_visit
from components.safe_markdown import markdown
from engine.errors import ExegesisError
from engine.request import Picture
from engine.study.annotators import StudyNotOpen, UnknownIdentifier, consent, join, resume
from engine.study.ballots import next_ballot
from engine.study.design import Design
from engine.study.studies import DRAFT, StudyRecord, find_by_token

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


def draw_study(token: str) -> None:
    """Draw the next screen of the study with that link, or the error of the server."""
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
    """Draw the screen; returns its name, which is unique per ballot."""
    try:
        return _draw_open(study, seat) if study.takes_votes else _draw_shut(study)
    except StudyNotOpen:  # it ended while this was drawn
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
    """Draw the screen of a study that takes no votes."""
    st.title(escape_label(study.design.title), anchor=False)
    st.info(NOT_YET if study.state == DRAFT else OVER)
    return "shut"


def _draw_welcome(study: StudyRecord) -> None:
    """Draw the consent text, and the two ways to take part: consent, or a code."""
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
    """Draw the end: everything is saved, under this pseudonym."""
    st.title("Thank you", anchor=False)
    st.text(
        "You have answered every item. All of your answers are saved, and you can close this page.\n"
        f"They are stored under the pseudonym {seat.pseudonym}. Give it to the organizer if you want them deleted."
    )
    draw_way_back(seat, "thanks")
    draw_leave()


def workload(design: Design) -> str:
    """Describe the number of items."""
    number = design.practice + min(design.items_per_annotator, design.item_count) + design.repeats
    practice = f" The first {design.practice} are for practice." if design.practice > 1 else ""
    practice = " The first is for practice." if design.practice == 1 else practice
    return f"There {'is' if number == 1 else 'are'} {count(number, 'item')}.{practice}"


def _go_on(study: str, code: str, step: Step = "items") -> None:
    """Take the participant's seat by a code that was typed or stored by the tab, or leave a message with the reason.

    `step`: the next screen. The code is shown again until the participant confirms having it.
    """
    if current_seat(study):  # a tab that just received a code may still answer an older query
        return
    try:
        take_seat(study, resume(study, code, _source()), code, step)
    except StudyNotOpen:
        return  # the screen of a closed study says it
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
    """The source for the limits of wrong codes and of joins."""
    return client_of(current_visit())
