"""An experiment's page between runs: a link fills the widgets, they write the link, a page change keeps both.

Texts and pictures have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from components.experiment.state import ExperimentState, Methods, read_state, typed_params, write_state
from components.state import KINDS, KindSwitch, PageSession, Selection
from engine.experiments.base import Experiment
from engine.experiments.options import Option, options_of, page_options
from engine.params import as_plain

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
        options = page_options(self.experiment.plan)
        held = {name: session.value(name) for name in loaded.texts}
        plan = _option_values(session, "", {name: one for name, one in options.items() if name not in held})
        params = typed_params(session.params(methods), methods)
        return dataclasses.replace(
            loaded,
            texts={name: loaded.texts[name] if text is None else str(text).strip() for name, text in held.items()},
            plan=dataclasses.replace(loaded.plan, **plan, params=params),
            view=dataclasses.replace(loaded.view, **_option_values(session, VIEW, options_of(self.view))),
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
        session.fill({name: _as_text_widget(getattr(state.plan, name)) for name in page_options(self.experiment.plan)})
        session.fill({f"{VIEW}{name}": _as_text_widget(value) for name, value in as_plain(state.view).items()})
        session.fill({f"{id}.{name}": value for id, own in state.plan.params.items() for name, value in own.items()})


def _option_values(session: PageSession, prefix: str, options: Mapping[str, Option]) -> dict[str, Any]:
    """What those of the controls hold that hold something, as the dataclass has it."""
    held = {name: session.value(prefix + name) for name in options}
    return {name: _from_widget(options[name], value) for name, value in held.items() if value is not None}


def _from_widget(one: Option, value: Any) -> Any:
    """Names as they were typed, without the spaces around them; of a list of choices in their order."""
    if one.get("exact"):
        return tuple(value)
    if one.is_list:
        if known := one.get("choices"):
            return tuple(name for name in known if name in value)
        return tuple(dict.fromkeys(filter(None, (str(name).strip() for name in value))))
    if isinstance(value, str):
        return value.strip() or one.default if one.default is None else value.strip()
    return value


def _as_text_widget(value: Any) -> Any:
    """A value as a control holds it, an empty text for None."""
    return "" if value is None else as_widget(value)


def as_widget(value: Any) -> Any:
    """A value as a control holds it."""
    return list(value) if isinstance(value, tuple) else value


def widget_values(session: PageSession, prefix: str, names: Sequence[str]) -> dict[str, Any]:
    """What those of the controls hold that hold something, by name."""
    held = {name: session.value(prefix + name) for name in names}
    return {name: tuple(one) if isinstance(one, list) else one for name, one in held.items() if one is not None}


def strip_names(values: dict[str, Any]) -> dict[str, Any]:
    """Names as they were typed, without the spaces around them."""
    models = (str(name).strip() for name in values.get("models", ()))
    names = {name: str(values[name]).strip() for name in ("data", "split", "shares") if name in values}
    return values | names | ({"models": tuple(dict.fromkeys(filter(None, models)))} if "models" in values else {})
