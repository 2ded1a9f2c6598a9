"""The pinned tokens of the Text page: shown above the maps, changed by clicks on them."""

from __future__ import annotations

from dataclasses import replace

from components.pins import Pins
from components.text import session as text_session
from components.text.state import TextState
from components.widgets.token_map.picker import draw_token_picker, to_tokens, to_units
from engine.result import Explanation
from engine.word_units import Unit, units

KEY = "text_token_pick"


def pin_area(state: TextState, probe: Explanation) -> None:
    """The strip of the pinned units; nothing where there is no map to click. `probe` has the tokens."""
    if state.methods:
        draw_token_picker(_drawn(state, probe), state.pins, KEY, _keep)


def widened(state: TextState, probe: Explanation) -> TextState:
    """With pins of whole units: what is ringed is what is asked about. The link keeps what was picked.

    Pins that hold no unit of the text stay, so that it can be said that they cannot be removed.
    """
    drawn = _drawn(state, probe)
    return replace(state, pins=to_tokens(drawn, to_units(drawn, state.pins)) or state.pins)


def pinned_names(state: TextState, probe: Explanation) -> list[str]:
    """The pinned units as the strip names them."""
    drawn = _drawn(state, probe)
    return [drawn[position].text for position in to_units(drawn, state.pins)]


def _drawn(state: TextState, probe: Explanation) -> tuple[Unit, ...]:
    return units(probe.tokens, probe.scores, state.example, state.unit)


def _keep(pins: Pins) -> None:
    text_session.put("pins", list(pins))
