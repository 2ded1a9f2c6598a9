"""The Text page between runs: a link fills the widgets, they write the link, a page change keeps both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from components.look import Look
from components.text_state import Params, Query, TextState, differing, read, write
from engine.data.datasets import Dataset
from engine.params import as_plain, from_mapping
from engine.registry import Explainer

WIDGETS = "text_page."
"""Every widget of the page has a key that starts so."""
KEPT, SEEN, SAID = "text_kept_link", "text_seen_link", "text_said"


def load(models: list[str], methods: Mapping[str, Explainer], data: Dataset) -> tuple[TextState, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    asked = _query()
    if KEPT not in st.session_state or (asked and asked != st.session_state[SEEN]):
        _clear()
        st.session_state[KEPT] = asked
        st.session_state[SAID] = read(asked, models, methods, data)[1]
    state, _ = read(st.session_state[KEPT], models, methods, data)
    _fill(state, methods, data)
    st.session_state[SEEN] = asked
    return state, st.session_state[SAID]


def save(state: TextState, loaded: TextState, data: Dataset) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    if state != loaded:
        st.session_state[KEPT], st.session_state[SAID] = write(state, data), []
    kept: Query = st.session_state[KEPT]
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


def from_widgets(methods: Mapping[str, Explainer], data: Dataset) -> TextState:
    """The state that the controls now show."""
    state = TextState(
        model=(value("model") or "").strip(),
        methods=tuple(value("methods")),
        text=value("text") or "",
        pair=(value("pair") or "") if value("has_pair") else None,
        target=value("target") or None,
        unit=value("unit"),
        seed=int(value("seed")),
        look=Look(round(value("gamma"), 2), value("scale"), value("style"), value("values")),
        params=_params(methods),
    )
    return replace(state, index=_index(state, data))


def _index(state: TextState, data: Dataset) -> int | None:
    picked = value("pick")
    return picked if picked is not None and data[picked].example == state.example else None


def _params(methods: Mapping[str, Explainer]) -> Params:
    chosen: Params = {}
    for id in value("methods"):
        names = as_plain(methods[id].params())
        held = {name: value(f"{id}.{name}") for name in names if key(f"{id}.{name}") in st.session_state}
        if changed := differing(methods[id], held):
            chosen[id] = changed
    return chosen


def _query() -> Query:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def _clear() -> None:
    for name in [name for name in st.session_state if str(name).startswith(WIDGETS)]:
        del st.session_state[name]


def _fill(state: TextState, methods: Mapping[str, Explainer], data: Dataset) -> None:
    values: dict[str, object] = {
        "model": state.model or None,
        "methods": list(state.methods),
        "pick": state.index,
        "text": state.text,
        "has_pair": state.pair is not None,
        "pair": state.pair or "",
        "target": state.target or "",
        "unit": state.unit,
        "seed": state.seed,
        "gamma": state.look.gamma,
        "scale": state.look.scale,
        "style": state.look.style,
        "values": state.look.values,
    }
    for id, given in state.params.items():
        chosen = as_plain(from_mapping(methods[id].params, given, id))
        values |= {f"{id}.{name}": chosen[name] for name in given}
    for name, initial in values.items():
        st.session_state.setdefault(key(name), initial)
    if value("pick") is not None and data[value("pick")].text != value("text"):
        put("pick", None)
