"""A control of which of some things are shown, behind a button that says how many are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from components.controls import PERSIST
from components.evaluate.look import LOOK
from components.evaluate.session import key, put


def chosen_of(known: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Those of the wanted that there are, in the order of the known; all where there are none."""
    return tuple(one for one in known if one in wanted) or tuple(known)


def some_of(kind: str, name: str, label: str, known: Mapping[str, str], wanted: Sequence[str], help: str) -> None:
    """`name`: of the field of `Look` that holds the choice. `known`: titles by id. `help`: what is said of it."""
    now, widget = chosen_of(list(known), wanted), key(kind, f"view.{name}")
    st.session_state[widget] = list(now)
    with st.popover(f"{label}: {len(now)} of {len(known)}", key=key(kind, f"{name}_shown")):
        st.pills(
            label, list(known), selection_mode="multi", key=widget, help=help, persist_state=PERSIST,
            format_func=known.__getitem__, on_change=partial(_take, kind, name, widget, len(known)),
        )  # fmt: skip


def _take(kind: str, name: str, widget: str, all: int) -> None:
    """All of them is nothing chosen, so that the link stays short."""
    wanted = list(st.session_state[widget])
    put(kind, f"{LOOK}{name}", [] if len(wanted) == all else wanted)
