"""Actions of an organizer: open, duplicate, close, archive, delete, import and export a study.

The actions are callbacks: the next run reports success or failure. Irreversible ones need a confirmation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from components.errors import describe_error, show_error, show_note
from components.export import file_button
from components.study.descriptions import one_line_title, study_progress
from engine.study import studies
from engine.study.studies import AnswerCounts, StudyRecord
from engine.study.study_file import export_study, import_study

STUDY, NEW = "study", "new"
"""Parameters of the address: a study, or the preset of a new one."""
FAILURE_KEY, NOTE_KEY = "study_failed", "study_done"
TYPED_TITLE = "study.delete.typed"
IMPORT_KEY, UPLOAD_KEY = "study.import", "study.import.file"
FILE_HELP = (
    "The design with its stored items and explanations, to run the same study elsewhere. Votes are not "
    "included: download them on the Study results page."
)


def show_study(study: int) -> None:
    """Open the page of one study."""
    st.query_params.from_dict({STUDY: str(study)})


def show_form(start: str) -> None:
    """Open the form of a new study."""
    st.query_params.from_dict({NEW: start})


def show_list() -> None:
    """Open the list."""
    st.query_params.clear()


def duplicate(study: int) -> None:
    """Create a draft of the same design and open it."""
    _try(
        lambda: show_study(studies.duplicate(study).id), "Study duplicated. The copy is a draft with its own join link."
    )


def close(study: int) -> None:
    _try(lambda: studies.close(study), "The study is closed and accepts no more votes.")


def archive(study: int) -> None:
    _try(lambda: studies.archive(study), "The study is archived. Its votes and results are not affected.")


def delete(study: int, title: str) -> None:
    """Delete the study with all of its data, and open the list."""
    _try(lambda: studies.delete(study), f"Study {study}, {title}, is deleted.")
    if FAILURE_KEY not in st.session_state:
        show_list()


def draw_outcome() -> None:
    """Draw the outcome of the last action, once."""
    if failure := st.session_state.pop(FAILURE_KEY, ""):
        show_error(failure)
    if note := st.session_state.pop(NOTE_KEY, ""):
        show_note(note)


def leave_note(text: str) -> None:
    """Leave a note for the next run."""
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
    """Ask for a confirmation."""
    st.text(f"So far: {study_progress(record, counts)}")
    st.markdown("A closed study accepts no more votes and cannot be reopened.")
    draw_dialog_buttons("Close the study", "Keep it open", partial(close, record.id))


@st.dialog("Delete the study?")
def confirm_deleting(record: StudyRecord, counts: AnswerCounts) -> None:
    """Ask for the title as a confirmation."""
    title = one_line_title(record)
    st.text(f"{title}\n{study_progress(record, counts)}")
    st.markdown("Deletes the study with its items, annotators and votes. This cannot be undone.")
    typed = st.text_input("Type the title to confirm", key=TYPED_TITLE, autocomplete="off")
    is_confirmed = " ".join(typed.split()) == title
    draw_dialog_buttons("Delete the study", "Keep it", partial(delete, record.id, title), disabled=not is_confirmed)


def draw_dialog_buttons(confirm: str, cancel: str, action: Callable[[], object], disabled: bool = False) -> None:
    """Draw the two buttons of a dialog, which both close it; the first one performs the action."""
    with st.container(horizontal=True, gap="small"):
        if st.button(confirm, type="primary", disabled=disabled):
            action()
            st.rerun()
        if st.button(cancel):
            st.rerun()


def draw_study_file_button(study: int) -> None:
    """Draw the download button of the study file."""
    name = f"study-{study}-design.json"
    file_button("Study file", name, "application/json", lambda: export_study(study), FILE_HELP, "study.file")


def draw_import() -> None:
    """Draw the section that imports a study file; it runs only while open."""
    section = st.expander("Import a study", icon=":material/upload_file:", key=IMPORT_KEY, on_change="rerun")
    if not section.open:
        return
    with section:
        file = st.file_uploader(
            "Study file",
            "json",
            key=UPLOAD_KEY,
            help="A file with votes becomes a closed study; a file without votes becomes a draft.",
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
    leave_note("Study imported. It has its own join link.")
    show_study(record.id)
    st.rerun()
