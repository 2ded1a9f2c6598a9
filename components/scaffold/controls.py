"""The controls of the Scaffold page, filled from its link and written back to it.

Texts and pictures have separate sessions, so switching between them loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.controls import PERSIST, field_widgets, options_popover
from components.experiment.controls import data_control
from components.experiment.state import Apart
from components.inputs.datasets import label_models
from components.inputs.labels import model_label, model_name, sort_by_task
from components.scaffold.guide import open_guide
from components.scaffold.page_texts import (
    BASE_HELP,
    BASE_OWN,
    RECIPE,
    SEEDS_HELP,
    SETTING_HELP,
    SETTING_TITLES,
    SIZES_HELP,
    SPLIT_HELP,
    TEACHER_HELP,
)
from components.scaffold.state import (
    DEFAULT_RECIPE,
    DEFAULT_VIEW,
    NUMBER_LISTS,
    PREFIX,
    VIEW,
    ScaffoldState,
    changed_recipe,
    read_numbers,
    read_state,
    state_of,
    write_state,
)
from components.state import KINDS, KindSwitch, PageSession, control_values, renew_models
from engine.input_kinds import list_models
from engine.models.catalog import embedded_bases
from engine.params import from_mapping
from engine.scaffold.plan import SETTINGS, Recipe
from engine.scaffold.presets import OPENING_PLANS

INPUT_KIND = KindSwitch("scaffold", {})
FIELDS = ("teacher", "data", "settings", "sizes", "seeds", "base", "split")
APART = Apart("scaffold_apart.", "scaffold_apart", ())
SESSIONS = {kind: PageSession(f"scaffold_{kind}", APART, ()) for kind in KINDS}


def key(kind: str, name: str) -> str:
    """The widget key of a control."""
    return SESSIONS[kind].key(name)


def put(kind: str, name: str, value: object) -> None:
    """Set a control before it is drawn."""
    SESSIONS[kind].put(name, value)


def load(kind: str) -> tuple[ScaffoldState, list[str]]:
    """Fill the widgets that have no value yet. Returns the state of the last link and its errors."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    state, wrong = read_state(kind, link)
    session.fill(_values(state))
    errors = session.tell(wrong, fresh)
    if fresh and wrong:
        session.correct(write_state(state), [])  # wrong values of a link are not passed on
    return state, errors


def from_widgets(loaded: ScaffoldState) -> tuple[ScaffoldState, list[str]]:
    """The state of the controls, and the errors of typed lists. A wrong list is replaced by the last valid one."""
    session, errors = SESSIONS[loaded.kind], list[str]()
    values = session.values("", FIELDS)
    fields = {name: str(value).strip() for name, value in values.items() if name != "settings"}
    for name in NUMBER_LISTS:
        fields[name] = read_numbers(name, fields[name], getattr(loaded, name), errors)
    settings = tuple(one for one in SETTINGS if one in values.get("settings", loaded.settings))
    recipe = changed_recipe(session.values(PREFIX, DEFAULT_RECIPE) or loaded.recipe)
    state = dataclasses.replace(
        loaded, **fields, settings=settings, recipe=recipe, view=session.read_record(VIEW, loaded.view)
    )
    return state, errors


def save(state: ScaffoldState, loaded: ScaffoldState) -> None:
    """Remember the state and write it to the address if it changed."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write_state(state) if changed else {}, changed)


def turn_to(state: ScaffoldState) -> None:
    """Show another plan. A callback."""
    SESSIONS[state.kind].replace(_values(state))
    st.session_state[INPUT_KIND.switched] = state.kind


def _values(state: ScaffoldState) -> dict[str, object]:
    recipe = dataclasses.asdict(from_mapping(Recipe, state.recipe, "recipe"))
    return {
        **control_values("", state, FIELDS),
        **{f"{PREFIX}{name}": value for name, value in recipe.items()},
        **control_values(VIEW, state.view),
    }


WIDTH, WIDE, LONG = 210, 270, 22
"""Pixels of a select box; of one with long names; how many letters a long name has."""
Value = TypeVar("Value", int, str)


def view_choice(
    state: ScaffoldState, label: str, name: str, options: Mapping[Value, str], default: Value, help: str | None = None
) -> Value:
    """Draw a select box for a field of the view. A value that is no option is replaced by the default.

    The default is not written to the link.
    """
    value = getattr(state.view, name)
    chosen = value if value in options else default
    widget = key(state.kind, f"view.{name}")
    st.session_state[widget] = chosen
    wide = max(map(len, options.values())) > LONG
    st.selectbox(
        label, list(options), key=widget, width=WIDE if wide else WIDTH, help=help,
        format_func=options.__getitem__, persist_state=PERSIST,
        on_change=partial(_take, state.kind, name, widget, tuple(options)),
    )  # fmt: skip
    return chosen


def _take(kind: str, name: str, widget: str, options: tuple[object, ...]) -> None:
    """Copy the value of a widget to the field. A callback, also of a widget or option that was just removed."""
    if (value := st.session_state.get(widget)) in options:
        put(kind, f"{VIEW}{name}", value)


def view_select(kind: str, label: str, name: str, options: Mapping[Value, str], width: int = 240) -> Value:
    """Draw a select box bound to a field of the view. A value that is no option is replaced by the first option."""
    _bind(kind, name, options)
    chosen: Value = st.selectbox(
        label, list(options), key=key(kind, f"{VIEW}{name}"), format_func=options.__getitem__, width=width,
        persist_state=PERSIST,
    )  # fmt: skip
    return chosen


def view_switch(kind: str, label: str, name: str, options: Mapping[str, str]) -> str:
    """Draw a segmented control bound to a field of the view, as `view_select`."""
    _bind(kind, name, options)
    chosen = st.segmented_control(
        label, list(options), key=key(kind, f"{VIEW}{name}"), format_func=options.__getitem__, required=True,
        persist_state=PERSIST,
    )  # fmt: skip
    return str(chosen)


def view_number(kind: str, label: str, name: str, most: int) -> int:
    """Draw a number input from 1 to `most`, bound to a field of the view and clipped to that range."""
    widget = key(kind, f"{VIEW}{name}")
    now = int(st.session_state.get(widget) or getattr(DEFAULT_VIEW, name))
    st.session_state[widget] = min(max(now, 1), most)
    return int(st.number_input(label, 1, most, key=widget, width=160, persist_state=PERSIST))


def _bind(kind: str, name: str, options: Mapping[Value, str]) -> None:
    widget = key(kind, f"{VIEW}{name}")
    now = st.session_state.get(widget, getattr(DEFAULT_VIEW, name))
    put(kind, f"{VIEW}{name}", now if now in options else next(iter(options)))


TASKS = {"text": "Texts with classes", "image": "Pictures", "regression": "Pairs with a score"}
"""Titles of the precomputed plans."""
BASES = ("minilm",)


def plan_controls(kind: str, line: DeltaGenerator) -> None:
    """Draw the controls of the plan. `line`: the container of the buttons."""
    with st.container(horizontal=True, gap="small"):
        _name_box("Teacher", kind, "teacher", list_models(kind), TEACHER_HELP)
        data_control(kind, key(kind, "data"))
    st.pills(
        "Settings", SETTINGS, selection_mode="multi", key=key(kind, "settings"), persist_state=PERSIST,
        format_func=SETTING_TITLES.__getitem__, help=SETTING_HELP, label_visibility="collapsed",
    )  # fmt: skip
    if (options := options_popover(key(kind, ""), line)) is not None:
        with options:
            _options(kind)
    if line.button("Train an explainer for this model", key=key(kind, "guide"), type="tertiary"):
        open_guide(str(st.session_state[key(kind, "teacher")]))


def _options(kind: str) -> None:
    """Draw the rarely changed controls: precomputed plans, train sizes, seeds, base and recipe."""
    _precomputed_buttons(kind)
    st.button(
        "Select all seven settings", key=key(kind, "set.all"), type="tertiary",
        on_click=partial(put, kind, "settings", list(SETTINGS)),
    )  # fmt: skip
    sizes, seeds = st.columns(2, gap="small")
    sizes.text_input("Train sizes", key=key(kind, "sizes"), help=SIZES_HELP, persist_state=PERSIST)
    seeds.text_input("Seeds", key=key(kind, "seeds"), help=SEEDS_HELP, persist_state=PERSIST)
    base, split = st.columns(2, gap="small")
    with base:
        bases = ["", *BASES, *(embedded_bases() if kind == "text" else [])]
        _name_box("Base", kind, "base", bases, BASE_HELP, BASE_OWN)
    split.text_input("Split", key=key(kind, "split"), placeholder="train", persist_state=PERSIST, help=SPLIT_HELP)
    st.caption(RECIPE)
    field_widgets(Recipe, key(kind, PREFIX), PERSIST)


def _precomputed_buttons(kind: str) -> None:
    """Draw a button for each precomputed plan but the one that the page shows."""
    shown = tuple(st.session_state[key(kind, name)] for name in ("teacher", "data"))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption("Precomputed:", width="content")
        for task, title in TASKS.items():
            one = state_of(OPENING_PLANS[task], "image" if task == "image" else "text")
            if (one.teacher, one.data) != shown:
                st.button(
                    f"{title}, {one.teacher}", key=key(kind, f"task.{one.teacher}"), type="tertiary",
                    on_click=turn_to, args=(one,),
                    help=f"Open the precomputed students of {one.teacher} on {one.data}.",
                )  # fmt: skip


def _name_box(label: str, kind: str, name: str, names: Sequence[str], help: str, empty: str = "") -> None:
    """Draw a select box that accepts other names. `empty`: the title of no name."""
    widget = key(kind, name)
    chosen = model_name(str(st.session_state[widget] or ""))
    options = list(dict.fromkeys([*names, *([chosen] if chosen else [])]))
    label_of: Callable[[str], str] = model_label
    if name == "teacher":
        label_of = labels = label_models(options, kind, str(st.session_state[key(kind, "data")] or ""))
        options = sort_by_task(options, labels.misfits)
        renew_models(widget, labels)
    st.selectbox(
        label, options, key=widget, accept_new_options=True, help=help,
        persist_state=PERSIST, format_func=lambda one: label_of(one) if one else empty,
    )  # fmt: skip
