"""The Text page's own controls: the methods with their parameters, the view of the maps, the pinned tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from components.controls import PERSIST, gamma_slider, scale_choice, seed_input
from components.inputs.text_choice import LOOKING
from components.method_picker import all_methods, chosen_methods
from components.text.state import START, WIDGETS, TextState, key, put
from components.widgets.base import Pins
from components.widgets.token_map.picker import draw_token_picker, to_tokens, to_units
from components.widgets.view_options import LAYOUTS, STYLES
from engine.registry import Explainer
from engine.result import Explanation
from engine.word_units import UNITS, Unit, units

PICKER = "text_token_pick"


def draw_method_controls(methods: Mapping[str, Explainer]) -> None:
    """Draw the choice of the methods and their parameters."""
    chosen_methods(methods, WIDGETS)


def draw_view_controls(methods: Mapping[str, Explainer]) -> None:
    """Draw the unit, the seed, the view of the maps, and the list of all methods."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=key("options")):
        st.segmented_control(
            "Unit", UNITS, key=key("unit"), required=True, format_func=lambda kind: f"{kind.title()}s",
            persist_state=PERSIST,
        )  # fmt: skip
        seed_input(key, 120)
        with st.popover("View", key=key("view")):
            _draw_choice(
                "Layout", LAYOUTS, "Flow: each map is the text itself. Aligned: one table with a column for each token."
            )
            gamma_slider(key, "tokens")
            scale_choice(key, "ensembles and random always keep their own")
            _draw_choice("Style", STYLES)
            st.toggle(
                "Values under the tokens", key=key("values"), persist_state=PERSIST,
                help="Units then stand apart: joined letters are not joined.",
            )  # fmt: skip
        all_methods(methods, START, WIDGETS, [str(LOOKING.value("model") or "")])


def _draw_choice(label: str, options: Sequence[str], help: str | None = None) -> None:
    st.segmented_control(
        label, options, key=key(label.lower()), required=True, format_func=str.capitalize, help=help,
        persist_state=PERSIST,
    )  # fmt: skip


def draw_pins(state: TextState, probe: Explanation) -> None:
    """Draw the strip of the pinned units; nothing where there is no map to click. `probe` has the tokens."""
    if state.methods:
        draw_token_picker(_units(state, probe), state.pins, PICKER, _set_pins)


def widen_pins(state: TextState, probe: Explanation) -> TextState:
    """The state with pins of whole units, as they are ringed; the link has the tokens that were picked.

    Pins that hold no unit of the text stay, so that it can be said that they cannot be removed.
    """
    drawn = _units(state, probe)
    return replace(state, pins=to_tokens(drawn, to_units(drawn, state.pins)) or state.pins)


def pinned_names(state: TextState, probe: Explanation) -> list[str]:
    """The pinned units as the strip names them."""
    drawn = _units(state, probe)
    return [drawn[position].text for position in to_units(drawn, state.pins)]


def _units(state: TextState, probe: Explanation) -> tuple[Unit, ...]:
    return units(probe.tokens, probe.scores, state.example, state.unit)


def _set_pins(pins: Pins) -> None:
    put("pins", list(pins))
