"""The Compare page between runs: a link fills the widgets, they write the link, a page change keeps both.

A text and a picture have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from components.compare.look import CompareLook
from components.compare.state import (
    SECTIONS,
    CompareState,
    read_columns,
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
from components.page_session import PageSession, fields_of
from engine.comparison.pairs import Pair

LOOKINGS = {"text": text_choice.LOOKING, "image": picture_focus_controls.LOOKING}
SESSIONS = {kind: PageSession(f"compare_{kind}", looking, ()) for kind, looking in LOOKINGS.items()}
INPUT_KIND = InputKind("compare", LOOKINGS)
LOOK = "look."
PLACE = ("data", "split", "index", "digest")
"""What a link says of an example's place."""
Opened = OpenTexts | OpenPictures


def key(kind: str, name: str) -> str:
    """The widget key of a control."""
    return SESSIONS[kind].key(name)


def load(kind: str, models: list[str]) -> tuple[CompareState, Opened, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    opened, wrong = _open(kind, link), []
    if fresh and opened.error:
        wrong = [opened.error]
        link = _elsewhere(link, opened.name)
        opened = _open(kind, link)
    state, said = _read(kind, link, models, opened)
    said = [*wrong, *said]
    session.fill(_values(state))
    told = session.tell(said, fresh)
    if fresh and said:
        session.correct(write(state), [])  # what is wrong in a link is not passed on
        LOOKINGS[kind].carry(write(state))  # at once, as in `follow`
    return state, opened, told


def from_widgets(loaded: CompareState, opened: Opened) -> CompareState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    session = SESSIONS[loaded.kind]
    seed = session.value("seed")
    return dataclasses.replace(
        loaded,
        focus=_focus(opened),
        columns=_pairs(session.value("columns") or [], loaded.kind),
        reference=next(iter(_pairs([session.value("reference") or ""], loaded.kind)), None),
        target=session.value("target") or None,
        seed=loaded.seed if seed is None else int(seed),
        look=_look(session, loaded.look),
        opened=tuple(name for name in SECTIONS if session.value(f"open.{name}")),
    )


def save(state: CompareState, loaded: CompareState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write(state) if changed else {}, changed)


def learned(kind: str, labels: Sequence[str]) -> bool:
    """Keeps the classes that can be explained; whether the control, which is drawn before, lacks any of them."""
    new = not set(labels) <= set(labels_known(kind))
    SESSIONS[kind].put("labels", list(labels))
    return new


def labels_known(kind: str) -> list[str]:
    """The classes of the models of the last run."""
    return list(SESSIONS[kind].value("labels") or ())


def put_columns(kind: str, columns: Sequence[Pair]) -> None:
    """Compares these from now on: in a callback, or before the controls are drawn."""
    SESSIONS[kind].put("columns", [pair.code for pair in columns])


def pin(kind: str, pair: Pair | None) -> None:
    """Holds the other columns against this one, or against none."""
    SESSIONS[kind].put("reference", "" if pair is None else pair.code)


def _open(kind: str, link: Query) -> Opened:
    if kind == "text":
        return open_texts(text_choice.requested_dataset(link))
    return open_pictures(*picture_focus_controls.requested_dataset(link))


def _read(kind: str, link: Query, models: list[str], opened: Opened) -> tuple[CompareState, list[str]]:
    if isinstance(opened, OpenTexts):
        state, said = read_text(link, models, opened)
        if isinstance(state.focus, TextFocus):
            text_choice.fill_controls(state.focus, opened)
        return state, said
    state, said = read_picture(link, models, opened)
    if isinstance(state.focus, PictureFocus):
        picture_focus_controls.fill_controls(state.focus, opened)
    return state, said


def _elsewhere(link: Query, data: str) -> Query:
    """The link with a data set that can be had, and no place that was meant in another."""
    return {name: given for name, given in link.items() if name not in PLACE} | {"data": [data]}


def _focus(opened: Opened) -> TextFocus | PictureFocus:
    if isinstance(opened, OpenTexts):
        return text_choice.read_controls(opened)
    return picture_focus_controls.read_controls(opened)


def _look(session: PageSession, loaded: CompareLook) -> CompareLook:
    held = {field.name: session.value(f"{LOOK}{field.name}") for field in dataclasses.fields(CompareLook)}
    chosen: dict[str, Any] = {name: one for name, one in held.items() if one is not None}
    look = dataclasses.replace(loaded, **chosen)
    return dataclasses.replace(look, gamma=round(look.gamma, 2))


def _values(state: CompareState) -> dict[str, object]:
    return {
        "columns": [pair.code for pair in state.columns],  # as texts: a reload of the code replaces classes
        "reference": "" if state.reference is None else state.reference.code,
        "target": state.target or "",
        "seed": state.seed,
        **fields_of(LOOK, state.look),
        **{f"open.{name}": name in state.opened for name in SECTIONS},
    }


def _pairs(codes: Sequence[str], kind: str) -> tuple[Pair, ...]:
    return read_columns([code for code in codes if code], kind, [])
