"""The Text page between runs: a link fills the widgets, they write the link, a page change keeps both."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import streamlit as st

from components import focus_controls
from components.browse_state import Browse
from components.focus import Query
from components.look import Look
from components.open_data import OpenData, open_data
from components.text_state import OF_A_TEXT, SECTIONS, Params, TextState, differing, read, write
from engine.params import as_plain, from_mapping
from engine.registry import Explainer

WIDGETS = "text_page."
"""Every widget of the page that does not choose what is looked at has a key that starts so."""
KEPT, SEEN, SAID = "text_kept_link", "text_seen_link", "text_said"


def load(models: list[str], methods: Mapping[str, Explainer]) -> tuple[TextState, OpenData, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    asked = _query()
    fresh = KEPT not in st.session_state or bool(asked and asked != st.session_state[SEEN])
    if fresh:
        _clear()
        st.session_state[KEPT] = asked or focus_controls.carried()
        # At once: a run that a click cuts short never comes to `save`.
        focus_controls.carry(st.session_state[KEPT])
    elif focus_controls.carried() != focus_controls.focus_of(st.session_state[KEPT]):
        _clear()
        st.session_state[KEPT] = _moved(st.session_state[KEPT], focus_controls.carried())
    opened = open_data(focus_controls.data_name(st.session_state[KEPT]))
    state, said = read(st.session_state[KEPT], models, methods, opened)
    if fresh:
        st.session_state[SAID] = said
    focus_controls.fill(state.focus, opened)
    _fill(state, methods)
    st.session_state[SEEN] = asked
    return state, opened, st.session_state[SAID]


def save(state: TextState, loaded: TextState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    if state != loaded:
        st.session_state[KEPT], st.session_state[SAID] = write(state), []
    kept: Query = st.session_state[KEPT]
    focus_controls.carry(kept)
    if kept != _query():
        st.query_params.from_dict(kept)
        st.session_state[SEEN] = _query()


def key(name: str) -> str:
    """The widget key of a control."""
    return WIDGETS + name


def value(name: str) -> Any:
    """What a control holds; None before it is drawn."""
    return st.session_state.get(key(name))


def put(name: str, new: object) -> None:
    """Sets a control before it is drawn."""
    st.session_state[key(name)] = new


def from_widgets(loaded: TextState, methods: Mapping[str, Explainer], opened: OpenData) -> TextState:
    """The state that the controls now show. What belongs to a text goes with it: pins, the edit, the class."""
    if value("unit") is None:  # never a choice: a run that a click cut short gave the controls back empty
        _clear()
        st.rerun()
    focus = focus_controls.from_widgets(opened)
    if focus.model != loaded.model:
        _forget("target", "pins")
    if focus.example != loaded.example:
        _forget("pins", "edit", "edit_pair")
    return TextState(
        focus=focus,
        methods=tuple(value("methods")),
        target=value("target") or None,
        unit=value("unit"),
        seed=int(value("seed")),
        pins=tuple(value("pins") or ()),
        edit=value("edit"),
        edit_pair=value("edit_pair"),
        look=_from("", Look),
        browse=_from("browse.", Browse),
        opened=tuple(name for name in SECTIONS if value(f"open.{name}")),
        question=value("question"),
        removal=value("removal"),
        measure=value("measure"),
        params=_params(methods),
    )


def _fill(state: TextState, methods: Mapping[str, Explainer]) -> None:
    values: dict[str, object] = {
        "methods": list(state.methods),
        "target": state.target or "",
        "unit": state.unit,
        "seed": state.seed,
        "pins": list(state.pins),
        "edit": state.edit,
        "edit_pair": state.edit_pair,
        "question": state.question,
        "removal": state.removal,
        "measure": state.measure,
        **_fields("", state.look),
        **_fields("browse.", state.browse),
        **{f"open.{name}": name in state.opened for name in SECTIONS},
    }
    for id, given in state.params.items():
        chosen = as_plain(from_mapping(methods[id].params, given, id))
        values |= {f"{id}.{name}": chosen[name] for name in given}
    for name, initial in values.items():
        st.session_state.setdefault(key(name), initial)


def _fields(prefix: str, held: Any) -> dict[str, object]:
    return {f"{prefix}{field.name}": getattr(held, field.name) for field in dataclasses.fields(held)}


def _from(prefix: str, kind: type) -> Any:
    """A dataclass of what its controls hold; floats as they are written in a link."""
    held = {field.name: value(f"{prefix}{field.name}") for field in dataclasses.fields(kind)}
    return kind(**{name: round(one, 2) if isinstance(one, float) else one for name, one in held.items()})


def _params(methods: Mapping[str, Explainer]) -> Params:
    chosen: Params = {}
    for id in value("methods"):
        names = as_plain(methods[id].params())
        held = {name: value(f"{id}.{name}") for name in names if key(f"{id}.{name}") in st.session_state}
        if changed := differing(methods[id], held):
            chosen[id] = changed
    return chosen


def _moved(kept: Query, focus: Query) -> Query:
    """The link of this page, turned to what another page has looked at since."""
    belonging = {*OF_A_TEXT, "target"}
    stays = {name: given for name, given in kept.items() if name not in focus_controls.focus_of(kept)}
    return {name: given for name, given in stays.items() if name not in belonging} | focus


def _forget(*names: str) -> None:
    usual: dict[str, object] = {"pins": [], "target": ""}
    for name in names:
        put(name, usual.get(name))


def _query() -> Query:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def _clear() -> None:
    prefixes = (WIDGETS, focus_controls.WIDGETS)
    for name in [name for name in st.session_state if str(name).startswith(prefixes)]:
        del st.session_state[name]
