"""The controls of an experiment's page: those of its plan, and those of how its results are displayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.controls import PERSIST, option_widget, set_control
from components.errors import escape_label, show_error
from components.experiment.state import ExperimentSession, ExperimentState, Methods
from components.inputs.datasets import label_models
from components.inputs.labels import dataset_label, model_name, sort_by_task
from components.method_picker import all_methods, chosen_methods
from components.state import renew_models
from engine.data.sources import list_datasets
from engine.experiments.options import Option, is_wide, page_options
from engine.input_kinds import list_models
from engine.models.summary import fitting_dataset, summarize_model

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


def plan_controls(session: ExperimentSession, kind: str, methods: Methods, options: DeltaGenerator | None) -> Places:
    """Draw the controls of the plan. Returns the places for errors. `options`: takes the rare ones if given."""
    known = page_options(session.experiment.plan)
    first = ("models", "dataset", "methods")
    by_place: dict[str, list[Option]] = {"top": [], "line": [], "more": []}
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
    chosen_methods(methods, session.key(kind, ""))
    if by_place["line"]:
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            for one in by_place["line"]:
                _pills(session, kind, one)
    if options is not None:
        with options:
            _method_sets(session, kind, methods)
            _more(session, kind, by_place["more"])
    return {"model": model.empty(), "data": data.empty(), "other": st.empty()}


def _method_sets(session: ExperimentSession, kind: str, methods: Methods) -> None:
    """Draw a button for each set of methods, and the list of all methods with their parameters."""
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
    """Draw a multiselect of the models of this kind of input, those that do not fit the data set marked and last.

    `key`, `data_key`: the keys of this widget and of the data set's; both must have a value.
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
    """Say why a model does not fit the data set, with a button for a set that fits."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption(escape_label(reason), width="content")
        if dataset := fitting_dataset(summarize_model(model)):
            st.button(
                f"Use {escape_label(dataset)} instead", key=f"{key}.fitting", on_click=set_control,
                args=(data_key, dataset),
            )  # fmt: skip


def data_control(kind: str, key: str) -> None:
    """Draw a select box of the data sets of this kind. `key`: the widget key; it must have a value."""
    st.selectbox(
        "Data set",
        _with(list_datasets(kind), [st.session_state[key]]),
        key=key,
        format_func=dataset_label,
        accept_new_options=True,
        help=DATA_HELP[kind],
        persist_state=PERSIST,
    )


def _more(session: ExperimentSession, kind: str, options: Sequence[Option]) -> None:
    """Draw options that need a whole row, then the others in pairs, then lists as text inputs."""
    narrow = [one for one in options if not is_wide(one)]
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
    session: ExperimentSession, state: ExperimentState, label: str, name: str, known: Mapping[Value, str], width: int,
    help: str | None = None,
) -> Value:  # fmt: skip
    """Draw a select box for a field of the view; the first choice where the field holds none of them."""
    now = chosen_of(state, name, known)
    widget = session.key(state.kind, f"view.{name}")
    st.session_state[widget] = now
    st.selectbox(
        label, list(known), key=widget, width=width, help=help, format_func=known.__getitem__, persist_state=PERSIST,
        on_change=partial(_take, session, state.kind, name, widget),
    )  # fmt: skip
    return now


def chosen_of(state: ExperimentState, name: str, known: Iterable[Value]) -> Value:
    """The value of a field of the view; the first choice where it holds none of them."""
    held = getattr(state.view, name)
    return held if held in known else next(iter(known))


def view_pills(
    session: ExperimentSession, state: ExperimentState, label: str, name: str, known: Mapping[str, str],
    help: str | None = None, default: Sequence[str] = (), popover: bool = True,
) -> None:  # fmt: skip
    """Draw pills for a field of the view, by default in a popover whose label counts the selected ones.

    `known`: titles by id. `default`: the selection if the view names none of them; all if omitted.
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
    """The wanted values in the order of `known`; if there are none, the default ones, or all."""
    each = tuple(known)
    return tuple(one for one in each if one in wanted) or tuple(one for one in each if one in default) or each


def _take(session: ExperimentSession, kind: str, name: str, widget: str, usual: Sequence[str] = ()) -> None:
    """Copy a widget's value to a field of the view (a callback). The default becomes empty, for short links."""
    value = st.session_state[widget]
    session.put_view(kind, name, [] if isinstance(value, list) and set(value) == set(usual) else value)
