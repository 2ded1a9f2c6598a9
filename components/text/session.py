"""The Text page between runs: a link fills the widgets, they write the link, a page change keeps both."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.inputs import text_choice
from components.inputs.datasets import OpenTexts, open_texts
from components.page_session import PageSession, fields_of
from components.text.state import OF_A_TEXT, OFFERED, TextState, read, write
from components.widgets.view_options import ViewOptions
from engine.registry import Explainer

SESSION = PageSession("text", text_choice.LOOKING, (*OF_A_TEXT, "target"))
WIDGETS, key, value, put = SESSION.widgets, SESSION.key, SESSION.value, SESSION.put


def load(models: list[str], methods: Mapping[str, Explainer]) -> tuple[TextState, OpenTexts, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    link, fresh = SESSION.follow()
    opened = open_texts(text_choice.requested_dataset(link))
    state, said = read(link, models, methods, opened)
    text_choice.fill_controls(state.focus, opened)
    own = {"unit": state.unit, "edit": state.edit, "edit_pair": state.edit_pair}
    SESSION.fill(own | fields_of("", state.look))
    SESSION.fill_shared(state, methods, OFFERED)
    return state, opened, SESSION.tell(said, fresh)


def save(state: TextState, loaded: TextState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    changed = state != loaded
    SESSION.save(write(state) if changed else {}, changed)


def from_widgets(loaded: TextState, methods: Mapping[str, Explainer], opened: OpenTexts) -> TextState:
    """The state that the controls now show. What belongs to a text goes with it: pins, the edit, the class."""
    if value("unit") is None:  # never a choice: a run that a click cut short gave the controls back empty
        SESSION.clear()
        st.rerun()
    focus = text_choice.read_controls(opened)
    if focus.model != loaded.model:
        _forget("target", "pins")
    if focus.example != loaded.example:
        _forget("pins", "edit", "edit_pair")
    return TextState(
        focus=focus,
        unit=value("unit"),
        edit=value("edit"),
        edit_pair=value("edit_pair"),
        look=SESSION.held("", ViewOptions),
        **SESSION.shared(methods, OFFERED),
    )


def _forget(*names: str) -> None:
    usual: dict[str, object] = {"pins": [], "target": ""}
    for name in names:
        put(name, usual.get(name))
