"""Pinning units of the maps: a strip above them, fed by clicks on any map and by the keyboard.

Python owns the pins and holds them as positions of tokens, so that they survive a change of unit. The browser shows
a click at once, asks for the pins that it would have, and is answered with the number of what it asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import streamlit as st

from components.compact import compact_css, compact_script
from components.styles import STACK
from components.token_map import DIGITS, direction
from components.trouble import say_note
from engine.errors import UsageError, not_allowed
from engine.words import Unit

ASSETS = Path(__file__).resolve().parent / "assets"
NAME = "exegesis_token_pick"
Pins = tuple[int, ...]


@dataclass(frozen=True)
class Picked:
    """What the browser asks for: positions of units, rising; `turn` counts what it asked."""

    units: Pins
    turn: int


def token_pick(units: Sequence[Unit], pins: Pins, key: str, on_pick: Callable[[Pins], None]) -> None:
    """Shows the pins and lets people change them. `pins` are positions of tokens, of any of a unit's tokens.

    `on_pick` gets the new ones before the script runs again, as a widget's callback does: a click costs one run.
    """
    turn, said = _turn(key), st.session_state.pop(_said(key), "")
    data = picture(units, pins) | {"turn": turn}
    _component()(key=key, data=data, on_picked_change=partial(receive, key, tuple(units), on_pick))
    if said:
        say_note(said)


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
    fields = sent if isinstance(sent, dict) else {}
    asked, turn = fields.get("pins"), fields.get("turn")
    if type(turn) is not int or turn < 1:
        raise _refused("turn", "a whole number from 1", turn)
    if not isinstance(asked, list) or not all(_is_pickable(at, units) for at in asked):
        raise _refused("pins", f"positions of 0 to {len(units) - 1} that are no special tokens", asked)
    return Picked(tuple(sorted(set(asked))), turn)


def receive(key: str, units: Sequence[Unit], on_pick: Callable[[Pins], None]) -> None:
    """Takes what the browser just sent to the strip of that key. What does not fit changes nothing, and is told."""
    try:
        picked = parse(st.session_state[key].get("picked"), units)
    except UsageError as error:
        st.session_state[_said(key)] = str(error)
        st.session_state[_turns(key)] = _turn(key) + 1
        return
    st.session_state[_turns(key)] = picked.turn
    on_pick(to_tokens(units, picked.units))


def _is_pickable(at: object, units: Sequence[Unit]) -> bool:
    return type(at) is int and 0 <= at < len(units) and not units[at].special


def _refused(argument: str, allowed: str, got: object) -> UsageError:
    return not_allowed(argument, allowed, got, "The pins stay as they were. Load the page again if this happens twice.")


def _turn(key: str) -> int:
    return int(st.session_state.get(_turns(key), 0))


def _turns(key: str) -> str:
    return f"{key}.turn"


def _said(key: str) -> str:
    return f"{key}.said"


@cache
def _component() -> Callable[..., object]:
    css, js = ((ASSETS / f"token_pick.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    css = compact_css(css).replace("}", "}\n")  # one line alone would be taken for the name of a file
    return st.components.v2.component(NAME, css=css, js=compact_script(js), isolate_styles=False)
