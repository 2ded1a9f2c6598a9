"""The pinned tokens of the Text page: shown above the maps, changed by clicks on them."""

from __future__ import annotations

from components import text_session
from components.text_state import TextState
from components.token_pick import Pins, token_pick
from engine.result import Explanation
from engine.words import units

KEY = "text_token_pick"


def pin_area(state: TextState, probe: Explanation) -> None:
    """The strip of the pinned units; nothing where there is no map to click. `probe` has the tokens."""
    if state.methods:
        token_pick(units(probe.tokens, probe.scores, state.example, state.unit), state.pins, KEY, _keep)


def _keep(pins: Pins) -> None:
    text_session.put("pins", list(pins))
