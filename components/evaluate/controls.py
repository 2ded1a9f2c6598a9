"""What is evaluated: models, data set, methods, and behind a button all that is seldom changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from components.controls import PERSIST
from components.evaluate.session import key, put
from components.evaluate.state import ENSEMBLES, METHODS, MOST_EXAMPLES, QUICK, SEVEN
from components.experiment.controls import Places, data_control, models_control
from components.links import MOST_SEED
from components.method_picker import all_methods, chosen_methods
from engine.input_kinds import input_kind
from engine.metrics.catalog import METRICS
from engine.registry import Explainer

SETS: Mapping[str, tuple[str, ...]] = {
    "The thesis's seven": (*SEVEN, "random"),
    "With ensembles": (*SEVEN, *ENSEMBLES, "random"),
    "Quick ones": QUICK,
}


def plan_controls(kind: str, methods: Mapping[str, Explainer]) -> Places:
    """All of them. Returns the places in which troubles are said."""
    model, data, number = st.columns([6, 4, 2], gap="small")
    with model:
        models_control(kind, key(kind, "models"))
    with data:
        data_control(kind, key(kind, "data"))
    number.number_input(
        "Examples", 1, MOST_EXAMPLES, key=key(kind, "examples"), step=1, persist_state=PERSIST,
        help="So many are drawn by the seed; all of a data set that has fewer.",
    )  # fmt: skip
    chosen_methods(methods, key(kind, ""))
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=key(kind, "sets")):
        for name, ids in SETS.items():
            known = [id for id in ids if id in methods]
            st.button(
                name, key=key(kind, f"set.{name}"), on_click=partial(put, kind, "methods", known), type="tertiary"
            )
        all_methods(methods, METHODS[kind], key(kind, ""), st.session_state[key(kind, "models")])
        with st.popover("More settings", key=key(kind, "more")):
            _more(kind)
    return {"model": model.empty(), "data": data.empty(), "other": st.empty()}


def _more(kind: str) -> None:
    st.multiselect(
        "Metrics", list(METRICS), key=key(kind, "metrics"), format_func=lambda id: METRICS[id].title, wrap=True,
        placeholder="All that suit the data set", persist_state=PERSIST,
        help="None chosen: all that the data set allows for. Only where they are chosen: sensitivity, which "
        "explains each example many times over, and falls of the logit.",
    )  # fmt: skip
    first, second = st.columns(2, gap="small")
    first.text_input("Split", key=key(kind, "split"), placeholder="the usual one", persist_state=PERSIST)
    second.number_input(
        "Seed", 0, MOST_SEED, key=key(kind, "seed"), step=1, persist_state=PERSIST,
        help="Draws the examples, breaks ties, and is the seed of methods that sample.",
    )  # fmt: skip
    with first:
        _choice(kind, "unit", "Unit", input_kind(kind).units, "What is ranked, removed and compared with marks.")
    with second:
        _choice(kind, "removal", "Removed by", input_kind(kind).removals, "How units are taken away for the metrics.")
    st.text_input(
        "Shares removed, in percent", key=key(kind, "shares"), persist_state=PERSIST,
        help="Comprehensiveness and sufficiency are means over these.",
    )  # fmt: skip


def _choice(kind: str, name: str, label: str, known: Sequence[str], help: str) -> None:
    st.selectbox(
        label, ["", *known], key=key(kind, name), help=help, persist_state=PERSIST,
        format_func=lambda one: one.capitalize() or f"Usual ({known[0]})",
    )  # fmt: skip
