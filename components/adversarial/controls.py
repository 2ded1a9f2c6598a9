"""What is attacked and how hard: the example, the method, the objective, and the fields of `AttackParams`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.adversarial.session import SET, Opened, key
from components.adversarial.state import CHOICES, MOST_POINTS, baselines
from components.adversarial.strength import HELP, SAID_EPSILON
from components.adversarial.words import (
    BOTH,
    METHOD_HELP,
    OBJECTIVE_HELP,
    OBJECTIVE_TITLES,
    PLACE_TITLES,
    QUANTITY_HELP,
    QUANTITY_TITLES,
)
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.inputs.datasets import OpenTexts
from components.kept import KEPT
from components.request_link import MOST_SEED
from engine.attacks.notes import MIXED_SCALES
from engine.attacks.params import METHODS, MIXED, AttackParams
from engine.registry import Explainer

WIDTH = 130
MOST = {field.name: field.metadata.get("high") for field in dataclasses.fields(AttackParams)}
PATH_HELP = "Of integrated gradients: each is a pass of the model in each step. More points, less error."
MORE = {"steps": f"{HELP['steps']}. The thesis makes 500."}


def attack_controls(kind: str, models: list[str], methods: Mapping[str, Explainer], opened: Opened) -> DeltaGenerator:
    """All of them. Returns the place in which troubles are said."""
    if isinstance(opened, OpenTexts):
        text_choice.draw_focus_controls(models, opened)
        text_choice.draw_text_fields()
    else:
        picture_focus_controls.draw_focus_controls(models, opened)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.selectbox(
            "Attacked method", [id for id in METHODS if id in methods], key=key(kind, "method"), width=230,
            help=METHOD_HELP, format_func=lambda id: methods[id].title if id in methods else id, persist_state=KEPT,
        )  # fmt: skip
        st.segmented_control(
            "Objective", CHOICES, key=key(kind, "objective"), required=True, help=OBJECTIVE_HELP, persist_state=KEPT,
            format_func=lambda one: OBJECTIVE_TITLES.get(one, BOTH.capitalize()),
        )  # fmt: skip
        _strength_controls(kind)
        with st.popover("More settings", key=key(kind, "more")):
            _more(kind)
            _path(kind, methods)
    return st.empty()


def _strength_controls(kind: str) -> None:
    place = str(st.session_state[_name(kind, "place")])
    if kind == "image":
        st.segmented_control(
            "Moved", list(PLACE_TITLES), key=_name(kind, "place"), required=True, help=HELP["place"],
            format_func=PLACE_TITLES.__getitem__, persist_state=KEPT,
        )  # fmt: skip
    st.text_input(
        "ε", key=_name(kind, "epsilon"), placeholder=SAID_EPSILON[place], width=WIDTH, persist_state=KEPT,
        help=f"{HELP['epsilon']}. Colours are from 0 to 1. At 0 nothing may move. Fractions such as 8/255 are read.",
    )  # fmt: skip
    number = partial(_number, kind)
    number("k", "top_k", 0.05)
    number("Steps", "steps", 100)


def _more(kind: str) -> None:
    number = partial(_number, kind)
    st.segmented_control(
        "Quantity", list(QUANTITY_TITLES), key=_name(kind, "quantity"), required=True, help=QUANTITY_HELP,
        format_func=QUANTITY_TITLES.__getitem__, persist_state=KEPT,
    )  # fmt: skip
    if st.session_state[_name(kind, "quantity")] == MIXED:
        st.caption(MIXED_SCALES)
    first, second = st.columns(2, gap="small")
    with first:
        number("α", "alpha", 0.1)
        number("Learning rate", "learning_rate", 0.05)
        number("Starts", "starts", 1)
    with second:
        number("β", "beta", 0.1)
        st.number_input(
            "Seed", 0, MOST_SEED, key=key(kind, "seed"), step=1, persist_state=KEPT,
            help="Draws where the attack starts, and the examples below.",
        )  # fmt: skip
    st.checkbox("Sign steps", key=_name(kind, "sign_steps"), help=HELP["sign_steps"], persist_state=KEPT)
    st.checkbox("Special tokens too", key=_name(kind, "specials"), help=HELP["specials"], persist_state=KEPT)


def _path(kind: str, methods: Mapping[str, Explainer]) -> None:
    """What integrated gradients alone have."""
    first, second = st.columns(2, gap="small", vertical_alignment="bottom")
    usual, *others = baselines(methods)
    first.number_input(
        "Points of the path", 1, MOST_POINTS, key=key(kind, "points"), step=1, help=PATH_HELP, persist_state=KEPT
    )
    second.selectbox(
        "Start of the path", ["", *others], key=key(kind, "start"), persist_state=KEPT,
        format_func=lambda start: start or usual, help="Of integrated gradients: what stands for what is not there.",
    )  # fmt: skip


def _number(kind: str, label: str, name: str, step: int | float) -> None:
    most, shape = (MOST[name], "%d") if isinstance(step, int) else (None, "%g")
    least = 1 if isinstance(step, int) else 0.0
    st.number_input(
        label, least, most, key=_name(kind, name), step=step, format=shape, width=WIDTH,
        help=MORE.get(name, HELP[name]), persist_state=KEPT,
    )  # fmt: skip


def _name(kind: str, name: str) -> str:
    return key(kind, f"{SET}{name}")
