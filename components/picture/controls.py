"""The Images page's own controls: the methods with their parameters, and how their maps are drawn."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.inputs.picture_choice import LOOKING
from components.kept import KEPT
from components.map_controls import gamma_slider, scale_choice, seed_input
from components.method_picker import all_methods, chosen_methods
from components.picture.session import WIDGETS, key
from components.picture.state import START
from engine.registry import Explainer


def method_controls(methods: Mapping[str, Explainer]) -> None:
    """Which methods explain the picture, and which of their parameters are not the usual ones."""
    chosen_methods(methods, WIDGETS)


def look_controls(methods: Mapping[str, Explainer]) -> None:
    """The seed, how the maps are drawn, and the list of all methods."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=key("options")):
        seed_input(key, 110)
        with st.popover("View", key=key("view")):
            _look_controls()
        all_methods(methods, START, WIDGETS, [str(LOOKING.value("model") or "")])


def _look_controls() -> None:
    scale_choice(key, "random always keeps its own")
    gamma_slider(key, "patches")
    st.toggle(
        "Outline of the truth", key=key("outline"), persist_state=KEPT,
        help="Where the data set marks what its label names.",
    )  # fmt: skip
