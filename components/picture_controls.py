"""The Images page's own controls: the methods with their parameters, and how their maps are drawn."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.look import LEAST_GAMMA, MOST_GAMMA, SCALES
from components.method_picker import all_methods, chosen_methods
from components.picture_session import WIDGETS, key
from components.picture_state import START
from components.request_link import MOST_SEED
from engine.registry import Explainer


def method_controls(methods: Mapping[str, Explainer]) -> None:
    """Which methods explain the picture, and which of their parameters are not the usual ones."""
    chosen_methods(methods, WIDGETS)


def look_controls(methods: Mapping[str, Explainer]) -> None:
    """The seed, how the maps are drawn, and the list of all methods."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=key("options")):
        st.number_input(
            "Seed", 0, MOST_SEED, key=key("seed"), step=1, width=110, help="For the methods that draw at random."
        )
        with st.popover("View", key=key("view")):
            _look_controls()
        all_methods(methods, START, WIDGETS)


def _look_controls() -> None:
    st.segmented_control(
        "Scale", SCALES, key=key("scale"), required=True, format_func=str.capitalize,
        help="Shared: one scale for the maps that have the same unit. Logits, probabilities, sensitivities and "
        "attention are different units, so they never share one; random always keeps its own.",
    )  # fmt: skip
    st.slider(
        "Gamma", LEAST_GAMMA, MOST_GAMMA, key=key("gamma"), step=0.1,
        help="The colour is this power of the score's share of the scale: 1 is linear, less reveals weak patches.",
    )  # fmt: skip
    st.toggle("Outline of the truth", key=key("outline"), help="Where the data set marks what its label names.")
