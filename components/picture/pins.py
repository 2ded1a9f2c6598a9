"""The pinned patches of the Images page: shown above the maps, changed by clicks and strokes on them."""

from __future__ import annotations

from components.picture import session as picture_session
from components.picture.state import PictureState
from components.pins import Pins
from components.trouble import say_error
from components.widgets.patch_map.picker import draw_patch_picker, on_grid
from engine.result import Explanation

KEY = "picture_patch_pick"


def pin_area(state: PictureState, probe: Explanation) -> None:
    """The strip of the pinned patches; nothing where there is no map to click. `probe` has the grid."""
    if probe.grid is None:
        return
    if told := left_out(probe.grid, state.pins):
        say_error(told)
    if state.methods:
        draw_patch_picker(probe.grid, state.pins, KEY, _keep, state.look.opacity, _fade)


def left_out(grid: tuple[int, int], pins: Pins) -> str:
    """What to say of pins that the grid does not have; empty where it has all."""
    beyond = ", ".join(str(pin) for pin in pins if pin not in on_grid(grid, pins))
    if not beyond:
        return ""
    rows, columns = grid
    return (
        f"pin: must be numbers of patches from 0 to {rows * columns - 1} ({rows} rows of {columns}), "
        f"got {beyond[:40]}. They are left out; click the patches that you mean."
    )


def _keep(pins: Pins) -> None:
    picture_session.put("pins", list(pins))


def _fade(opacity: int) -> None:
    picture_session.put("opacity", opacity)
