"""Single controls of a study's form: their bounds, choices and help stand in the design's own fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args, get_type_hints

import streamlit as st

from engine.study.design import Design

WIDGETS = "study.form."
NARROW = 200
"""The width of a number, in pixels."""


def key(name: str) -> str:
    """The key of a control."""
    return f"{WIDGETS}{name}"


def value(name: str) -> Any:
    """What a control holds, shown or hidden."""
    return st.session_state[key(name)]


def put(name: str, held: object) -> None:
    """Gives a control its value before it is drawn."""
    st.session_state[key(name)] = held


def number(name: str, label: str, step: int | float = 1) -> None:
    """A number within the bounds of its field; one that may be none is then empty."""
    hint, meta = _field(name)
    optional = type(None) in get_args(hint)
    kind = float if float in (hint, *get_args(hint)) else int
    low, high = (None if bound is None else kind(bound) for bound in (meta["low"], meta["high"]))
    draw: Callable[..., object] = st.number_input  # its overloads are of one kind of number each
    draw(
        label, low, high, value=None if optional else "min", key=key(name), step=kind(step), width=NARROW,
        format="%d" if kind is int else "%g", help=meta["help"], persist_state="page",
        placeholder="none" if optional else None,
    )  # fmt: skip


def line(name: str, label: str, help: str | None = None, width: int | Literal["stretch"] = "stretch") -> None:
    """A text on one line."""
    st.text_input(label, key=key(name), help=help, width=width, persist_state="page")


def lines(name: str, label: str, help: str | None = None, height: int = 160) -> None:
    """A text on several lines."""
    st.text_area(label, key=key(name), help=help, height=height, persist_state="page")


def one_of(name: str, label: str, words: Mapping[str, str], changed: Callable[[], None] | None = None) -> None:
    """One of a few, each in words. `changed`: called when a person chose another."""
    st.segmented_control(
        label, list(words), key=key(name), format_func=words.__getitem__, required=True, help=_field(name)[1]["help"],
        on_change=changed, persist_state="page",
    )  # fmt: skip


def known_or_other(name: str, label: str, known: Sequence[str], help: str) -> None:
    """One of the known, or what a person types."""
    options = list(dict.fromkeys([*known, *filter(None, [st.session_state.get(key(name))])]))
    st.selectbox(label, options, key=key(name), accept_new_options=True, help=help, persist_state="page")


def row() -> st.delta_generator.DeltaGenerator:
    """Controls side by side, as many as the window holds."""
    return st.container(horizontal=True, gap="small", vertical_alignment="bottom")


def _field(name: str) -> tuple[Any, Mapping[str, Any]]:
    """The type of a field of the design or of one of its parts, and what it says of itself."""
    part, _, own = name.rpartition(".")
    owner: Any = type(getattr(Design(), part)) if part else Design
    found = next(field for field in dataclasses.fields(owner) if field.name == own)
    return get_type_hints(owner)[own], found.metadata
