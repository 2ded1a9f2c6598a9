"""An experiment's page between runs: a link fills the widgets, they write the link, a page change keeps both.

Texts and pictures have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import streamlit as st

from components.experiment.state import ExperimentState, Methods, read_state, typed_params, write_state
from components.state import KINDS, KindSwitch, PageSession, Selection, control_values
from engine.experiments.base import Experiment
from engine.experiments.options import page_options

VIEW = "look."
"""Keys of the controls of how results are looked at start so."""


class Apart(Selection):
    """Many models on many examples are not what the other pages look at: nothing is carried to or from them."""

    def carry(self, link: Mapping[str, list[str]]) -> None:
        """Nothing."""


class ExperimentSession:
    """The widgets and the link of an experiment's page.

    `page`: how its keys start. `view`: a frozen dataclass of options, by which its results are looked at.
    """

    def __init__(self, own: Experiment, page: str, view: type) -> None:
        self.experiment, self.page, self.view = own, page, view
        self.input_kind = KindSwitch(page, {})
        apart = Apart(f"{page}_apart.", f"{page}_apart", ())
        self.sessions = {kind: PageSession(f"{page}_{kind}", apart, ()) for kind in KINDS}

    def key(self, kind: str, name: str) -> str:
        """The widget key of a control."""
        return self.sessions[kind].key(name)

    def put(self, kind: str, name: str, value: object) -> None:
        """Sets a control before it is drawn."""
        self.sessions[kind].put(name, value)

    def put_view(self, kind: str, name: str, value: object) -> None:
        """Sets a field of the view."""
        self.put(kind, f"{VIEW}{name}", value)

    def load(self, kind: str, methods: Methods) -> tuple[ExperimentState, list[str]]:
        """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
        session = self.sessions[kind]
        link, fresh = session.follow()
        state, wrong = read_state(self.experiment, self.view, kind, link, methods)
        self._fill(state)
        said = session.tell(wrong, fresh)
        if fresh and wrong:
            session.correct(write_state(state), [])  # what is wrong in a link is not passed on
        return state, said

    def from_widgets(self, loaded: ExperimentState, methods: Methods) -> ExperimentState:
        """The state that the controls now show; what is not drawn stays as it was loaded."""
        session = self.sessions[loaded.kind]
        names = [name for name in page_options(self.experiment.plan) if name not in loaded.texts]
        plan = session.read_record("", loaded.plan, names)
        params = typed_params(session.params(methods), methods)
        return dataclasses.replace(
            loaded,
            texts={**loaded.texts, **{name: text.strip() for name, text in session.values("", loaded.texts).items()}},
            plan=dataclasses.replace(plan, params=params),
            view=session.read_record(VIEW, loaded.view),
        )

    def save(self, state: ExperimentState, loaded: ExperimentState) -> None:
        """Remembers the state and puts it into the address, unless the address says it already."""
        changed = state != loaded or self.input_kind.unsaid(state.kind)
        self.sessions[state.kind].save(write_state(state) if changed else {}, changed)

    def turn_to(self, state: ExperimentState) -> None:
        """Shows another plan from now on: in a callback."""
        self.sessions[state.kind].clear()
        self._fill(state)
        st.session_state[self.input_kind.switched] = state.kind

    def _fill(self, state: ExperimentState) -> None:
        session = self.sessions[state.kind]
        session.fill(state.texts)
        session.fill(control_values("", state.plan, page_options(self.experiment.plan)))
        session.fill(control_values(VIEW, state.view))
        session.fill({f"{id}.{name}": value for id, own in state.plan.params.items() for name, value in own.items()})
