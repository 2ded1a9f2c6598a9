"""Pinning patches of a picture's maps: a strip above the cards, fed by clicks, strokes and keys on any of them.

The strip also has what acts in the browser alone: the opacity of the maps, and the flip to the picture and back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import streamlit as st

from components import pins as strips
from components.picture.styles import CARDS
from components.pins import Component, Picked, Pins

NAME = "exegesis_patch_pick"
OPACITY = 70
"""Percent of the map's colour over the picture, where nothing else is said."""
MOST_OPACITY = 100


def patch_pick(
    grid: tuple[int, int],
    pins: Pins,
    key: str,
    on_pick: Callable[[Pins], None],
    opacity: int = OPACITY,
    on_opacity: Callable[[int], None] | None = None,
) -> None:
    """Shows the pins and lets people change them. `pins` are numbers of patches, row by row from 0.

    `on_pick` gets the new ones before the script runs again, as a widget's callback does. `opacity`, in percent, is
    where the slider starts. Maps follow it without a run, and where people leave it is remembered while the page
    lives; `on_opacity`, if there is one, is told of it.
    """
    told = picture(grid, pins, opacity) | {"asks": on_opacity is not None}
    others = {} if on_opacity is None else {"on_opacity_change": partial(_fade, key, on_opacity)}
    strips.strip(_component(), key, told, partial(parse, grid=grid), on_pick, **others)


def on_grid(grid: tuple[int, int], pins: Pins) -> Pins:
    """The pins that this grid has: those of another model's grid are left out."""
    return tuple(at for at in sorted(set(pins)) if 0 <= at < grid[0] * grid[1])


def picture(grid: tuple[int, int], pins: Pins, opacity: int = OPACITY) -> dict[str, object]:
    """What the browser is told, in plain values."""
    rows, columns = grid
    told = {"rows": rows, "columns": columns, "opacity": opacity, "scope": CARDS}
    return told | {"pinned": list(on_grid(grid, pins))}


def parse(sent: object, grid: tuple[int, int]) -> Picked:
    """What came from the browser, checked: it must fit this grid."""
    patches = grid[0] * grid[1]
    return strips.parse(sent, lambda at: 0 <= at < patches, f"numbers of patches of 0 to {patches - 1}")


def _fade(key: str, on_opacity: Callable[[int], None]) -> None:
    """Takes the opacity that the browser just sent; what is no percent changes nothing."""
    opacity = st.session_state[key].get("opacity")
    if type(opacity) is int and 0 <= opacity <= MOST_OPACITY:
        on_opacity(opacity)


@cache
def _component() -> Component:
    return strips.component(NAME, "patch_pick")
