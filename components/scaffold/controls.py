"""What is taught: teacher, data set, settings, train sizes, seeds, and in folds what is seldom changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from components.experiment.controls import Places, data_control
from components.kept import KEPT
from components.parameters import field_widgets
from components.scaffold.session import key, put, turn_to
from components.scaffold.state import EXPLAINER, PREFIX, ScaffoldState, of_plan
from components.scaffold.words import (
    BASE_HELP,
    BASE_OWN,
    SEEDS_HELP,
    SETTING_HELP,
    SETTING_TITLES,
    SIZES_HELP,
    TEACHER_HELP,
)
from components.trouble import say_error
from engine.input_kinds import list_models
from engine.models.catalog import embedded_bases
from engine.scaffold.opening import OPENING
from engine.scaffold.plan import SETTINGS, Recipe

SETS = {"All seven": SETTINGS, "Train an explainer for my model": EXPLAINER}
TASKS = {"text": "Texts with classes", "regression": "Pairs with a score", "image": "Pictures"}
"""What comes taught, by the name of its plan."""
BASES = ("minilm",)
PLACES = {
    "teacher": "teacher", "model": "teacher", "dataset": "data", "data": "data", "split": "data", "base": "other",
}  # fmt: skip
"""Beside which control an error is said that begins with this name."""


def plan_controls(kind: str) -> Places:
    """All of them. Returns the places in which troubles are said."""
    model, data, sizes, seeds = st.columns([5, 4, 3, 3], gap="small")
    with model:
        _named("Teacher", kind, "teacher", _models(kind), TEACHER_HELP)
    with data:
        data_control(kind, key(kind, "data"))
    sizes.text_input("Train sizes", key=key(kind, "sizes"), help=SIZES_HELP, persist_state=KEPT)
    seeds.text_input("Seeds", key=key(kind, "seeds"), help=SEEDS_HELP, persist_state=KEPT)
    st.pills(
        "Settings", SETTINGS, selection_mode="multi", key=key(kind, "settings"), persist_state=KEPT,
        format_func=SETTING_TITLES.__getitem__, help=SETTING_HELP,
    )  # fmt: skip
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=key(kind, "sets")):
        for name, settings in SETS.items():
            st.button(
                name, key=key(kind, f"set.{name}"), type="tertiary",
                on_click=partial(put, kind, "settings", list(settings)),
            )  # fmt: skip
        with st.popover("Base and recipe", key=key(kind, "more")):
            _more(kind)
    return {"teacher": model.empty(), "data": data.empty(), "other": st.empty()}


def finished_buttons(state: ScaffoldState) -> None:
    """A button for each grid that comes with the project and is not the one shown."""
    there = {name: of_plan(OPENING[name], "image" if name == "image" else "text") for name in TASKS if name in OPENING}
    others = {name: one for name, one in there.items() if (one.teacher, one.data) != (state.teacher, state.data)}
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=key(state.kind, "tasks")):
        st.caption("Comes taught:", width="content")
        for name, one in others.items():
            st.button(
                f"{TASKS[name]}, {one.teacher}", key=key(state.kind, f"task.{name}"), type="tertiary",
                on_click=turn_to, args=(one,), help=f"Opens what was taught of {one.teacher} on {one.data}.",
            )  # fmt: skip


def say_beside(places: Places, trouble: str) -> None:
    """An error beside the control that it is about, which its first word names."""
    about = trouble.partition(":")[0].split(" ")[0]
    say_error(trouble, places[PLACES.get(about, "other")])


def _more(kind: str) -> None:
    first, second = st.columns(2, gap="small")
    with first:
        _named("Base", kind, "base", ["", *BASES, *(embedded_bases() if kind == "text" else [])], BASE_HELP, BASE_OWN)
    second.text_input("Split", key=key(kind, "split"), placeholder="train", persist_state=KEPT)
    st.caption("Recipe, from the authors' published configuration where nothing else is said.")
    field_widgets(Recipe, key(kind, PREFIX), KEPT)


def _named(
    label: str, kind: str, name: str, known: Sequence[str], help: str, empty: str = ""
) -> None:  # fmt: skip
    widget = key(kind, name)
    chosen = str(st.session_state[widget] or "")
    options = list(dict.fromkeys([*known, *([chosen] if chosen else [])]))
    st.selectbox(
        label, options, key=widget, accept_new_options=True, help=help, persist_state=KEPT,
        format_func=lambda one: one or empty,
    )  # fmt: skip


def _models(kind: str) -> list[str]:
    return list_models(kind)
