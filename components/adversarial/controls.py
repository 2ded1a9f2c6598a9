"""Controls of the Adversarial page and its session: the link fills the widgets, and the widgets write the link.

Texts and pictures each have their own session, so switching between them loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.adversarial.descriptions import (
    BOTH,
    METHOD_HELP,
    NOT_ATTACKED,
    OBJECTIVE_HELP,
    OBJECTIVE_TITLES,
    PLACE_TITLES,
    QUANTITY_HELP,
    QUANTITY_TITLES,
    TRANSFER,
    TRANSFER_HELP,
)
from components.adversarial.state import (
    CHOICES,
    EPSILON_TEXTS,
    HELP,
    LINK_FIELDS,
    MOST_EXAMPLES,
    MOST_POINTS,
    NAMES,
    SCALES,
    AdversarialState,
    baselines,
    read_state,
    settings_as_text,
    widget_settings,
    write,
)
from components.controls import PERSIST, options_popover
from components.experiment.state import models_control
from components.inputs import choices, picture_choice, text_choice
from components.inputs.choices import SELECTIONS, Opened
from components.inputs.datasets import OpenPictures
from components.links import MOST_SEED
from components.state import KindSessions, control_values, sections_of
from engine.attacks.attack import MIXED_SCALES
from engine.attacks.plan import METHODS, MIXED, AttackParams
from engine.registry import Explainer

SESSIONS = KindSessions("adversarial", SELECTIONS)
chosen_kind, key, put = SESSIONS.chosen, SESSIONS.key, SESSIONS.put
FIELDS = ("method", "objective", "seed", "points", "start", "scale", "others")
SET, MANY, OPEN = "set.", "many.", "open."
MOST = {field.name: field.metadata.get("high") for field in dataclasses.fields(AttackParams)}
PATH_HELP = (
    "For integrated gradients. Each point costs a pass through the model per step; more points reduce the error."
)
MORE = {"steps": f"{HELP['steps']}. The thesis uses 500."}


def load(kind: str, models: list[str], methods: Mapping[str, Explainer]) -> tuple[AdversarialState, Opened, list[str]]:
    """Fill widgets that have no value from the last link. Returns its state, the open data set and errors."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    opened = choices.CHOICES[kind].open(link)
    state, errors = read_state(kind, link, models, methods, opened)
    choices.CHOICES[kind].fill(state.focus, opened)
    session.fill(control_values("", state, FIELDS))
    session.fill({f"{SET}{name}": value for name, value in widget_settings(kind, state.strength).items()})
    session.fill(control_values(MANY, state.many))
    session.fill({f"{OPEN}{name}": name in state.opened for name in sections_of(state)})
    return state, opened, session.tell(errors, fresh, lambda: write(state), state, LINK_FIELDS)


def from_widgets(loaded: AdversarialState, opened: Opened) -> AdversarialState:
    """Return the state of the controls; the value of a control that is not drawn stays as loaded."""
    session = SESSIONS[loaded.kind]
    return dataclasses.replace(
        session.read_record("", loaded, FIELDS),
        focus=choices.CHOICES[loaded.kind].controls(opened),
        strength=settings_as_text(loaded.kind, session.values(SET, NAMES)),
        opened=session.opened_sections(loaded),
        many=session.read_record(MANY, loaded.many),
    )


def save(state: AdversarialState, loaded: AdversarialState) -> None:
    """Store the state and write it into the address if it changed."""
    SESSIONS.remember(state, loaded, write)


def open_example(state: AdversarialState, opened: Opened, model: str, index: int, method: str, objective: str) -> None:
    """Show one of the many attacks in the upper panel; for use as a callback."""
    choices.CHOICES[state.kind].show(opened, index)
    SELECTIONS[state.kind].put("model", model)
    put(state.kind, "method", method)
    if objective not in state.objectives:
        put(state.kind, "objective", objective)
    # The experiment keeps its models, whichever model is shown above.
    put(state.kind, f"{MANY}models", list(state.many.models or (state.focus.model,)))


def attack_controls(kind: str, models: list[str], methods: Mapping[str, Explainer], opened: Opened) -> DeltaGenerator:
    """Draw all controls of the attack on one example. Returns the place for errors."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        SESSIONS.switch()
        st.selectbox(
            "Attacked method", [id for id in METHODS if id in methods], key=key(kind, "method"), width=200,
            help=METHOD_HELP, format_func=lambda id: methods[id].title if id in methods else id, persist_state=PERSIST,
        )  # fmt: skip
    row = choices.CHOICES[kind].draw(models, opened)
    if (options := options_popover(key(kind, ""), row)) is not None:
        with options:
            _options(kind, methods, opened)
    return st.empty()


def _options(kind: str, methods: Mapping[str, Explainer], opened: Opened) -> None:
    """Draw the rarely used controls."""
    if isinstance(opened, OpenPictures):
        picture_choice.draw_split_control(opened)
    st.segmented_control(
        "Objective", CHOICES, key=key(kind, "objective"), required=True, help=OBJECTIVE_HELP, persist_state=PERSIST,
        format_func=lambda one: OBJECTIVE_TITLES.get(one, BOTH.capitalize()),
    )  # fmt: skip
    _strength_controls(kind)
    _path_controls(kind, methods)
    _view_controls(kind, methods)


def _strength_controls(kind: str) -> None:
    if kind == "image":
        st.segmented_control(
            "Perturb", list(PLACE_TITLES), key=_name(kind, "place"), required=True, help=HELP["place"],
            format_func=PLACE_TITLES.__getitem__, persist_state=PERSIST,
        )  # fmt: skip
    number, (first, second) = partial(_number, kind), st.columns(2, gap="small")
    with first:
        st.text_input(
            "ε", key=_name(kind, "epsilon"), persist_state=PERSIST,
            placeholder=EPSILON_TEXTS[str(st.session_state[_name(kind, "place")])],
            help=f"{HELP['epsilon']}. Colors range from 0 to 1. At 0 nothing can change. A fraction such as 8/255 is "
            "accepted.",
        )  # fmt: skip
        number("Steps", "steps", 100)
        number("α", "alpha", 0.1)
        number("Learning rate", "learning_rate", 0.05)
    with second:
        number("Top k", "top_k", 0.05)
        number("Starts", "starts", 1)
        number("β", "beta", 0.1)
        st.number_input(
            "Seed", 0, MOST_SEED, key=key(kind, "seed"), step=1, persist_state=PERSIST,
            help="Seed of the random starts, and of the sample of examples below.",
        )  # fmt: skip
    st.segmented_control(
        "Quantity", list(QUANTITY_TITLES), key=_name(kind, "quantity"), required=True, help=QUANTITY_HELP,
        format_func=QUANTITY_TITLES.__getitem__, persist_state=PERSIST,
    )  # fmt: skip
    if st.session_state[_name(kind, "quantity")] == MIXED:
        st.caption(MIXED_SCALES)
    st.checkbox("Sign steps", key=_name(kind, "sign_steps"), help=HELP["sign_steps"], persist_state=PERSIST)
    st.checkbox("Special tokens too", key=_name(kind, "specials"), help=HELP["specials"], persist_state=PERSIST)


def _path_controls(kind: str, methods: Mapping[str, Explainer]) -> None:
    """Draw the settings of integrated gradients."""
    first, second = st.columns(2, gap="small", vertical_alignment="bottom")
    usual, *others = baselines(methods)
    first.number_input(
        "Path points", 1, MOST_POINTS, key=key(kind, "points"), step=1, help=PATH_HELP, persist_state=PERSIST
    )
    second.selectbox(
        "Path baseline", ["", *others], key=key(kind, "start"), persist_state=PERSIST,
        format_func=lambda start: start or usual, help="For integrated gradients: the input at the start of the path.",
    )  # fmt: skip


def _view_controls(kind: str, methods: Mapping[str, Explainer]) -> None:
    """Draw the choice of the color scale, of the second text, and of other methods whose maps are shown."""
    st.segmented_control(
        "Scale", list(SCALES), key=key(kind, "scale"), required=True, format_func=SCALES.__getitem__,
        persist_state=PERSIST,
        help="Own: each map has its own color scale, which shows its order. Shared: one scale for the maps before and "
        "after, which shows whose scores grew.",
    )  # fmt: skip
    if kind == "text":
        text_choice.draw_pair_switch()
    if st.toggle("Maps of other methods", key=key(kind, f"{OPEN}others"), help=TRANSFER, persist_state=PERSIST):
        st.multiselect(
            "Other methods", list(methods), key=key(kind, "others"), help=NOT_ATTACKED, placeholder="No method",
            format_func=lambda id: methods[id].title if id in methods else id, persist_state=PERSIST,
        )  # fmt: skip


def _number(kind: str, label: str, name: str, step: int | float) -> None:
    most, shape = (MOST[name], "%d") if isinstance(step, int) else (None, "%g")
    least = 1 if isinstance(step, int) else 0.0
    st.number_input(
        label, least, most, key=_name(kind, name), step=step, format=shape, help=MORE.get(name, HELP[name]),
        persist_state=PERSIST,
    )  # fmt: skip


def _name(kind: str, name: str) -> str:
    return key(kind, f"{SET}{name}")


def experiment_controls(kind: str, methods: Mapping[str, Explainer]) -> None:
    """Draw the controls of attacks on many examples."""
    line = st.container(horizontal=True, gap="small", vertical_alignment="bottom")
    with line:
        st.pills(
            "Attacked methods", [id for id in METHODS if id in methods], selection_mode="multi", persist_state=PERSIST,
            key=key(kind, f"{MANY}methods"), format_func=lambda id: methods[id].title,
        )  # fmt: skip
    if (options := options_popover(key(kind, MANY), line)) is None:
        return
    with options:
        st.number_input(
            "Examples", 1, MOST_EXAMPLES, key=key(kind, f"{MANY}examples"), step=1, persist_state=PERSIST,
            help="Number of random examples; all examples if the data set has fewer.",
        )  # fmt: skip
        models_control(kind, key(kind, f"{MANY}models"), SELECTIONS[kind].key("data"))
        st.caption("Leave empty to use the model above.")
        st.multiselect(
            "Other methods to measure", list(methods), key=key(kind, f"{MANY}transfer"), persist_state=PERSIST,
            format_func=lambda id: methods[id].title if id in methods else id, help=TRANSFER_HELP,
            placeholder="No method",
        )  # fmt: skip
