"""What is kept of a scaffold: rows as files, the learned explainer, how to cite and to repeat it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from components.citing import cited_html
from components.experiment.export import TYPES
from components.keeping import REPEATS, cite_box, file_button
from components.library_html import note_html
from components.organizer import is_organizer
from components.scaffold.session import key
from components.scaffold.words import CITED, SAVE_HELP
from components.trouble import say_error, sentence
from engine.errors import ExegesisError
from engine.home import product_version
from engine.scaffold.command import command as teaching

if TYPE_CHECKING:
    from components.scaffold.state import ScaffoldState
    from engine.scaffold.plan import Plan
    from engine.scaffold.result import Scaffold

ROWS_HELP = "A row a student, and a row a pass and measure: what `exegesis scaffold --out` writes."
SAVE = "Save the learned explainer"
SAVED = (
    "Saved as {} ({}). Method smat uses it for {} from now on, on every page and in the command; the newest counts "
    "where several are saved."
)


def keep_area(state: ScaffoldState, found: Scaffold, size: int) -> None:
    """Files to download, the explainer to save, and how to cite. A file is built when its button is pressed."""
    from engine.scaffold.export import FORMATS

    st.subheader("Keep", anchor=False)
    with st.container(horizontal=True, gap="small", key=key(state.kind, "keep")):
        for ending, write in FORMATS.items():
            file_button(
                f"Rows, {ending.upper()}", f"exegesis-scaffold.{ending}", TYPES[ending], _rows(found, write),
                ROWS_HELP, key(state.kind, f"keep.{ending}"),
            )  # fmt: skip
        if found.median_outcome(size) is not None and is_organizer():
            _save_button(state, found, size)
    _said(state)
    cite_box(cited_html(cite(found.plan), [CITED]), [(f"{REPEATS}:", command(found.plan))], key(state.kind, "cite"))


def command(plan: Plan) -> str:
    """The command that gives the same rows."""
    return f"{teaching(plan)} --out rows.csv"


def cite(plan: Plan) -> str:
    """One sentence: what made these numbers, of which teacher and data."""
    sizes, seeds = (", ".join(map(str, values)) for values in (plan.train_sizes, plan.seeds))
    return (
        f"Exegesis {product_version()}. Simulability of {plan.teacher} on {plan.dataset}, {len(plan.settings)} "
        f"settings, train sizes {sizes}, seeds {seeds}."
    )


def _save_button(state: ScaffoldState, found: Scaffold, size: int) -> None:
    st.button(
        SAVE, key=key(state.kind, "save"), on_click=_save, args=(state.kind, found, size), help=SAVE_HELP,
        icon=":material/save:",
    )  # fmt: skip


def _save(kind: str, found: Scaffold, size: int) -> None:
    from engine.scaffold.artefact import artefact_of, explainers_folder, save_to_home

    try:
        kept = save_to_home(artefact_of(found, size))
    except (ExegesisError, OSError) as error:
        st.session_state[_key_of_said(kind)] = ["error", sentence(error)]
        return
    said = SAVED.format(kept.name, explainers_folder(), found.plan.teacher)
    st.session_state[_key_of_said(kind)] = ["note", said]


def _said(state: ScaffoldState) -> None:
    """What the last press of the button came to, once."""
    said = st.session_state.pop(_key_of_said(state.kind), None)
    if said is None:
        return
    if said[0] == "error":
        say_error(said[1])
    else:
        st.html(note_html(said[1]))


def _key_of_said(kind: str) -> str:
    return f"scaffold_saved_{kind}"


def _rows(found: Scaffold, write: Callable[[Scaffold], bytes]) -> Callable[[], bytes]:
    return lambda: write(found)
