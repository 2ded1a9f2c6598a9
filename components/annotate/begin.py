"""How a participant begins: they read what the study asks and agree, write down their code, read what to do."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components import admission
from components.annotate.session import Seat, Step, change_seat, leave_seat, seat_of, take_seat, tell_next
from components.ballot_maps import use_ballot_styles
from components.numbers import count
from components.organiser import visit
from components.safe_markdown import markdown
from components.study.told import told_of
from components.trouble import literal
from engine.errors import ExegesisError
from engine.study.annotators import NotKnown, consent, join, resume
from engine.study.design import Design, counted_items
from engine.study.limits import source_of
from engine.study.studies import StudyRecord

TYPED = "annotate.typed"
KEEP_IT = (
    "Write it down, or take a picture of it. With it you can go on later, here or on another device. It is shown only "
    "now, and nobody can look it up for you."
)


def draw_welcome(study: StudyRecord) -> None:
    """What the study asks, and the two ways in: to agree, or with a code."""
    st.title(literal(study.design.title), anchor=False)
    markdown(study.design.consent)
    st.text(amount(study.design))
    st.button("I agree and take part", type="primary", on_click=_agree, args=(study.token,))
    with st.expander("I have taken part before and have a code"), st.form("annotate.again", border=False):
        st.text_input("Your code", key=TYPED, placeholder="abcd-efgh-jkmn-pqrs", max_chars=60, autocomplete="off")
        st.form_submit_button("Go on", on_click=_typed, args=(study.token,))


def draw_code(seat: Seat) -> None:
    """The code, until they have it."""
    use_ballot_styles()
    st.title("Your code", anchor=False)
    with st.container(key="annotate_code"):
        st.code(seat.code, language=None)
    st.text(KEEP_IT)
    st.button("I have it", type="primary", on_click=partial(change_seat, seat.study, step="instructions"))


def draw_instructions(design: Design, seat: Seat) -> None:
    """What to do, before the first item."""
    st.title("What to do", anchor=False)
    markdown(design.instructions)
    st.text(amount(design))
    st.button("Begin", type="primary", on_click=partial(change_seat, seat.study, step="items"))


def amount(design: Design) -> str:
    """How much there is to do, in words."""
    fresh = min(design.items_per_annotator, counted_items(design))
    before = f" The first {design.practice} are for practice." if design.practice > 1 else ""
    before = " The first is for practice." if design.practice == 1 else before
    return f"There are {count(design.practice + fresh + design.repeats, 'item')}.{before}"


def go_on(study: str, code: str, step: Step = "items") -> None:
    """Takes the participant's seat by their code, as typed or as the tab has kept it; says why if that fails.

    `step`: what they read next. Who has not said yet that they have the code is shown it again.
    """
    if seat_of(study):  # a tab that was just given a code may answer an older question for it
        return
    try:
        take_seat(study, resume(study, code, _source()), code, step)
    except NotKnown as error:
        leave_seat()
        tell_next(str(error))
    except ExegesisError as error:
        tell_next(told_of(error, "somebody with a code"))


def _typed(study: str) -> None:
    go_on(study, st.session_state[TYPED])


def _agree(study: str) -> None:
    """A second click on the same button joins nobody else."""
    if seat_of(study):
        return
    try:
        person, code = join(study, _source())
        take_seat(study, consent(person.id), code, "code")
    except ExegesisError as error:
        tell_next(told_of(error, "somebody who agreed"))


def _source() -> str:
    """Whose wrong codes, and whose joining, are counted together."""
    return source_of(admission.source_of(visit()))
