"""Pinning patches of a picture's maps: a strip above the cards, fed by clicks, strokes and keys on any of them.

The strip also has what acts in the browser alone: the opacity of the maps, and the flip to the picture and back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import streamlit as st

from components.widgets import base as strips
from components.widgets.base import Component, PinEvent, Pins
from components.widgets.patch_map.html import CARDS

NAME = "exegesis_patch_pick"
OPACITY = 70
"""Percent of the map's color over the picture, by default."""
MOST_OPACITY = 100


def draw_patch_picker(
    grid: tuple[int, int],
    pins: Pins,
    key: str,
    on_pick: Callable[[Pins], None],
    opacity: int = OPACITY,
    on_opacity: Callable[[int], None] | None = None,
) -> None:
    """Draw the pins and let people change them. `pins` are numbers of patches, row by row from 0.

    `on_pick` receives the new ones before the script runs again, as a widget's callback does. `opacity`, in percent,
    is where the slider starts. Maps follow it without a run, and where people leave it is remembered while the page
    lives; `on_opacity`, if there is one, receives it.
    """
    data = browser_data(grid, pins, opacity) | {"asks": on_opacity is not None}
    events = {} if on_opacity is None else {"on_opacity_change": partial(_take_opacity, key, on_opacity)}
    strips.draw_strip(_component(), key, data, partial(parse, grid=grid), on_pick, **events)


def on_grid(grid: tuple[int, int], pins: Pins) -> Pins:
    """The pins that this grid has: those of another model's grid are left out."""
    return tuple(at for at in sorted(set(pins)) if 0 <= at < grid[0] * grid[1])


def browser_data(grid: tuple[int, int], pins: Pins, opacity: int = OPACITY) -> dict[str, object]:
    """The component's data, in plain values."""
    rows, columns = grid
    pinned = list(on_grid(grid, pins))
    return {"rows": rows, "columns": columns, "opacity": opacity, "scope": CARDS, "pinned": pinned}


def parse(sent: object, grid: tuple[int, int]) -> PinEvent:
    """The pins that the browser sent, checked: they must fit this grid."""
    patches = grid[0] * grid[1]
    return strips.parse_pins(sent, lambda at: 0 <= at < patches, f"numbers of patches from 0 to {patches - 1}")


def _take_opacity(key: str, on_opacity: Callable[[int], None]) -> None:
    """Hand over the opacity that the browser has just sent; what is no percent changes nothing."""
    opacity = st.session_state[key].get("opacity")
    if type(opacity) is int and 0 <= opacity <= MOST_OPACITY:
        on_opacity(opacity)


@cache
def _component() -> Component:
    return strips.build_component(NAME, "picker", folder=Path(__file__).parent)
