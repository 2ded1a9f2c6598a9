"""A method's parameters as widgets, drawn from its frozen dataclass: help, bounds and choices come from there."""

from __future__ import annotations

import dataclasses
import typing
from typing import Literal

import streamlit as st

from components.request_link import differing
from engine.registry import Explainer

Persists = Literal["page", "session"]
WIDTH = 190
"""Of a widget in pixels, where several stand in a row."""


def has_parameters(method: Explainer) -> bool:
    """Whether there is anything to choose."""
    return bool(dataclasses.fields(method.params))


def parameters(method: Explainer, prefix: str) -> None:
    """A widget for each parameter, its key `prefix` and the name in a link: it keeps its value while it is hidden."""
    field_widgets(method.params, f"{prefix}{method.id}.")


def field_widgets(params: type, prefix: str, persists: Persists = "page") -> None:
    """A widget for each field of a params dataclass, its key `prefix` and the field's name."""
    hints = typing.get_type_hints(params)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        for field in dataclasses.fields(params):
            option_widget(field, hints[field.name], f"{prefix}{field.name}", persists)


def held_parameters(method: Explainer, prefix: str) -> dict[str, object]:
    """What the widgets hold, shown or hidden."""
    keys = {field.name: _key(method, field, prefix) for field in dataclasses.fields(method.params)}
    return {name: st.session_state[key] for name, key in keys.items() if key in st.session_state}


def changed_parameters(method: Explainer, prefix: str) -> dict[str, str]:
    """The parameters that differ from the defaults, as texts."""
    return differing(method, held_parameters(method, prefix))


def reset_parameters(method: Explainer, prefix: str) -> None:
    """Back to the defaults: in a callback, or before the widgets are drawn."""
    for field in dataclasses.fields(method.params):
        st.session_state[_key(method, field, prefix)] = field.default


def _key(method: Explainer, field: dataclasses.Field, prefix: str) -> str:
    return f"{prefix}{method.id}.{field.name}"


def option_widget(
    field: dataclasses.Field, hint: object, key: str, persists: Persists, width: int | Literal["stretch"] = WIDTH
) -> None:
    """The widget of an option: its title, help, bounds and choices are in the field's metadata.

    A plan's option may have a `label`, a help `about` it on the page, the `most` that the page takes, `titles` of its
    choices and a `placeholder`.
    """
    meta, kind = field.metadata, _number_or_text(hint)
    label, help = meta.get("label") or _label(field.name), meta.get("about", meta["help"]) or None
    st.session_state.setdefault(key, field.default)
    if meta["choices"] and typing.get_origin(hint) is tuple:
        titles = meta.get("titles", {})
        st.multiselect(
            label, meta["choices"], key=key, help=help, format_func=lambda one: titles.get(one, one), wrap=True,
            placeholder=meta.get("placeholder", "Choose some"), persist_state=persists,
        )  # fmt: skip
    elif meta["choices"]:
        st.selectbox(label, meta["choices"], key=key, help=help, width=width, persist_state=persists)
    elif kind is bool:
        st.checkbox(label, key=key, help=help, persist_state=persists)
    elif type(None) in typing.get_args(hint):
        help = help if "about" in meta else f"{help} (empty: none)"
        st.text_input(
            label, key=key, help=help, width=width, placeholder=meta.get("placeholder"), persist_state=persists
        )  # fmt: skip
    elif kind in (int, float):
        high = meta.get("most", meta["high"])
        low, high = (None if bound is None else kind(bound) for bound in (meta["low"], high))
        shape = "%d" if kind is int else "%g"
        step = _step(kind, low, high, field.default)
        st.number_input(
            label, low, high, key=key, help=help, format=shape, step=step, width=width, persist_state=persists
        )  # fmt: skip
    else:
        st.text_input(label, key=key, help=help, width=width, persist_state=persists)


def _step(kind: type, low: int | float | None, high: int | float | None, default: object) -> int | float:
    if kind is int:
        return 1
    if low is not None and high is not None and high - low <= 2:
        return 0.05
    # A rate has no bound above: it goes by a fifth of what it usually is.
    return default / 5 if high is None and isinstance(default, float) and 0 < default < 1 else 1.0


def _label(name: str) -> str:
    words = "number of " + name.removeprefix("n_") if name.startswith("n_") else name
    return words.replace("_", " ").capitalize()


def _number_or_text(hint: object) -> type:
    """The type of a parameter that may also be None."""
    members = typing.get_args(hint) or (hint,)
    return next(kind for kind in members if isinstance(kind, type) and kind is not type(None))
