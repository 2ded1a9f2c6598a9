"""The imported maps: a table of the sets, and forms to import and remove a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import describe_error, error_html, show_error
from components.inputs.datasets import model_label
from components.organizer import is_organizer
from components.tables import draw_table
from engine.errors import ExegesisError, UsageError
from engine.format import count_text
from engine.input_kinds import INPUT_KINDS, list_models
from engine.lazy import LazyModule
from engine.maps import imported
from engine.maps.files import MOST_BYTES, read_maps

if TYPE_CHECKING:
    import pandas
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from engine.maps.imported import ImportedMaps
else:
    pandas = LazyModule("pandas")

FILE, NAME, MODEL, REMOVED = (f"library.maps.{name}" for name in ("file", "name", "model", "removed"))
FROM_FILE = ""
INTRODUCTION = (
    "Maps of other tools, imported from a file. Each set is a method on Text or Images, Evaluate, Compare and Study, "
    "for the inputs and the model that it holds maps of. Its maps are not recomputed."
)
EMPTY = "No imported maps yet. Import a file below, or run `exegesis maps import FILE --name NAME`."


def draw_maps() -> None:
    """Draw the imported sets and, for the organizer, the forms."""
    st.caption(INTRODUCTION)
    sets, damaged = imported.all_imported(), imported.damaged_sets()
    if sets:
        draw_table(pandas.DataFrame([table_row(one) for one in sets]), "maps")
    for reason in damaged.values():
        show_error(reason)
    if not sets and not damaged:
        st.info(EMPTY)
    if is_organizer():
        _draw_import()
        if names := sorted([*(one.name for one in sets), *damaged]):
            _draw_removal(names)


def table_row(stored: ImportedMaps) -> dict[str, object]:
    """Return the table row of a set."""
    try:
        problem = stored.why_not(stored.model)
    except ExegesisError as error:
        problem = str(error)
    return {
        "Method": stored.id,
        "Model": stored.model,
        "Tool": stored.tool,
        "Tool's method": stored.method,
        "Maps": stored.maps,
        "Imported": stored.date,
        "State": problem or "usable",
    }


def _draw_import() -> None:
    models = [model for kind in INPUT_KINDS for model in list_models(kind)]
    with st.form("library.maps.form"):
        st.file_uploader(
            "File of maps", ["json", "npz"], key=FILE, max_upload_size=MOST_BYTES // 10**6,
            help=f"At most {MOST_BYTES // 10**6} MB. The format is described in the documentation.",
        )  # fmt: skip
        left, right = st.columns(2, gap="medium")
        left.text_input("Name of the set", key=NAME, max_chars=50, placeholder="my-maps")
        right.selectbox(
            "Model that was explained", [FROM_FILE, *models], key=MODEL, accept_new_options=True,
            format_func=lambda model: model_label(model) if model else "As the file says",
        )  # fmt: skip
        if st.form_submit_button("Import", type="primary"):
            _import()


def _import() -> None:
    file, name, model = (st.session_state.get(key) for key in (FILE, NAME, MODEL))
    try:
        with st.spinner("Checking the maps …"):
            stored = import_upload(file, name or "", model or "")
    except Exception as error:
        st.html(error_html(describe_error(error)))
        return
    st.toast(f"Imported {count_text(stored.maps, 'map')}: {stored.id}.")
    st.rerun()


def import_upload(file: UploadedFile | None, name: str, model: str) -> ImportedMaps:
    """Import an uploaded file; one that is too large is not read. Errors: no file was chosen, or it is invalid."""
    if file is None:
        raise UsageError("file: choose a JSON or .npz file of maps.")
    if file.size > MOST_BYTES:
        raise UsageError(f"file: must have at most {MOST_BYTES // 10**6} MB, got {file.size / 10**6:.0f} MB.")
    return imported.import_maps(read_maps(file.getvalue(), file.name), name, model)


def _draw_removal(names: Sequence[str]) -> None:
    with st.popover("Remove a set"):
        name = st.selectbox("Set", names, key=REMOVED)
        st.caption("Results that were computed with it stay in the cache.")
        if st.button("Remove", key="library.maps.remove") and name:
            try:
                imported.remove(name)
            except Exception as error:
                st.html(error_html(describe_error(error)))
                return
            st.rerun()
