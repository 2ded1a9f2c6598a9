"""Controls of all pages with maps: the seed, the scale and its gamma."""

from __future__ import annotations

import streamlit as st

from components.browse.controls import Key
from components.kept import KEPT
from components.request_link import MOST_SEED
from components.widgets.view_options import LEAST_GAMMA, MOST_GAMMA, SCALES


def seed_input(key: Key, width: int) -> None:
    """The seed; `width` in pixels."""
    st.number_input(
        "Seed", 0, MOST_SEED, key=key("seed"), step=1, width=width, persist_state=KEPT,
        help="For the methods that draw at random.",
    )  # fmt: skip


def gamma_slider(key: Key, parts: str) -> None:
    """The power of a score's share of the scale. `parts`: what has the scores, in the plural."""
    st.slider(
        "Gamma", LEAST_GAMMA, MOST_GAMMA, key=key("gamma"), step=0.1, persist_state=KEPT,
        help=f"The colour is this power of the score's share of the scale: 1 is linear, less reveals weak {parts}.",
    )  # fmt: skip


def scale_choice(key: Key, apart: str) -> None:
    """One scale for each map, or for those of one unit. `apart`: which maps keep their own anyway."""
    st.segmented_control(
        "Scale", SCALES, key=key("scale"), required=True, format_func=str.capitalize, persist_state=KEPT,
        help="Shared: one scale for the maps that have the same unit. Logits, probabilities, sensitivities and "
        f"attention are different units, so they never share one; {apart}.",
    )  # fmt: skip
