"""The Scaffold page between runs: a link fills the widgets, they write the link, a page change keeps both.

Texts and pictures have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses

import streamlit as st

from components.experiment.session import Apart, as_widget, strip_names, widget_values
from components.input_kind import KINDS, InputKind
from components.page_session import PageSession
from components.scaffold.look import LOOK, Look
from components.scaffold.state import PREFIX, USUAL_RECIPE, ScaffoldState, differing, read, write
from engine.params import from_mapping
from engine.scaffold.plan import SETTINGS, Recipe, recipe_values

INPUT_KIND = InputKind("scaffold", {})
chosen_kind, kind_switch = INPUT_KIND.chosen, INPUT_KIND.switch
FIELDS = ("teacher", "data", "settings", "sizes", "seeds", "base", "split")
NAMES = ("teacher", "data", "sizes", "seeds", "base", "split")
APART = Apart("scaffold_apart.", "scaffold_apart", ())
SESSIONS = {kind: PageSession(f"scaffold_{kind}", APART, ()) for kind in KINDS}


def key(kind: str, name: str) -> str:
    """The widget key of a control."""
    return SESSIONS[kind].key(name)


def put(kind: str, name: str, value: object) -> None:
    """Sets a control before it is drawn."""
    SESSIONS[kind].put(name, value)


def load(kind: str) -> tuple[ScaffoldState, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    state, said = read(kind, link)
    _fill(session, state)
    told = session.tell(said, fresh)
    if fresh and said:
        session.correct(write(state), [])  # what is wrong in a link is not passed on
    return state, told


def from_widgets(loaded: ScaffoldState) -> ScaffoldState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    session = SESSIONS[loaded.kind]
    look = dataclasses.replace(
        loaded.look, **widget_values(session, LOOK, [one.name for one in dataclasses.fields(Look)])
    )
    given = strip_names(widget_values(session, "", FIELDS))
    given |= {name: str(given[name]).strip() for name in NAMES if name in given}
    given |= {"settings": tuple(one for one in SETTINGS if one in given.get("settings", loaded.settings))}
    recipe = differing(widget_values(session, PREFIX, list(USUAL_RECIPE)) or loaded.recipe)
    return dataclasses.replace(loaded, **given, recipe=recipe, look=look)


def save(state: ScaffoldState, loaded: ScaffoldState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write(state) if changed else {}, changed)


def turn_to(state: ScaffoldState) -> None:
    """Shows another plan from now on: in a callback."""
    session = SESSIONS[state.kind]
    session.clear()
    _fill(session, state)
    st.session_state[INPUT_KIND.switched] = state.kind


def _fill(session: PageSession, state: ScaffoldState) -> None:
    recipe = recipe_values(from_mapping(Recipe, state.recipe, "recipe"))
    session.fill(
        {
            **{name: as_widget(getattr(state, name)) for name in FIELDS},
            **{f"{PREFIX}{name}": value for name, value in recipe.items()},
            **{f"{LOOK}{name}": value for name, value in vars(state.look).items()},
        }
    )
