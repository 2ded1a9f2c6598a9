"""A study as a file: taken elsewhere, and brought here."""

from __future__ import annotations

import streamlit as st

from components.keeping import file_button
from components.study.actions import go_to, note
from components.trouble import say_error, sentence

OPEN, UPLOAD = "study.import", "study.import.file"
FILE_HELP = (
    "The design with its frozen items and explanations, to run the same study elsewhere. No votes are in it: they are "
    "among the files of the results."
)


def file_of_study(study: int) -> None:
    """A button that makes the study's file."""
    name = f"study-{study}-design.json"
    file_button("Study file", name, "application/json", lambda: _file(study), FILE_HELP, "study.file")


def import_area() -> None:
    """Closed it costs nothing."""
    opened = st.expander("Study from a file", icon=":material/upload_file:", key=OPEN, on_change="rerun")
    if not opened.open:
        return
    with opened:
        given = st.file_uploader(
            "A study file", "json", key=UPLOAD, help="With votes it becomes a closed study, without them a draft."
        )
        if given is not None and st.button("Import the study", type="primary", key="study.import.go"):
            _import(given.getvalue())


def _file(study: int) -> bytes:
    from engine.study.study_file import export_study

    return export_study(study)


def _import(data: bytes) -> None:
    from engine.study.study_file import import_study

    try:
        with st.spinner("Reading the study …"):
            made = import_study(data)
    except Exception as error:
        say_error(sentence(error))
        return
    note("The study was imported, with a join link of its own.")
    go_to(made.id)
    st.rerun()
