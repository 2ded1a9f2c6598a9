"""Pinning units of the maps: a strip above them, fed by clicks on any map and by the keyboard.

Python owns the pins and stores them as positions of tokens, so that they survive a change of unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path

from components.widgets import base as strips
from components.widgets.base import Component, PinEvent, Pins
from components.widgets.token_map.html import DIGITS, STACK, direction
from engine.word_units import Unit

NAME = "exegesis_token_pick"


def draw_token_picker(units: Sequence[Unit], pins: Pins, key: str, on_pick: Callable[[Pins], None]) -> None:
    """Draw the pins and let people change them. `pins` are positions of tokens, of any of a unit's tokens.

    `on_pick` receives the new ones before the script runs again, as a widget's callback does.
    """
    drawn = tuple(units)
    read, take = partial(parse, units=drawn), partial(hand_over, drawn, on_pick)
    strips.draw_strip(_component(), key, browser_data(drawn, pins), read, take)


def to_tokens(units: Sequence[Unit], positions: Iterable[int]) -> Pins:
    """The tokens of the units at these positions, rising."""
    return tuple(sorted({token for position in positions for token in units[position].tokens}))


def to_units(units: Sequence[Unit], tokens: Iterable[int]) -> Pins:
    """The positions of the units with any of these tokens, rising; special units and lost tokens are left out."""
    wanted = set(tokens)
    return tuple(at for at, unit in enumerate(units) if not unit.special and wanted.intersection(unit.tokens))


def browser_data(units: Sequence[Unit], pins: Pins) -> dict[str, object]:
    """The component's data: plain lists by position of the unit.

    `places` are the indexes that maps name; empty where each is the unit's position.
    """
    texts, places = [unit.text for unit in units], [unit.tokens[0] for unit in units]
    return {
        "texts": texts,
        "places": [] if places == list(range(len(places))) else places,
        "special": [at for at, unit in enumerate(units) if unit.special],
        "pinned": list(to_units(units, pins)),
        "direction": direction("".join(unit.text for unit in units if not unit.special)),
        "scope": STACK,
        "digits": DIGITS,
    }


def parse(sent: object, units: Sequence[Unit]) -> PinEvent:
    """The pins that the browser sent, checked: they must fit these units."""
    allowed = f"positions from 0 to {len(units) - 1} that are not special tokens"
    return strips.parse_pins(sent, lambda at: 0 <= at < len(units) and not units[at].special, allowed)


def hand_over(units: Sequence[Unit], on_pick: Callable[[Pins], None], positions: Pins) -> None:
    """Give `on_pick` the tokens of the units at these positions."""
    on_pick(to_tokens(units, positions))


@cache
def _component() -> Component:
    return strips.build_component(NAME, "picker", folder=Path(__file__).parent)
