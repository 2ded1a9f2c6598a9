"""The controls of the Adversarial page and its session: a link fills the widgets, they write the link.

A text and a picture have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.adversarial.descriptions import (
    BOTH,
    MANY_ABOUT,
    METHOD_HELP,
    OBJECTIVE_HELP,
    OBJECTIVE_TITLES,
    PLACE_TITLES,
    QUANTITY_HELP,
    QUANTITY_TITLES,
    TRANSFER_HELP,
)
from components.adversarial.state import (
    CHOICES,
    EPSILON_TEXTS,
    HELP,
    MOST_EXAMPLES,
    MOST_POINTS,
    NAMES,
    AdversarialState,
    baselines,
    read_picture,
    read_text,
    settings_as_text,
    widget_settings,
    write,
)
from components.controls import PERSIST
from components.experiment.controls import models_control
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.inputs.datasets import OpenPictures, OpenTexts, open_pictures, open_texts
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.links import MOST_SEED, Query
from components.state import KindSwitch, PageSession, control_values, sections_of
from engine.attacks.attack import MIXED_SCALES
from engine.attacks.plan import METHODS, MIXED, AttackParams
from engine.registry import Explainer

LOOKINGS = {"text": text_choice.LOOKING, "image": picture_focus_controls.LOOKING}
SESSIONS = {kind: PageSession(f"adversarial_{kind}", looking, ()) for kind, looking in LOOKINGS.items()}
INPUT_KIND = KindSwitch("adversarial", LOOKINGS)
chosen_kind, kind_switch = INPUT_KIND.chosen, INPUT_KIND.switch
Opened = OpenTexts | OpenPictures
FIELDS = ("method", "objective", "seed", "points", "start", "scale", "others")
SET, MANY, OPEN = "set.", "many.", "open."
WIDTH = 130
MOST = {field.name: field.metadata.get("high") for field in dataclasses.fields(AttackParams)}
PATH_HELP = "Of integrated gradients: each is a pass of the model in each step. More points, less error."
MORE = {"steps": f"{HELP['steps']}. The thesis makes 500."}


def key(kind: str, name: str) -> str:
    """The widget key of a control."""
    return SESSIONS[kind].key(name)


def put(kind: str, name: str, value: object) -> None:
    """Set a control before it is drawn."""
    SESSIONS[kind].put(name, value)


def load(kind: str, models: list[str], methods: Mapping[str, Explainer]) -> tuple[AdversarialState, Opened, list[str]]:
    """Fill the widgets that have no value yet. Returns the state of the last link and its errors."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    opened, (state, errors) = _open_data(kind, link, models, methods)
    if isinstance(state.focus, TextFocus) and isinstance(opened, OpenTexts):
        text_choice.fill_controls(state.focus, opened)
    elif isinstance(state.focus, PictureFocus) and isinstance(opened, OpenPictures):
        picture_focus_controls.fill_controls(state.focus, opened)
    session.fill(control_values("", state, FIELDS))
    session.fill({f"{SET}{name}": value for name, value in widget_settings(kind, state.strength).items()})
    session.fill(control_values(MANY, state.many))
    session.fill({f"{OPEN}{name}": name in state.opened for name in sections_of(state)})
    shown = session.tell(errors, fresh)
    if fresh and errors:
        session.correct(write(state), [])  # what is wrong in a link is not passed on
    return state, opened, shown


def from_widgets(loaded: AdversarialState, opened: Opened) -> AdversarialState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    session = SESSIONS[loaded.kind]
    return dataclasses.replace(
        session.read_record("", loaded, FIELDS),
        focus=_focus(opened),
        strength=settings_as_text(loaded.kind, session.values(SET, NAMES)),
        opened=session.opened_sections(loaded),
        many=session.read_record(MANY, loaded.many),
    )


def save(state: AdversarialState, loaded: AdversarialState) -> None:
    """Remember the state and put it into the address, unless the address has it already."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write(state) if changed else {}, changed)


def open_example(state: AdversarialState, opened: Opened, model: str, index: int, method: str, objective: str) -> None:
    """Show one of many attacks in the upper panel from now on: in a callback."""
    if isinstance(opened, OpenTexts):
        text_choice.show(opened, index)
    else:
        picture_focus_controls.show(opened, index)
    LOOKINGS[state.kind].put("model", model)
    put(state.kind, "method", method)
    if objective not in state.objectives:
        put(state.kind, "objective", objective)
    # The models of the many stay those that they were, whichever is looked at above.
    put(state.kind, f"{MANY}models", list(state.many.models or (state.focus.model,)))


def _open_data(kind: str, link: Query, models: list[str], methods: Mapping[str, Explainer]) -> tuple[Opened, Any]:
    if kind == "text":
        data = open_texts(text_choice.requested_dataset(link))
        return data, read_text(link, models, methods, data)
    pictures = open_pictures(*picture_focus_controls.requested_dataset(link))
    return pictures, read_picture(link, models, methods, pictures)


def _focus(opened: Opened) -> TextFocus | PictureFocus:
    if isinstance(opened, OpenTexts):
        return text_choice.read_controls(opened)
    return picture_focus_controls.read_controls(opened)


def attack_controls(kind: str, models: list[str], methods: Mapping[str, Explainer], opened: Opened) -> DeltaGenerator:
    """All controls of the attack on one example. Returns the place for errors."""
    if isinstance(opened, OpenTexts):
        text_choice.draw_focus_controls(models, opened)
        text_choice.draw_text_fields()
    else:
        picture_focus_controls.draw_focus_controls(models, opened)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.selectbox(
            "Attacked method", [id for id in METHODS if id in methods], key=key(kind, "method"), width=230,
            help=METHOD_HELP, format_func=lambda id: methods[id].title if id in methods else id, persist_state=PERSIST,
        )  # fmt: skip
        st.segmented_control(
            "Objective", CHOICES, key=key(kind, "objective"), required=True, help=OBJECTIVE_HELP, persist_state=PERSIST,
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
            format_func=PLACE_TITLES.__getitem__, persist_state=PERSIST,
        )  # fmt: skip
    st.text_input(
        "ε", key=_name(kind, "epsilon"), placeholder=EPSILON_TEXTS[place], width=WIDTH, persist_state=PERSIST,
        help=f"{HELP['epsilon']}. Colors are from 0 to 1. At 0 nothing may move. Fractions such as 8/255 are read.",
    )  # fmt: skip
    number = partial(_number, kind)
    number("k", "top_k", 0.05)
    number("Steps", "steps", 100)


def _more(kind: str) -> None:
    number = partial(_number, kind)
    st.segmented_control(
        "Quantity", list(QUANTITY_TITLES), key=_name(kind, "quantity"), required=True, help=QUANTITY_HELP,
        format_func=QUANTITY_TITLES.__getitem__, persist_state=PERSIST,
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
            "Seed", 0, MOST_SEED, key=key(kind, "seed"), step=1, persist_state=PERSIST,
            help="Draws where the attack starts, and the examples below.",
        )  # fmt: skip
    st.checkbox("Sign steps", key=_name(kind, "sign_steps"), help=HELP["sign_steps"], persist_state=PERSIST)
    st.checkbox("Special tokens too", key=_name(kind, "specials"), help=HELP["specials"], persist_state=PERSIST)


def _path(kind: str, methods: Mapping[str, Explainer]) -> None:
    """The settings of integrated gradients alone."""
    first, second = st.columns(2, gap="small", vertical_alignment="bottom")
    usual, *others = baselines(methods)
    first.number_input(
        "Points of the path", 1, MOST_POINTS, key=key(kind, "points"), step=1, help=PATH_HELP, persist_state=PERSIST
    )
    second.selectbox(
        "Start of the path", ["", *others], key=key(kind, "start"), persist_state=PERSIST,
        format_func=lambda start: start or usual, help="Of integrated gradients: what stands for what is not there.",
    )  # fmt: skip


def _number(kind: str, label: str, name: str, step: int | float) -> None:
    most, shape = (MOST[name], "%d") if isinstance(step, int) else (None, "%g")
    least = 1 if isinstance(step, int) else 0.0
    st.number_input(
        label, least, most, key=_name(kind, name), step=step, format=shape, width=WIDTH,
        help=MORE.get(name, HELP[name]), persist_state=PERSIST,
    )  # fmt: skip


def _name(kind: str, name: str) -> str:
    return key(kind, f"{SET}{name}")


def experiment_controls(kind: str, methods: Mapping[str, Explainer]) -> None:
    """The controls of attacks on many examples: models, methods, how many examples."""
    st.subheader("On many examples", anchor=False)
    st.caption(MANY_ABOUT)
    models, number = st.columns([6, 2], gap="small")
    with models:
        models_control(kind, key(kind, f"{MANY}models"))
        st.caption("None chosen: the model above.")
    number.number_input(
        "Examples", 1, MOST_EXAMPLES, key=key(kind, f"{MANY}examples"), step=1, persist_state=PERSIST,
        help="So many are drawn by the seed; all of a data set that has fewer.",
    )  # fmt: skip
    st.pills(
        "Attacked methods", [id for id in METHODS if id in methods], selection_mode="multi", persist_state=PERSIST,
        key=key(kind, f"{MANY}methods"), format_func=lambda id: methods[id].title,
    )  # fmt: skip
    st.multiselect(
        "Also asked of every attacked input", list(methods), key=key(kind, f"{MANY}transfer"), persist_state=PERSIST,
        format_func=lambda id: methods[id].title if id in methods else id, help=TRANSFER_HELP, placeholder="No method",
    )  # fmt: skip
