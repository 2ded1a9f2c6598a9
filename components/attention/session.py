"""The Attention page between runs: a link fills the widgets, they write the link, a page change keeps both.

A text and a picture have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import streamlit as st

from components.attention.look import FLOW, LOOK, Head, read_switched, write_switched
from components.attention.state import (
    OF_A_MODEL,
    OF_AN_INPUT,
    SECTIONS,
    AttentionState,
    moved,
    read_picture,
    read_text,
    write,
)
from components.input_kind import InputKind
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.inputs.datasets import OpenPictures, OpenTexts, open_pictures, open_texts
from components.inputs.link import Query
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.page_session import PageSession
from engine.heads.scales import HeadScales
from engine.registry import Explainer

LOOKINGS = {"text": text_choice.LOOKING, "image": picture_focus_controls.LOOKING}
SESSIONS = {
    kind: PageSession(f"attention_{kind}", looking, (*OF_AN_INPUT, *OF_A_MODEL)) for kind, looking in LOOKINGS.items()
}
INPUT_KIND = InputKind("attention", LOOKINGS)
KIND, chosen_kind, kind_switch = INPUT_KIND.switched, INPUT_KIND.chosen, INPUT_KIND.switch
Opened = OpenTexts | OpenPictures


def key(kind: str, name: str) -> str:
    """The widget key of a control."""
    return SESSIONS[kind].key(name)


def load(kind: str, models: list[str], methods: Mapping[str, Explainer]) -> tuple[AttentionState, Opened, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    opened, (state, said) = _opened(kind, link, models, methods)
    _fill_focus(state, opened)
    now = moved(state, dataclasses.replace(state, focus=_focus(opened)))
    if now != dataclasses.replace(state, focus=now.focus):
        _put_all(session, now)
    else:
        session.fill(_values(state))
    told = session.tell(said, fresh)
    if fresh and said:
        session.correct(write(state), [])  # what is wrong in a link is not passed on
    return state, opened, told


def from_widgets(loaded: AttentionState, opened: Opened) -> AttentionState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    session = SESSIONS[loaded.kind]
    return dataclasses.replace(
        loaded,
        focus=_focus(opened),
        target=session.value("target") or None,
        method=session.value("method") or loaded.method,
        look=_held(session, LOOK, loaded.look, nothing=("head", "query")),
        flow=_held(session, FLOW, loaded.flow, nothing=("threshold",)),
        switched=read_switched({"switched": session.value("switched") or ""}, []),
        opened=tuple(name for name in SECTIONS if session.value(f"open.{name}")),
    )


def save(state: AttentionState, loaded: AttentionState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write(state) if changed else {}, changed)


def correct(state: AttentionState, said: Sequence[str]) -> NoReturn:
    """Runs the page again with this state instead of the one that its controls show, and says why."""
    session = SESSIONS[state.kind]
    for name, value in _values(state).items():
        if session.value(name) != value:
            # Gone, and not set: some are drawn already. The next run fills them from the link.
            del st.session_state[session.key(name)]
    session.correct(write(state), said)
    st.rerun()


def lock(kind: str, head: Head | None, alone: bool = False) -> None:
    """Looks at this head until another is chosen; None is the strongest. In a callback, or before it is drawn."""
    SESSIONS[kind].put(f"{LOOK}head", head)
    SESSIONS[kind].put(f"{LOOK}alone", alone)


def look_from(kind: str, query: int | None) -> None:
    """Shows what this position attends to; None is the one that the model reads."""
    SESSIONS[kind].put(f"{LOOK}query", query)
    SESSIONS[kind].put(f"{LOOK}view", "query")


def switch(kind: str, scales: HeadScales) -> None:
    """Scales these heads and no others from now on."""
    SESSIONS[kind].put("switched", write_switched(scales))


def _opened(kind: str, link: Query, models: list[str], methods: Mapping[str, Explainer]) -> tuple[Opened, Any]:
    if kind == "text":
        data = open_texts(text_choice.requested_dataset(link))
        return data, read_text(link, models, methods, data)
    pictures = open_pictures(*picture_focus_controls.requested_dataset(link))
    return pictures, read_picture(link, models, methods, pictures)


def _fill_focus(state: AttentionState, opened: Opened) -> None:
    if isinstance(state.focus, TextFocus) and isinstance(opened, OpenTexts):
        text_choice.fill_controls(state.focus, opened)
    elif isinstance(state.focus, PictureFocus) and isinstance(opened, OpenPictures):
        picture_focus_controls.fill_controls(state.focus, opened)


def _focus(opened: Opened) -> TextFocus | PictureFocus:
    if isinstance(opened, OpenTexts):
        return text_choice.read_controls(opened)
    return picture_focus_controls.read_controls(opened)


def _values(state: AttentionState) -> dict[str, object]:
    return {
        "target": state.target or "",
        "method": state.method,
        "switched": write_switched(state.switched),  # as text: a reload of the code replaces classes
        **{f"{LOOK}{name}": value for name, value in vars(state.look).items()},
        **{f"{FLOW}{name}": value for name, value in vars(state.flow).items()},
        **{f"open.{name}": name in state.opened for name in SECTIONS},
    }


def _put_all(session: PageSession, state: AttentionState) -> None:
    for name, value in _values(state).items():
        session.put(name, value)


def _held(session: PageSession, prefix: str, loaded: Any, nothing: tuple[str, ...]) -> Any:
    """The dataclass as its controls show it. `nothing`: fields for which None is a value."""
    held: dict[str, Any] = {}
    for field in dataclasses.fields(loaded):
        value = session.value(f"{prefix}{field.name}")
        held[field.name] = getattr(loaded, field.name) if value is None and field.name not in nothing else value
    return type(loaded)(**{name: tuple(one) if isinstance(one, list) else one for name, one in held.items()})
