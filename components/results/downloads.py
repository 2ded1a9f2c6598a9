"""A study as files: its tables as CSV or JSON, all results, and the file that recreates it. People are pseudonyms."""

from __future__ import annotations

import json
from collections.abc import Mapping

import streamlit as st

from components.keeping import file_button
from components.results.shown import Shown
from engine.sheets import as_csv, as_json

FORMATS = {"csv": "CSV", "json": "JSON"}
WRITTEN = {"csv": ("text/csv", as_csv), "json": ("application/json", as_json)}
TABLES: Mapping[str, tuple[str, str]] = {
    "votes": ("Votes", "A row an answer that was not taken back; what the rules leave out says so."),
    "orders": ("Orders", "A row a ballot: which method stood at which place."),
    "items": ("Items", "What was shown, and what the model said of it."),
    "ratings": ("Ratings", "A row a method: skill, interval, first and last place."),
}
NOTE = "Methods go by their ids, people by pseudonyms. Cells that a spreadsheet would run as formulas are defused."
STUDY_FILE = (
    "The design with the frozen items and explanations, and the answers: to show or to go on with the study elsewhere."
)


def downloads_section(shown: Shown) -> None:
    """Buttons; a file is made when its button is pressed."""
    st.caption(NOTE)
    ending = st.segmented_control(
        "Tables as", list(FORMATS), default="csv", required=True, format_func=FORMATS.__getitem__, key="results.format"
    )
    with st.container(horizontal=True):
        for table in TABLES:
            _table_button(shown.found.study.id, table, str(ending))
        _results_button(shown)
        _study_button(shown.found.study.id)


def _table_button(study: int, table: str, ending: str) -> None:
    title, help = TABLES[table]
    kind, write = WRITTEN[ending]
    name = f"study-{study}-{table}.{ending}"
    file_button(title, name, kind, lambda: write(_rows(study, table)), help, f"results.file.{table}.{ending}")


def _rows(study: int, table: str) -> list[dict[str, object]]:
    from engine.study.exports import rows

    return rows(study, table)


def _results_button(shown: Shown) -> None:
    name = f"study-{shown.found.study.id}-results.json"
    help = "Every number of this page, with its meaning in words."
    file_button("All results", name, "application/json", lambda: _results(shown), help, "results.file.results")


def _results(shown: Shown) -> str:
    from engine.study.exports import results_plain

    return json.dumps(results_plain(shown.found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _study_button(study: int) -> None:
    from engine.study.study_file import export_study

    name = f"study-{study}.json"
    file_button(
        "Study file",
        name,
        "application/json",
        lambda: export_study(study, votes=True),
        STUDY_FILE,
        "results.file.study",
    )
