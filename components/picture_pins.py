"""The pinned patches of the Images page: shown above the maps, changed by clicks and strokes on them."""

from __future__ import annotations

from components import picture_session
from components.patch_pick import patch_pick
from components.picture_state import PictureState
from components.pins import Pins
from engine.result import Explanation

KEY = "picture_patch_pick"


def pin_area(state: PictureState, probe: Explanation) -> None:
    """The strip of the pinned patches; nothing where there is no map to click. `probe` has the grid."""
    if state.methods and probe.grid is not None:
        patch_pick(probe.grid, state.pins, KEY, _keep, state.look.opacity, _fade)


def _keep(pins: Pins) -> None:
    picture_session.put("pins", list(pins))


def _fade(opacity: int) -> None:
    picture_session.put("opacity", opacity)
