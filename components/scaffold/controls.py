"""The controls of the Scaffold page: a link fills them, they write the link, a page change keeps both.

Texts and pictures have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar

import streamlit as st

from components.controls import PERSIST, field_widgets
from components.errors import show_error
from components.experiment.controls import Places, data_control
from components.experiment.session import Apart
from components.scaffold.guide import open_guide
from components.scaffold.page_texts import (
    BASE_HELP,
    BASE_OWN,
    SEEDS_HELP,
    SETTING_HELP,
    SETTING_TITLES,
    SIZES_HELP,
    TEACHER_HELP,
)
from components.scaffold.state import (
    DEFAULT_RECIPE,
    DEFAULT_VIEW,
    PREFIX,
    VIEW,
    ScaffoldState,
    changed_recipe,
    read_state,
    state_of,
    write_state,
)
from components.state import KINDS, KindSwitch, PageSession, control_values
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
    """Fill the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    state, wrong = read_state(kind, link)
    _fill(session, state)
    errors = session.tell(wrong, fresh)
    if fresh and wrong:
        session.correct(write_state(state), [])  # what is wrong in a link is not passed on
    return state, errors


def from_widgets(loaded: ScaffoldState) -> ScaffoldState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    session = SESSIONS[loaded.kind]
    values = session.values("", FIELDS)
    fields = {name: str(value).strip() for name, value in values.items() if name != "settings"}
    settings = tuple(one for one in SETTINGS if one in values.get("settings", loaded.settings))
    recipe = changed_recipe(session.values(PREFIX, DEFAULT_RECIPE) or loaded.recipe)
    return dataclasses.replace(
        loaded, **fields, settings=settings, recipe=recipe, view=session.read_record(VIEW, loaded.view)
    )


def save(state: ScaffoldState, loaded: ScaffoldState) -> None:
    """Remember the state and put it into the address, unless the address says it already."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write_state(state) if changed else {}, changed)


def turn_to(state: ScaffoldState) -> None:
    """Show another plan from now on: a callback."""
    session = SESSIONS[state.kind]
    session.clear()
    _fill(session, state)
    st.session_state[INPUT_KIND.switched] = state.kind


def _fill(session: PageSession, state: ScaffoldState) -> None:
    recipe = dataclasses.asdict(from_mapping(Recipe, state.recipe, "recipe"))
    session.fill(
        {
            **control_values("", state, FIELDS),
            **{f"{PREFIX}{name}": value for name, value in recipe.items()},
            **control_values(VIEW, state.view),
        }
    )


WIDTH, WIDE, LONG = 210, 270, 22
"""Pixels: of a row of controls; one of long names, which have more letters than this."""
Value = TypeVar("Value", int, str)


def view_choice(
    state: ScaffoldState, label: str, name: str, options: Mapping[Value, str], default: Value, help: str | None = None
) -> Value:
    """A select box for a field of the view; the default where the field has none of the options.

    The default is not written into the link.
    """
    value = getattr(state.view, name)
    chosen = value if value in options else default
    widget = key(state.kind, f"view.{name}")
    st.session_state[widget] = chosen
    wide = max(map(len, options.values())) > LONG
    st.selectbox(
        label, list(options), key=widget, width=WIDE if wide else WIDTH, help=help,
        format_func=options.__getitem__, persist_state=PERSIST, on_change=partial(_take, state.kind, name, widget),
    )  # fmt: skip
    return chosen


def _take(kind: str, name: str, widget: str) -> None:
    """Copy the value of a widget to the field of this name: a callback."""
    put(kind, f"{VIEW}{name}", st.session_state[widget])


def view_select(kind: str, label: str, name: str, options: Mapping[Value, str], width: int = 240) -> Value:
    """A select box bound to a field of the view; the first option where it has none of them."""
    _bind(kind, name, options)
    chosen: Value = st.selectbox(
        label, list(options), key=key(kind, f"{VIEW}{name}"), format_func=options.__getitem__, width=width,
        persist_state=PERSIST,
    )  # fmt: skip
    return chosen


def view_switch(kind: str, label: str, name: str, options: Mapping[str, str]) -> str:
    """A segmented control bound to a field of the view; the first option where it has none of them."""
    _bind(kind, name, options)
    chosen = st.segmented_control(
        label, list(options), key=key(kind, f"{VIEW}{name}"), format_func=options.__getitem__, required=True,
        persist_state=PERSIST,
    )  # fmt: skip
    return str(chosen)


def view_number(kind: str, label: str, name: str, most: int) -> int:
    """A number input from 1 bound to a field of the view; the nearest number that is allowed."""
    widget = key(kind, f"{VIEW}{name}")
    now = int(st.session_state.get(widget) or getattr(DEFAULT_VIEW, name))
    st.session_state[widget] = min(max(now, 1), most)
    return int(st.number_input(label, 1, most, key=widget, width=160, persist_state=PERSIST))


def _bind(kind: str, name: str, options: Mapping[Value, str]) -> None:
    widget = key(kind, f"{VIEW}{name}")
    now = st.session_state.get(widget, getattr(DEFAULT_VIEW, name))
    put(kind, f"{VIEW}{name}", now if now in options else next(iter(options)))


TASKS = {"text": "Texts with classes", "regression": "Pairs with a score", "image": "Pictures"}
"""The plans whose finished students come with the project, by name."""
BASES = ("minilm",)
PLACES = {
    "teacher": "teacher", "model": "teacher", "dataset": "data", "data": "data", "split": "data", "base": "other",
}  # fmt: skip
"""Beside which control an error is said that begins with this name."""


def plan_controls(kind: str) -> Places:
    """All controls of the plan. Returns the places of errors."""
    model, data, sizes, seeds = st.columns([5, 4, 3, 3], gap="small")
    with model:
        _name_box("Teacher", kind, "teacher", list_models(kind), TEACHER_HELP)
    with data:
        data_control(kind, key(kind, "data"))
    sizes.text_input("Train sizes", key=key(kind, "sizes"), help=SIZES_HELP, persist_state=PERSIST)
    seeds.text_input("Seeds", key=key(kind, "seeds"), help=SEEDS_HELP, persist_state=PERSIST)
    st.pills(
        "Settings", SETTINGS, selection_mode="multi", key=key(kind, "settings"), persist_state=PERSIST,
        format_func=SETTING_TITLES.__getitem__, help=SETTING_HELP,
    )  # fmt: skip
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=key(kind, "sets")):
        st.button(
            "All seven", key=key(kind, "set.all"), type="tertiary",
            on_click=partial(put, kind, "settings", list(SETTINGS)),
        )  # fmt: skip
        if st.button("Train an explainer for this model", key=key(kind, "guide"), type="tertiary"):
            open_guide(str(st.session_state[key(kind, "teacher")]))
        with st.popover("Base and recipe", key=key(kind, "more")):
            _more(kind)
    return {"teacher": model.empty(), "data": data.empty(), "other": st.empty()}


def finished_buttons(state: ScaffoldState) -> None:
    """A button for each plan that comes with the project and is not the one shown."""
    states = {
        name: state_of(OPENING_PLANS[name], "image" if name == "image" else "text")
        for name in TASKS
        if name in OPENING_PLANS
    }
    others = {name: one for name, one in states.items() if (one.teacher, one.data) != (state.teacher, state.data)}
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=key(state.kind, "tasks")):
        st.caption("Precomputed:", width="content")
        for name, one in others.items():
            st.button(
                f"{TASKS[name]}, {one.teacher}", key=key(state.kind, f"task.{name}"), type="tertiary",
                on_click=turn_to, args=(one,), help=f"Open the precomputed students of {one.teacher} on {one.data}.",
            )  # fmt: skip


def say_beside(places: Places, error: str) -> None:
    """An error beside the control that it is about, which its first word names."""
    about = error.partition(":")[0].split(" ")[0]
    show_error(error, places[PLACES.get(about, "other")])


def _more(kind: str) -> None:
    first, second = st.columns(2, gap="small")
    with first:
        _name_box(
            "Base", kind, "base", ["", *BASES, *(embedded_bases() if kind == "text" else [])], BASE_HELP, BASE_OWN
        )
    second.text_input("Split", key=key(kind, "split"), placeholder="train", persist_state=PERSIST)
    st.caption("Recipe, from the authors' published configuration where nothing else is said.")
    field_widgets(Recipe, key(kind, PREFIX), PERSIST)


def _name_box(
    label: str, kind: str, name: str, names: Sequence[str], help: str, empty: str = ""
) -> None:  # fmt: skip
    widget = key(kind, name)
    chosen = str(st.session_state[widget] or "")
    options = list(dict.fromkeys([*names, *([chosen] if chosen else [])]))
    st.selectbox(
        label, options, key=widget, accept_new_options=True, help=help, persist_state=PERSIST,
        format_func=lambda one: one or empty,
    )  # fmt: skip
