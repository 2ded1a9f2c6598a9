"""The Text page's own controls: the methods with their parameters, how they are shown, the class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from components.inputs.text_choice import LOOKING
from components.kept import KEPT
from components.map_controls import gamma_slider, scale_choice, seed_input
from components.method_picker import all_methods, chosen_methods
from components.text.session import WIDGETS, key
from components.text.state import START
from components.widgets.view_options import LAYOUTS, STYLES
from engine.registry import Explainer
from engine.word_units import UNITS


def method_controls(methods: Mapping[str, Explainer]) -> None:
    """Which methods, with which parameters, drawn as tokens or words."""
    chosen_methods(methods, WIDGETS)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=key("options")):
        st.segmented_control(
            "Unit", UNITS, key=key("unit"), required=True, format_func=lambda kind: f"{kind.title()}s",
            persist_state=KEPT,
        )  # fmt: skip
        seed_input(key, 120)
        with st.popover("View", key=key("view")):
            _look_controls()
        all_methods(methods, START, WIDGETS, [str(LOOKING.value("model") or "")])


def _look_controls() -> None:
    _look("Layout", LAYOUTS, "Flow: each map is the text itself. Aligned: one table with a column for each token.")
    gamma_slider(key, "tokens")
    scale_choice(key, "ensembles and random always keep their own")
    _look("Style", STYLES)
    st.toggle(
        "Values under the tokens", key=key("values"), persist_state=KEPT,
        help="Units then stand apart: joined letters are not joined.",
    )  # fmt: skip


def _look(label: str, options: Sequence[str], help: str | None = None) -> None:
    st.segmented_control(
        label, options, key=key(label.lower()), required=True, format_func=str.capitalize, help=help,
        persist_state=KEPT,
    )  # fmt: skip
