"""A study that has not opened: its form, saving it, and the way to its opening."""

from __future__ import annotations

from datetime import tzinfo

import streamlit as st

from cache import key_for
from components.study import opening as study_opening
from components.study.actions import go_to, note
from components.study.confirm import confirm_opening
from components.study.form import fill, held_design, study_form
from components.study.opening import Opening
from components.trouble import say_error, say_note, sentence
from engine.errors import ExegesisError
from engine.models.catalog import embedded_models
from engine.study.counts import frozen_items
from engine.study.design import Design, check, check_served
from engine.study.presets import PRESETS, preset
from engine.study.studies import StudyRecord, change, create

LOOK_SECONDS = 1.0
FROZEN = (
    "This study came from a file with its items and explanations: it opens at once, with exactly those. For another "
    "design, duplicate it."
)


def new_study(start: str, zone: tzinfo) -> None:
    """The form of a study that is not stored yet."""
    if start in PRESETS:
        st.header(f"New study: {PRESETS[start].title}", anchor=False)
        say_note(PRESETS[start].note(*_usual_model()))
    else:
        st.header("New study", anchor=False)
    with st.spinner("Starting the engine …"):
        fill(f"new {start}", _beginning(start), zone)
    study_form()
    if st.button("Save the draft", type="primary", key="study.save"):
        _create(zone)


def draft(record: StudyRecord, zone: tzinfo) -> None:
    """Its form, or how far its opening is."""
    opening = study_opening.opening_of(record.id)
    if opening is not None and not opening.over:
        st.fragment(_under_way, run_every=LOOK_SECONDS)(opening)
        return
    if opening is not None and (error := opening.trouble()):
        say_error(sentence(error))
    if frozen_items(record.id):
        say_note(FROZEN)
        _open_button(record, True)
        return
    with st.spinner("Starting the engine …"):
        fill(f"{record.id} {key_for(record.design.as_plain())}", record.design, zone)
    study_form()
    _saving(record, zone)


def _beginning(start: str) -> Design:
    model, _ = _usual_model()
    return preset(start).design(model, "reviews", "text") if start in PRESETS else Design(model=model)


def _usual_model() -> tuple[str, str]:
    """The model that a study begins with, and what it reads."""
    return next(iter(embedded_models()), ""), "text"


def _under_way(opening: Opening) -> None:
    if opening.over:
        if opening.trouble() is None:
            study_opening.forget(opening.study)
            note("The study is open. Send its link to the people who take part.")
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        share, words = opening.progress
        st.progress(min(1.0, share), f"Opening: {words}")
        st.button("Stop", key="study.stop", on_click=opening.stop, help="What is computed is kept for the next time.")


def _saving(record: StudyRecord, zone: tzinfo) -> None:
    try:
        held = check(held_design(zone))
        check_served(held)
        trouble = ""
    except ExegesisError as error:
        held, trouble = None, str(error)
    saved = held == record.design
    if trouble:
        say_error(trouble)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button("Save the draft", key="study.save", disabled=saved or held is None) and held is not None:
            _save(record, held)
        _open_button(record, saved)


def _open_button(record: StudyRecord, saved: bool) -> None:
    asked = st.button(
        "Open the study …", type="primary", key="study.open", disabled=not saved,
        help="Asks first." if saved else "Save the draft first.",
    )  # fmt: skip
    if asked:
        confirm_opening(record)


def _save(record: StudyRecord, held: Design) -> None:
    try:
        change(record.id, held)
    except ExegesisError as error:
        say_error(sentence(error))
        return
    study_opening.forget(record.id)
    note("The draft is saved.")
    st.rerun()


def _create(zone: tzinfo) -> None:
    try:
        record = create(held_design(zone))
    except ExegesisError as error:
        say_error(sentence(error))
        return
    note("The draft is saved. Open it when it is as you want it.")
    go_to(record.id)
    st.rerun()
