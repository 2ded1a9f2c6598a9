"""Questions before what cannot be undone: opening, closing and deleting a study."""

from __future__ import annotations

import streamlit as st

from components.study import opening as study_opening
from components.study.actions import close, delete
from components.study.view import progress, titled
from engine.study.counts import Counts
from engine.study.design import counted_items
from engine.study.studies import StudyRecord

TYPED = "study.delete.typed"


@st.dialog("Open the study?")
def confirm_opening(record: StudyRecord) -> None:
    """What is fixed by it."""
    design = record.design
    items, shown = counted_items(design) + design.practice, len(design.shown)
    st.text(f"{items:,} items, {shown} explanations of each: {items * shown:,} in all")
    st.markdown(
        "They are computed and frozen: later changes of the model, the data or the program cannot alter what people "
        "see. The design cannot be changed afterwards, nor the rules for leaving out votes. Computing goes on when you "
        "close this page."
    )
    with _answers():
        if st.button("Open the study", type="primary", on_click=_begin, args=(record.id,)):
            st.rerun()
        if st.button("Not yet"):
            st.rerun()


@st.dialog("Close the study?")
def confirm_closing(record: StudyRecord, counted: Counts) -> None:
    """That it is for good."""
    st.text(f"So far: {progress(record, counted)}")
    st.markdown("It takes no more votes then, and cannot be opened again.")
    with _answers():
        if st.button("Close the study", type="primary", on_click=close, args=(record.id,)):
            st.rerun()
        if st.button("Keep it open"):
            st.rerun()


@st.dialog("Delete the study?")
def confirm_deleting(record: StudyRecord, counted: Counts) -> None:
    """Its title must be typed."""
    title = titled(record)
    st.text(f"{title}\n{progress(record, counted)}")
    st.markdown("It goes with its items, its annotators and their votes. This cannot be undone.")
    typed = st.text_input("Type the title to confirm", key=TYPED, autocomplete="off")
    with _answers():
        sure = " ".join(typed.split()) == title
        if st.button("Delete the study", type="primary", disabled=not sure, on_click=delete, args=(record.id, title)):
            st.rerun()
        if st.button("Keep it"):
            st.rerun()


def _begin(study: int) -> None:
    study_opening.begin(study)


def _answers() -> st.delta_generator.DeltaGenerator:
    return st.container(horizontal=True, gap="small")
