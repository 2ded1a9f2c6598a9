"""The state of an experiment's page: read from the link, held by the widgets, written back to the link.

Each field of the plan and of the view (how results are displayed) is an option: see `engine.experiments.options`.
Texts and images have separate sessions, so that switching between them loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from components.links import (
    Params,
    Query,
    last_values,
    read_methods,
    read_option,
    read_params,
    read_record,
    write_methods,
    write_option,
    write_record,
)
from components.state import KINDS, KindSwitch, PageSession, Selection, control_values
from engine.experiments.base import Experiment, experiment_of
from engine.experiments.options import options_of, page_options
from engine.params import Plain, from_mapping
from engine.registry import Explainer

Methods = Mapping[str, Explainer]
MOST_MODELS = 40
VIEW = "look."
"""Prefix of the widget keys of the view."""


@dataclass(frozen=True, kw_only=True)
class ExperimentState:
    """The plan and the view as the controls show them.

    `plan`: includes parameters of methods that are not selected; see `plan_of`. `texts`: lists that a control holds as
    one text, as typed; they replace the plan's own values.
    """

    kind: str
    plan: Any
    view: Any
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NoView:
    """For experiments without view options."""


def read_state(
    own: Experiment, view: type, kind: str, query: Query, methods: Methods
) -> tuple[ExperimentState, list[str]]:
    """The state in a link, and a sentence for each value in it that is invalid."""
    wrong: list[str] = []
    start, last = own.opens_with[kind], last_values(query)
    values: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for name, one in page_options(own.plan).items():
        usual = getattr(start, name)
        if one.get("parse"):
            texts[name] = last.get(one.link, list_text(usual))
        elif name == "models":
            values[name] = read_models(query.get(one.link, []), usual, wrong)
        elif name == "methods":
            values[name] = read_methods(query.get(one.link, []), methods, usual, wrong)
        else:
            values[name] = read_option(one, usual, query, wrong, kind)
    params = typed_params(read_params(last, methods, wrong), methods)
    plan = replace(start, **values, params=params)
    return ExperimentState(kind=kind, plan=plan, view=read_record(view(), query, wrong, kind), texts=texts), wrong


def write_state(state: ExperimentState) -> Query:
    """The link that reopens the state: the input kind, and each value that differs from its default."""
    own = experiment_of(state.plan)
    start, query = own.opens_with[state.kind], {"input": [state.kind]}
    for name, one in page_options(own.plan).items():
        value = getattr(state.plan, name)
        if name in state.texts:
            query |= {one.link: [state.texts[name]]} if state.texts[name] != list_text(getattr(start, name)) else {}
        elif name == "methods":
            query |= {} if value == start.methods else write_methods(value, {})
        elif value != getattr(start, name):
            query[one.link] = write_option(one, value)
    for method, given in state.plan.params.items():
        query |= {f"{method}.{name}": [str(value)] for name, value in given.items()}
    return query | write_record(state.view, type(state.view)())


def plan_of(state: ExperimentState) -> Any:
    """The plan for the engine, equal to the command's. Raises UsageError for a text that is not a valid list."""
    params = {method: given for method, given in state.plan.params.items() if method in state.plan.methods}
    kind: type = type(state.plan)
    options = options_of(kind)
    lists = {name: options[name].get("parse")(text) for name, text in state.texts.items()}
    return replace(state.plan, params=params, **lists)


def state_of(plan: Any, view: type) -> ExperimentState:
    """The state that shows a plan."""
    kind: type = type(plan)
    options = page_options(kind).values()
    texts = {one.name: list_text(getattr(plan, one.name)) for one in options if one.get("parse")}
    return ExperimentState(kind=plan.kind, plan=plan, view=view(), texts=texts)


def plan_link(plan: Any, **view: str) -> Query:
    """The link that opens a plan on its page. `view`: view options by their names in the link."""
    return write_state(state_of(plan, NoView)) | {name: [value] for name, value in view.items()}


def list_text(values: Sequence[object]) -> str:
    """A list as one text."""
    return ",".join(map(str, values))


def typed_params(params: Params, methods: Methods) -> dict[str, dict[str, Plain]]:
    """Method parameters parsed from text."""
    kinds = {method: from_mapping(methods[method].params, given, method) for method, given in params.items()}
    return {method: {name: getattr(kinds[method], name) for name in given} for method, given in params.items()}


def read_models(given: Sequence[str], start: tuple[str, ...], wrong: list[str]) -> tuple[str, ...]:
    """The models that a link names, else the default ones."""
    named = tuple(dict.fromkeys(name.strip() for name in given if name.strip()))
    if len(named) > MOST_MODELS:
        wrong.append(f"model: at most {MOST_MODELS} at once, got {len(named)}. The first {MOST_MODELS} are used.")
    return named[:MOST_MODELS] if given else start


class Apart(Selection):
    """A selection that is not shared with other pages, since many models and examples do not fit there."""

    def carry(self, link: Mapping[str, list[str]]) -> None:
        """Do nothing."""


class ExperimentSession:
    """The widgets and the link of an experiment's page.

    `page`: prefix of its keys. `view`: a frozen dataclass of view options.
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
        """Set a control before it is drawn."""
        self.sessions[kind].put(name, value)

    def put_view(self, kind: str, name: str, value: object) -> None:
        """Set a field of the view."""
        self.put(kind, f"{VIEW}{name}", value)

    def load(self, kind: str, methods: Methods) -> tuple[ExperimentState, list[str]]:
        """Fill the widgets that have no value yet. Returns the state of the last link and its invalid values."""
        session = self.sessions[kind]
        link, fresh = session.follow()
        state, wrong = read_state(self.experiment, self.view, kind, link, methods)
        session.fill(self._values(state))
        said = session.tell(wrong, fresh)
        if fresh and wrong:
            session.correct(write_state(state), [])  # an invalid value is not passed on
        return state, said

    def from_widgets(self, loaded: ExperimentState, methods: Methods) -> ExperimentState:
        """The state that the controls show now; controls that are not drawn keep the loaded value."""
        session = self.sessions[loaded.kind]
        names = [name for name in page_options(self.experiment.plan) if name not in loaded.texts]
        plan = session.read_record("", loaded.plan, names)
        params = typed_params(session.params(methods), methods)
        return replace(
            loaded,
            texts={**loaded.texts, **{name: text.strip() for name, text in session.values("", loaded.texts).items()}},
            plan=replace(plan, params=params),
            view=session.read_record(VIEW, loaded.view),
        )

    def save(self, state: ExperimentState, loaded: ExperimentState) -> None:
        """Save the state and write it to the address if it changed."""
        changed = state != loaded or self.input_kind.unsaid(state.kind)
        self.sessions[state.kind].save(write_state(state) if changed else {}, changed)

    def turn_to(self, state: ExperimentState) -> None:
        """Switch to another plan (in a callback)."""
        self.sessions[state.kind].replace(self._values(state))
        st.session_state[self.input_kind.switched] = state.kind

    def _values(self, state: ExperimentState) -> dict[str, object]:
        """The values of the controls that show this state."""
        return {
            **control_values("", state.plan, page_options(self.experiment.plan)),
            **state.texts,
            **control_values(VIEW, state.view),
            **{f"{id}.{name}": value for id, own in state.plan.params.items() for name, value in own.items()},
        }
