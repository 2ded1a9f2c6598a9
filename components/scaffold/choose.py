"""A choice of how finished students are looked at: one of what there is, held among the fields of `Look`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from components.kept import KEPT
from components.scaffold.look import LOOK
from components.scaffold.session import key, put

if TYPE_CHECKING:
    from components.scaffold.state import ScaffoldState

WIDTH, WIDE, LONG = 210, 270, 22
"""Pixels: of a row of controls; one of long names, which have more letters than this."""
Value = TypeVar("Value", int, str)


def one_of(
    state: ScaffoldState, label: str, name: str, known: Mapping[Value, str], usual: Value, help: str | None = None
) -> Value:
    """One of these, by its name among the fields of `Look`; the usual one where what is held is none of them."""
    kept = getattr(state.look, name)
    now = kept if kept in known else usual
    widget = key(state.kind, f"view.{name}")
    st.session_state[widget] = now
    wide = max(map(len, known.values())) > LONG
    st.selectbox(
        label, list(known), key=widget, width=WIDE if wide else WIDTH, help=help,
        format_func=known.__getitem__, persist_state=KEPT, on_change=partial(take, state.kind, name, widget),
    )  # fmt: skip
    return now


def take(kind: str, name: str, widget: str) -> None:
    """What a widget now holds becomes the field of this name: a callback."""
    put(kind, f"{LOOK}{name}", st.session_state[widget])
