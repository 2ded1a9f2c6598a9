"""What an organizer does to a study: go to it, copy, close, archive, delete, import and export it.

Callbacks: what failed, or was done, is said on the next run. What cannot be undone is confirmed first.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.errors import describe_error, show_error, show_note
from components.export import file_button
from components.study.descriptions import one_line_title, study_progress
from engine.study import studies
from engine.study.studies import AnswerCounts, StudyRecord
from engine.study.study_file import export_study, import_study

STUDY, NEW = "study", "new"
"""Parameters of the address: which study, or what a new one begins with."""
FAILURE_KEY, NOTE_KEY = "study_failed", "study_done"
TYPED_TITLE = "study.delete.typed"
IMPORT_KEY, UPLOAD_KEY = "study.import", "study.import.file"
FILE_HELP = (
    "The design with its frozen items and explanations, to run the same study elsewhere. No votes are in it: they are "
    "among the files of the results."
)


def show_study(study: int) -> None:
    """Go to one study."""
    st.query_params.from_dict({STUDY: str(study)})


def show_form(start: str) -> None:
    """Go to the form of a new study."""
    st.query_params.from_dict({NEW: start})


def show_list() -> None:
    """Go to the list."""
    st.query_params.clear()


def duplicate(study: int) -> None:
    """Make a draft of the same design and go to it."""
    _try(lambda: show_study(studies.duplicate(study).id), "This is the copy: a draft with a link of its own.")


def close(study: int) -> None:
    _try(lambda: studies.close(study), "The study is closed: it takes no more votes.")


def archive(study: int) -> None:
    _try(lambda: studies.archive(study), "The study is archived: its votes and results stay.")


def delete(study: int, title: str) -> None:
    """Remove it with all that belongs to it, and go to the list."""
    _try(lambda: studies.delete(study), f"Study {study}, {title}, is deleted.")
    if FAILURE_KEY not in st.session_state:
        show_list()


def draw_outcome() -> None:
    """Draw what the last action came to, once."""
    if failure := st.session_state.pop(FAILURE_KEY, ""):
        show_error(failure)
    if note := st.session_state.pop(NOTE_KEY, ""):
        show_note(note)


def leave_note(text: str) -> None:
    """Set what is said on the next run."""
    st.session_state[NOTE_KEY] = text


def _try(action: Callable[[], object], note: str) -> None:
    try:
        action()
    except Exception as error:
        st.session_state[FAILURE_KEY] = describe_error(error)
    else:
        leave_note(note)


@st.dialog("Close the study?")
def confirm_closing(record: StudyRecord, counts: AnswerCounts) -> None:
    """Say that it is for good."""
    st.text(f"So far: {study_progress(record, counts)}")
    st.markdown("It takes no more votes then, and cannot be opened again.")
    with dialog_buttons():
        if st.button("Close the study", type="primary", on_click=close, args=(record.id,)):
            st.rerun()
        if st.button("Keep it open"):
            st.rerun()


@st.dialog("Delete the study?")
def confirm_deleting(record: StudyRecord, counts: AnswerCounts) -> None:
    """Wait for its title to be typed."""
    title = one_line_title(record)
    st.text(f"{title}\n{study_progress(record, counts)}")
    st.markdown("It goes with its items, its annotators and their votes. This cannot be undone.")
    typed = st.text_input("Type the title to confirm", key=TYPED_TITLE, autocomplete="off")
    with dialog_buttons():
        sure = " ".join(typed.split()) == title
        if st.button("Delete the study", type="primary", disabled=not sure, on_click=delete, args=(record.id, title)):
            st.rerun()
        if st.button("Keep it"):
            st.rerun()


def dialog_buttons() -> DeltaGenerator:
    """The row of a dialog's buttons."""
    return st.container(horizontal=True, gap="small")


def draw_study_file_button(study: int) -> None:
    """Draw the button that makes the study's file."""
    name = f"study-{study}-design.json"
    file_button("Study file", name, "application/json", lambda: export_study(study), FILE_HELP, "study.file")


def draw_import() -> None:
    """Draw the section that brings a study from a file; closed it costs nothing."""
    section = st.expander("Study from a file", icon=":material/upload_file:", key=IMPORT_KEY, on_change="rerun")
    if not section.open:
        return
    with section:
        file = st.file_uploader(
            "A study file", "json", key=UPLOAD_KEY, help="With votes it becomes a closed study, without them a draft."
        )
        if file is not None and st.button("Import the study", type="primary", key="study.import.go"):
            _import(file.getvalue())


def _import(data: bytes) -> None:
    try:
        with st.spinner("Reading the study …"):
            record = import_study(data)
    except Exception as error:
        show_error(describe_error(error))
        return
    leave_note("The study was imported, with a join link of its own.")
    show_study(record.id)
    st.rerun()
