"""The Evaluate page between runs: a link fills the widgets, they write the link, a page change keeps both.

Texts and pictures have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import streamlit as st

from components.evaluate.look import LOOK, Look, Point, as_fields
from components.evaluate.state import EvaluateState, read, write
from components.experiment.session import Apart, as_widget, strip_names, widget_values
from components.state import KINDS, InputKind, PageSession
from engine.registry import Explainer

INPUT_KIND = InputKind("evaluate", {})
chosen_kind, kind_switch = INPUT_KIND.chosen, INPUT_KIND.switch
FIELDS = ("models", "data", "methods", "examples", "split", "metrics", "seed", "unit", "removal", "shares")


APART = Apart("evaluate_apart.", "evaluate_apart", ())
SESSIONS = {kind: PageSession(f"evaluate_{kind}", APART, ()) for kind in KINDS}


def key(kind: str, name: str) -> str:
    """The widget key of a control."""
    return SESSIONS[kind].key(name)


def load(kind: str, methods: Mapping[str, Explainer]) -> tuple[EvaluateState, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    state, said = read(kind, link, methods)
    _fill(session, state, methods)
    told = session.tell(said, fresh)
    if fresh and said:
        session.correct(write(state), [])  # what is wrong in a link is not passed on
    return state, told


def from_widgets(loaded: EvaluateState, methods: Mapping[str, Explainer]) -> EvaluateState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    session = SESSIONS[loaded.kind]
    look = dataclasses.replace(
        loaded.look, **widget_values(session, LOOK, [one.name for one in dataclasses.fields(Look)])
    )
    given = strip_names(widget_values(session, "", FIELDS))
    return dataclasses.replace(loaded, **given, params=session.params(methods), look=look)


def save(state: EvaluateState, loaded: EvaluateState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write(state) if changed else {}, changed)


def turn_to(state: EvaluateState, methods: Mapping[str, Explainer]) -> None:
    """Shows another evaluation from now on: in a callback."""
    session = SESSIONS[state.kind]
    session.clear()
    _fill(session, state, methods)
    st.session_state[INPUT_KIND.switched] = state.kind


def point_at(kind: str, point: Point | None) -> None:
    """Shows the examples behind this point from now on; None for none. In a callback, or before controls are drawn."""
    SESSIONS[kind].put(f"{LOOK}point", [] if point is None else list(as_fields(point)))


def put(kind: str, name: str, value: object) -> None:
    """Sets a control before it is drawn."""
    SESSIONS[kind].put(name, value)


def _fill(session: PageSession, state: EvaluateState, methods: Mapping[str, Explainer]) -> None:
    session.fill(_values(state))
    session.fill_params(state.params, methods)


def _values(state: EvaluateState) -> dict[str, object]:
    return {
        **{name: as_widget(getattr(state, name)) for name in FIELDS},
        **{f"{LOOK}{name}": as_widget(value) for name, value in vars(state.look).items()},
    }
