"""A method's parameters as widgets, drawn from its frozen dataclass: help, bounds and choices come from there."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence

import streamlit as st

from components.text_session import key
from engine.registry import Explainer


def parameters(methods: Sequence[Explainer]) -> None:
    """The parameters of each method that has any, under its title."""
    with_any = [method for method in methods if dataclasses.fields(method.params)]
    if not with_any:
        st.caption("None of the chosen methods has parameters.")
    for method in with_any:
        st.markdown(f"**{method.title}**")
        hints = typing.get_type_hints(method.params)
        with st.container(horizontal=True, gap="small"):
            for field in dataclasses.fields(method.params):
                _widget(method, field, hints[field.name])


def _widget(method: Explainer, field: dataclasses.Field, hint: object) -> None:
    name, meta = key(f"{method.id}.{field.name}"), field.metadata
    label, kind = _label(field.name), _number_or_text(hint)
    st.session_state.setdefault(name, field.default)
    if meta["choices"]:
        st.selectbox(label, meta["choices"], key=name, help=meta["help"])
    elif kind is bool:
        st.checkbox(label, key=name, help=meta["help"])
    elif type(None) in typing.get_args(hint):
        st.text_input(label, key=name, help=f"{meta['help']} (empty: none)")
    elif kind in (int, float):
        low, high = (None if bound is None else kind(bound) for bound in (meta["low"], meta["high"]))
        shape = "%d" if kind is int else "%g"
        st.number_input(label, low, high, key=name, help=meta["help"], format=shape, step=_step(kind, low, high))
    else:
        st.text_input(label, key=name, help=meta["help"])


def _step(kind: type, low: int | float | None, high: int | float | None) -> int | float:
    if kind is int:
        return 1
    return 0.05 if low is not None and high is not None and high - low <= 2 else 1.0


def _label(name: str) -> str:
    words = "number of " + name.removeprefix("n_") if name.startswith("n_") else name
    return words.replace("_", " ").capitalize()


def _number_or_text(hint: object) -> type:
    """The type of a parameter that may also be None."""
    members = typing.get_args(hint) or (hint,)
    return next(kind for kind in members if isinstance(kind, type) and kind is not type(None))
