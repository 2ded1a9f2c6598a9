"""The Randomization page between runs: a link fills the widgets, they write the link, a page change keeps both.

Texts and pictures have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from components.evaluate.session import Apart, as_widget, held, trimmed
from components.input_kind import KINDS, InputKind
from components.page_session import PageSession
from components.randomization.look import LOOK, Look
from components.randomization.state import RandomizationState, read, write
from engine.randomization.plan import MODES
from engine.registry import Explainer

INPUT_KIND = InputKind("randomization", {})
chosen_kind, kind_switch = INPUT_KIND.chosen, INPUT_KIND.switch
FIELDS = ("models", "data", "methods", "examples", "seeds", "modes", "head", "embeddings", "split", "seed")
APART = Apart("randomization_apart.", "randomization_apart", ())
SESSIONS = {kind: PageSession(f"randomization_{kind}", APART, ()) for kind in KINDS}


def key(kind: str, name: str) -> str:
    """The widget key of a control."""
    return SESSIONS[kind].key(name)


def put(kind: str, name: str, value: object) -> None:
    """Sets a control before it is drawn."""
    SESSIONS[kind].put(name, value)


def load(kind: str, methods: Mapping[str, Explainer]) -> tuple[RandomizationState, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    state, said = read(kind, link, methods)
    session.fill({name: as_widget(getattr(state, name)) for name in FIELDS})
    session.fill({f"{LOOK}{name}": as_widget(value) for name, value in vars(state.look).items()})
    session.fill_params(state.params, methods)
    told = session.tell(said, fresh)
    if fresh and said:
        session.correct(write(state), [])  # what is wrong in a link is not passed on
    return state, told


def from_widgets(loaded: RandomizationState, methods: Mapping[str, Explainer]) -> RandomizationState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    session = SESSIONS[loaded.kind]
    look = dataclasses.replace(loaded.look, **held(session, LOOK, [one.name for one in dataclasses.fields(Look)]))
    given = trimmed(held(session, "", FIELDS))
    given |= {"modes": tuple(mode for mode in MODES if mode in given.get("modes", loaded.modes))}
    return dataclasses.replace(loaded, **given, params=session.params(methods), look=look)


def save(state: RandomizationState, loaded: RandomizationState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write(state) if changed else {}, changed)
