"""Choices of what is looked at below the tables, held among the fields of `Look`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import streamlit as st

from components.kept import KEPT
from components.scaffold.look import LOOK, PLAIN_LOOK
from components.scaffold.session import key, put

Value = TypeVar("Value", int, str)


def one_of(kind: str, label: str, name: str, known: Mapping[Value, str], width: int = 240) -> Value:
    """One of these in a box; the first where what is held is none of them."""
    _hold(kind, name, known)
    chosen: Value = st.selectbox(
        label, list(known), key=key(kind, f"{LOOK}{name}"), format_func=known.__getitem__, width=width,
        persist_state=KEPT,
    )  # fmt: skip
    return chosen


def switch(kind: str, label: str, name: str, known: Mapping[str, str]) -> str:
    """One of these side by side; the first where what is held is none of them."""
    _hold(kind, name, known)
    chosen = st.segmented_control(
        label, list(known), key=key(kind, f"{LOOK}{name}"), format_func=known.__getitem__, required=True,
        persist_state=KEPT,
    )  # fmt: skip
    return str(chosen)


def number(kind: str, label: str, name: str, most: int) -> int:
    """A whole number from 1; the nearest that there is of what is held."""
    widget = key(kind, f"{LOOK}{name}")
    now = int(st.session_state.get(widget) or getattr(PLAIN_LOOK, name))
    st.session_state[widget] = min(max(now, 1), most)
    return int(st.number_input(label, 1, most, key=widget, width=160, persist_state=KEPT))


def _hold(kind: str, name: str, known: Mapping[Value, str]) -> None:
    widget = key(kind, f"{LOOK}{name}")
    now = st.session_state.get(widget, getattr(PLAIN_LOOK, name))
    put(kind, f"{LOOK}{name}", now if now in known else next(iter(known)))
