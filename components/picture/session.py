"""The Images page between runs: a link fills the widgets, they write the link, a page change keeps both."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.inputs import picture_choice as picture_focus_controls
from components.inputs.datasets import OpenPictures, open_pictures
from components.page_session import PageSession, fields_of
from components.picture.look import PictureLook
from components.picture.state import OF_A_PICTURE, OFFERED, PictureState, read, write
from engine.registry import Explainer

SESSION = PageSession("picture", picture_focus_controls.LOOKING, (*OF_A_PICTURE, "target"))
WIDGETS, key, value, put = SESSION.widgets, SESSION.key, SESSION.value, SESSION.put


def load(models: list[str], methods: Mapping[str, Explainer]) -> tuple[PictureState, OpenPictures, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    link, fresh = SESSION.follow()
    opened = open_pictures(*picture_focus_controls.requested_dataset(link))
    state, said = read(link, models, methods, opened)
    picture_focus_controls.fill_controls(state.focus, opened)
    SESSION.fill(fields_of("", state.look))
    SESSION.fill_shared(state, methods, OFFERED)
    return state, opened, SESSION.tell(said, fresh)


def save(state: PictureState, loaded: PictureState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    changed = state != loaded
    SESSION.save(write(state) if changed else {}, changed)


def from_widgets(loaded: PictureState, methods: Mapping[str, Explainer], opened: OpenPictures) -> PictureState:
    """The state that the controls now show. What belongs to a picture or its model goes with it: pins, the class."""
    if value("seed") is None:  # never empty: a run that a click cut short gave the controls back without values
        SESSION.clear()
        st.rerun()
    focus = picture_focus_controls.read_controls(opened)
    if focus.model != loaded.model:
        put("target", "")
        put("pins", [])
    if focus.picture != loaded.picture:
        put("pins", [])
    return PictureState(focus=focus, look=SESSION.held("", PictureLook), **SESSION.shared(methods, OFFERED))
