"""Pinning units of the maps: a strip above them, fed by clicks on any map and by the keyboard.

Python owns the pins and holds them as positions of tokens, so that they survive a change of unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial

from components import pins as strips
from components.pins import Component, Picked, Pins
from components.styles import STACK
from components.text.token_map import DIGITS, direction
from engine.word_units import Unit

NAME = "exegesis_token_pick"


def token_pick(units: Sequence[Unit], pins: Pins, key: str, on_pick: Callable[[Pins], None]) -> None:
    """Shows the pins and lets people change them. `pins` are positions of tokens, of any of a unit's tokens.

    `on_pick` gets the new ones before the script runs again, as a widget's callback does.
    """
    shown = tuple(units)
    read, take = partial(parse, units=shown), partial(hand_over, shown, on_pick)
    strips.strip(_component(), key, picture(shown, pins), read, take)


def to_tokens(units: Sequence[Unit], positions: Iterable[int]) -> Pins:
    """The tokens of the units at these positions, rising."""
    return tuple(sorted({token for position in positions for token in units[position].tokens}))


def to_units(units: Sequence[Unit], tokens: Iterable[int]) -> Pins:
    """The positions of the units that hold any of these tokens, rising; special units and lost tokens are left out."""
    wanted = set(tokens)
    return tuple(at for at, unit in enumerate(units) if not unit.special and wanted.intersection(unit.tokens))


def picture(units: Sequence[Unit], pins: Pins) -> dict[str, object]:
    """What the browser is told: plain lists by position of the unit.

    `places` are the indexes that maps name; none are told where each is the unit's position.
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


def parse(sent: object, units: Sequence[Unit]) -> Picked:
    """What came from the browser, checked: it must fit these units."""
    allowed = f"positions of 0 to {len(units) - 1} that are no special tokens"
    return strips.parse(sent, lambda at: 0 <= at < len(units) and not units[at].special, allowed)


def hand_over(units: Sequence[Unit], on_pick: Callable[[Pins], None], positions: Pins) -> None:
    """Gives `on_pick` the tokens of the units at these positions."""
    on_pick(to_tokens(units, positions))


@cache
def _component() -> Component:
    return strips.component(NAME, "token_pick")
