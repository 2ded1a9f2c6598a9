"""The plan and the view of an experiment's page: read from the link, edited by controls, written back to the link.

Each field of the plan and of the view (how results are displayed) is an option: see `engine.experiments.options`.
Texts and images have separate sessions, so that switching between them loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.controls import PERSIST, option_widget, set_control
from components.errors import escape_label, show_error
from components.inputs.datasets import (
    complete_dataset,
    dataset_label,
    label_models,
    model_name,
    sort_by_task,
)
from components.inputs.imported_maps import methods_for_dataset
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
from components.method_picker import all_methods, chosen_methods
from components.state import KindSessions, control_values, renew_models
from engine.data.sources import list_datasets
from engine.experiments.base import Experiment, experiment_of
from engine.experiments.options import Option, has_methods, is_wide, options_of, page_options
from engine.input_kinds import list_models
from engine.models.summary import fitting_dataset, summarize_model
from engine.params import Plain, from_mapping
from engine.registry import Explainer

Methods = Mapping[str, Explainer]
MOST_MODELS = 40
VIEW = "look."
"""Prefix of the widget keys of the view."""

MODELS_HELP = "Embedded models, folders of saved checkpoints, or hub IDs such as owner/name. Type to add one."
DATA_HELP = {
    "text": "A name, optionally with options (reviews-generated:seed=7), a file (JSONL, CSV, TSV, parquet), a folder, "
    "or hub:owner/name.",
    "image": "A name, optionally with options (scenes-marked:count=50), a zip, a folder, or hub:owner/name.",
}
PLACES = {"model": "model", "models": "model", "dataset": "data", "data": "data", "split": "data", "column": "data"}
"""The control next to which an error is shown, by the error's first word; other errors appear below the methods."""
Places = Mapping[str, DeltaGenerator]
Value = TypeVar("Value", int, str)


@dataclass(frozen=True, kw_only=True)
class ExperimentState:
    """The plan and the view as the controls show them.

    `plan`: includes parameters of methods that are not selected; see `plan_of`. `texts`: lists as typed into text
    inputs, by field; they replace the plan's own values.
    """

    kind: str
    plan: Any
    view: Any
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NoView:
    """The view of an experiment without view options."""


def read_state(
    own: Experiment, view: type, kind: str, query: Query, methods: Methods
) -> tuple[ExperimentState, list[str]]:
    """Return the state in a link, and an error message for each invalid value in it."""
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
    """Return the link that reopens the state: the input kind, and each value that differs from its default."""
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
    """Return the plan for the engine, equal to that of the command. Errors: a text that is not a valid list."""
    params = {method: given for method, given in state.plan.params.items() if method in state.plan.methods}
    kind: type = type(state.plan)
    options = options_of(kind)
    lists = {name: options[name].get("parse")(text) for name, text in state.texts.items()}
    return replace(state.plan, params=params, **lists)


def state_of(plan: Any, view: type) -> ExperimentState:
    """Return the state that shows a plan, with the default view."""
    kind: type = type(plan)
    options = page_options(kind).values()
    texts = {one.name: list_text(getattr(plan, one.name)) for one in options if one.get("parse")}
    return ExperimentState(kind=plan.kind, plan=plan, view=view(), texts=texts)


def plan_link(plan: Any, **view: str) -> Query:
    """Return the link that opens a plan on its page. `view`: view options by their names in the link."""
    return write_state(state_of(plan, NoView)) | {name: [value] for name, value in view.items()}


def list_text(values: Sequence[object]) -> str:
    """Return the values as a string, joined by commas."""
    return ",".join(map(str, values))


def typed_params(params: Params, methods: Methods) -> dict[str, dict[str, Plain]]:
    """Return the method parameters with their types, parsed from strings."""
    kinds = {method: from_mapping(methods[method].params, given, method) for method, given in params.items()}
    return {method: {name: getattr(kinds[method], name) for name in given} for method, given in params.items()}


def read_models(given: Sequence[str], start: tuple[str, ...], wrong: list[str]) -> tuple[str, ...]:
    """Return the models that a link names, at most `MOST_MODELS`, or `start` if it has no such field."""
    named = tuple(dict.fromkeys(name.strip() for name in given if name.strip()))
    if len(named) > MOST_MODELS:
        wrong.append(f"model: at most {MOST_MODELS} at once, got {len(named)}. The first {MOST_MODELS} are used.")
    return named[:MOST_MODELS] if given else start


class ExperimentSession(KindSessions):
    """The widgets and the link of an experiment's page.

    `page`: prefix of the widget keys. `view`: a frozen dataclass of view options.
    """

    def __init__(self, own: Experiment, page: str, view: type) -> None:
        super().__init__(page)
        self.experiment, self.view = own, view

    def chosen(self) -> str:
        """Return the kind of input: the selected one (see `KindSessions`), or the experiment's only one."""
        only, *others = self.experiment.opens_with
        return super().chosen() if others else only

    def switch(self) -> None:
        """Draw the switch between kinds of input if the experiment has several."""
        if len(self.experiment.opens_with) > 1:
            super().switch()

    def put_view(self, kind: str, name: str, value: object) -> None:
        """Set the control of a view option before it is drawn."""
        self.put(kind, f"{VIEW}{name}", value)

    def load(self, kind: str, methods: Methods) -> tuple[ExperimentState, list[str]]:
        """Fill the widgets that have no value yet. Return the state of the last link and its errors."""
        session = self[kind]
        link, fresh = session.follow()
        state, wrong = read_state(self.experiment, self.view, kind, link, methods)
        session.fill(self._values(state))
        return state, session.tell(wrong, fresh, lambda: write_state(state), state)

    def from_widgets(self, loaded: ExperimentState, methods: Methods) -> ExperimentState:
        """Return the state that the controls show; a control that is not drawn keeps the loaded value."""
        session = self[loaded.kind]
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
        """Save the state and write its link to the address if it changed."""
        self.remember(state, loaded, write_state)

    def turn_to(self, state: ExperimentState) -> None:
        """Switch to another plan (in a callback)."""
        self.show(state.kind, self._values(state))

    def _values(self, state: ExperimentState) -> dict[str, object]:
        """Return the values of the controls that show this state, by control name."""
        return {
            **control_values("", state.plan, page_options(self.experiment.plan)),
            **state.texts,
            **control_values(VIEW, state.view),
            **{f"{id}.{name}": value for id, own in state.plan.params.items() for name, value in own.items()},
        }


def plan_controls(session: ExperimentSession, kind: str, methods: Methods, options: DeltaGenerator | None) -> Places:
    """Draw the controls of the plan and return the places for errors. `options`: container of the rarely used ones."""
    known = page_options(session.experiment.plan)
    first = ("models", "dataset", "methods")
    by_place: dict[str, list[Option]] = {"lead": [], "top": [], "line": [], "more": []}
    for one in known.values():
        if one.name not in first:
            by_place[one.get("place", "more")].append(one)
    with st.container(key=session.key(kind, "plan_row")):
        model, data, *others = st.columns([6, 4, *(2 for _ in by_place["top"])], gap="small")
    with model:
        models_control(kind, session.key(kind, "models"), session.key(kind, "dataset"))
    with data:
        data_control(kind, session.key(kind, "dataset"))
    for place, one in zip(others, by_place["top"], strict=True):
        with place:
            _control(session, kind, one)
    offered = _offered(session, kind, methods)
    if has_methods(session.experiment.plan):
        chosen_methods(offered, session.key(kind, ""))
    if by_place["line"]:
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            for one in by_place["line"]:
                _pills(session, kind, one)
    if options is not None:
        with options:
            if has_methods(session.experiment.plan):
                _method_sets(session, kind, offered)
            _more(session, kind, by_place["more"])
    return {"model": model.empty(), "data": data.empty(), "other": st.empty()}


def _offered(session: ExperimentSession, kind: str, methods: Methods) -> Methods:
    dataset, split, chosen = (st.session_state.get(session.key(kind, name)) for name in ("dataset", "split", "methods"))
    return methods_for_dataset(methods, chosen or (), dataset or "", split or None)


def _method_sets(session: ExperimentSession, kind: str, methods: Methods) -> None:
    """Draw a button for each predefined set of methods, and the list of all methods with their parameters."""
    own = session.experiment
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for name, ids in own.method_sets.items():
            known = [id for id in ids if id in methods]
            key, take = session.key(kind, f"set.{name}"), partial(session.put, kind, "methods", known)
            st.button(name, key=key, type="tertiary", on_click=take)
        models = st.session_state[session.key(kind, "models")]
        all_methods(methods, own.opens_with[kind].methods, session.key(kind, ""), models)


def say_beside(places: Places, error: str) -> None:
    """Show an error next to the control that its first word names."""
    about = error.partition(":")[0].split(" ")[0]
    show_error(error, places[PLACES.get(about, "other")])


def models_control(kind: str, key: str, data_key: str) -> None:
    """Draw a multiselect of the models of this kind of input. Models that do not fit the data set are marked and last.

    `key`, `data_key`: keys of this widget and of the data set's; both must have a value.
    """
    names = _with(list_models(kind), map(model_name, st.session_state[key]))
    labels = label_models(names, kind, str(st.session_state[data_key] or ""))
    renew_models(key, labels)
    st.multiselect(
        "Models",
        sort_by_task(names, labels.misfits),
        key=key,
        format_func=labels,
        accept_new_options=True,
        placeholder="Choose models, or type a folder or hub id",
        help=MODELS_HELP,
        persist_state=PERSIST,
        wrap=True,
    )
    if chosen := next((model for model in st.session_state[key] if model in labels.misfits), ""):
        _offer_fitting(chosen, labels.misfits[chosen], key, data_key)


def _offer_fitting(model: str, reason: str, key: str, data_key: str) -> None:
    """Show why a model does not fit the data set, with a button that selects a data set that fits."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption(escape_label(reason), width="content")
        if dataset := fitting_dataset(summarize_model(model)):
            st.button(
                f"Use {escape_label(dataset)} instead", key=f"{key}.fitting", on_click=set_control,
                args=(data_key, dataset),
            )  # fmt: skip


def data_control(kind: str, key: str) -> None:
    """Draw a select box of the data sets of this kind. `key`: the widget key; it must have a value."""
    known = list_datasets(kind)
    st.selectbox(
        "Data set",
        _with(known, [st.session_state[key]]),
        key=key,
        format_func=dataset_label,
        accept_new_options=True,
        help=DATA_HELP[kind],
        on_change=complete_dataset,
        args=(key, tuple(known)),
        persist_state=PERSIST,
    )


def _more(session: ExperimentSession, kind: str, options: Sequence[Option]) -> None:
    """Draw options that need a whole row, then the others in pairs, then lists as text inputs.

    An option that has a single choice for this kind of input is omitted.
    """
    narrow = [one for one in options if not is_wide(one) and not (one.get("by_kind") and len(one.choices(kind)) < 2)]
    for one in options:
        if is_wide(one) and not one.get("parse"):
            _control(session, kind, one)
    for at in range(0, len(narrow), 2):
        for place, one in zip(st.columns(2, gap="small"), narrow[at : at + 2], strict=False):
            with place:
                _control(session, kind, one)
    for one in options:
        if one.get("parse"):
            _control(session, kind, one)


def _control(session: ExperimentSession, kind: str, one: Option) -> None:
    key, label, help = session.key(kind, one.name), one.get("label") or one.name.capitalize(), one.get("about")
    if one.get("parse"):
        st.text_input(label, key=key, persist_state=PERSIST, help=help)
    elif one.get("by_kind"):
        known = one.choices(kind)
        st.selectbox(
            label, ["", *known], key=key, help=help, persist_state=PERSIST,
            format_func=lambda name: name.capitalize() or f"Default ({known[0]})",
        )  # fmt: skip
    else:
        option_widget(one.field, one.hint, key, PERSIST, "stretch")


def _pills(session: ExperimentSession, kind: str, one: Option) -> None:
    titles = one.get("titles", {})
    st.pills(
        one.name.capitalize(), one.get("choices"), selection_mode="multi", key=session.key(kind, one.name),
        persist_state=PERSIST, format_func=lambda name: titles.get(name, name), label_visibility="collapsed",
        help=one.get("about"),
    )  # fmt: skip


def _with(known: Sequence[str], chosen: Iterable[object]) -> list[str]:
    return list(dict.fromkeys([*known, *(str(one) for one in chosen if one)]))


def view_select(
    session: KindSessions, state: Any, label: str, name: str, known: Mapping[Value, str], width: int,
    help: str | None = None, default: Value | None = None,
) -> Value:  # fmt: skip
    """Draw a select box for a view option and return the selected value: see `chosen_of`.

    A value selected by default is not written to the link. `state`: the state of any page, with a `kind` and a `view`.
    `known`: labels of the choices.
    """
    now = chosen_of(state, name, known, default)
    widget = session.key(state.kind, f"view.{name}")
    st.session_state[widget] = now
    st.selectbox(
        label, list(known), key=widget, width=width, help=help, format_func=known.__getitem__, persist_state=PERSIST,
        on_change=partial(_take_one, session, state.kind, name, widget, tuple(known)),
    )  # fmt: skip
    return now


def chosen_of(state: Any, name: str, known: Iterable[Value], default: Value | None = None) -> Value:
    """Return the value of a view option if it is one of `known`, else `default` or the first choice."""
    held = getattr(state.view, name)
    if held in known:
        return held
    return next(iter(known)) if default is None else default


def _take_one(session: KindSessions, kind: str, name: str, widget: str, known: tuple[object, ...]) -> None:
    """Copy a widget's value to a view option (a callback). Do nothing if the widget or the choice was just removed."""
    if (value := st.session_state.get(widget)) in known:
        session.put(kind, f"{VIEW}{name}", value)


def view_pills(
    session: ExperimentSession, state: ExperimentState, label: str, name: str, known: Mapping[str, str],
    help: str | None = None, default: Sequence[str] = (), popover: bool = True,
) -> None:  # fmt: skip
    """Draw pills for a view option, by default in a popover whose label counts the selected ones.

    `known`: titles by id. `default`: the selection if the view contains none of them; all if empty.
    """
    usual = tuple(default) or tuple(known)
    now, widget = select_known(known, getattr(state.view, name), usual), session.key(state.kind, f"view.{name}")
    st.session_state[widget] = list(now)
    shown = session.key(state.kind, f"{name}_shown")
    with st.popover(f"{label}: {len(now)} of {len(known)}", key=shown) if popover else st.container():
        st.pills(
            label, list(known), selection_mode="multi", key=widget, help=help, persist_state=PERSIST,
            format_func=known.__getitem__, on_change=partial(_take, session, state.kind, name, widget, usual),
        )  # fmt: skip


def select_known(known: Iterable[str], wanted: Sequence[str], default: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the wanted values in the order of `known`; if there are none, the default ones; else all."""
    each = tuple(known)
    return tuple(one for one in each if one in wanted) or tuple(one for one in each if one in default) or each


def _take(session: ExperimentSession, kind: str, name: str, widget: str, usual: Sequence[str] = ()) -> None:
    """Copy a widget's value to a view option (a callback). The default is stored as an empty list: links stay short."""
    value = st.session_state[widget]
    session.put_view(kind, name, [] if isinstance(value, list) and set(value) == set(usual) else value)
