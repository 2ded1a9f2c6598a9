"""The Images page's own controls: the methods with their parameters, the view of the maps, the pinned patches."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.controls import PERSIST, gamma_slider, scale_choice, seed_input
from components.errors import show_error
from components.images.state import START, WIDGETS, PictureState, key, put
from components.inputs.picture_choice import LOOKING
from components.method_picker import all_methods, chosen_methods
from components.widgets.base import Pins
from components.widgets.patch_map.picker import draw_patch_picker, on_grid
from engine.registry import Explainer
from engine.result import Explanation

PICKER = "picture_patch_pick"


def draw_method_controls(methods: Mapping[str, Explainer]) -> None:
    """Draw the choice of the methods and their parameters."""
    chosen_methods(methods, WIDGETS)


def draw_view_controls(methods: Mapping[str, Explainer]) -> None:
    """Draw the seed, the view of the maps, and the list of all methods."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=key("options")):
        seed_input(key, 110)
        with st.popover("View", key=key("view")):
            scale_choice(key, "random always keeps its own")
            gamma_slider(key, "patches")
            st.toggle(
                "Outline of the truth", key=key("outline"), persist_state=PERSIST,
                help="Where the data set marks what its label names.",
            )  # fmt: skip
        all_methods(methods, START, WIDGETS, [str(LOOKING.value("model") or "")])


def draw_pins(state: PictureState, probe: Explanation) -> None:
    """Draw the strip of the pinned patches; nothing where there is no map to click. `probe` has the grid."""
    if probe.grid is None:
        return
    if error := explain_lost_pins(probe.grid, state.pins):
        show_error(error)
    if state.methods:
        draw_patch_picker(probe.grid, state.pins, PICKER, _set_pins, state.view.opacity, _set_opacity)


def explain_lost_pins(grid: tuple[int, int], pins: Pins) -> str:
    """The sentence on pins that the grid does not have; empty where it has all."""
    beyond = ", ".join(str(pin) for pin in pins if pin not in on_grid(grid, pins))
    if not beyond:
        return ""
    rows, columns = grid
    return (
        f"pin: must be numbers of patches from 0 to {rows * columns - 1} ({rows} rows of {columns}), "
        f"got {beyond[:40]}. They are left out; click the patches that you mean."
    )


def _set_pins(pins: Pins) -> None:
    put("pins", list(pins))


def _set_opacity(opacity: int) -> None:
    put("opacity", opacity)
