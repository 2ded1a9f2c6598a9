"""What the strips of pins have in common: Python owns the pins, the browser asks for those that it would have.

The browser shows a click at once, counts what it asks, and is answered with the number of what it asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st

from components.compact import compact_css, compact_script
from components.trouble import say_note
from engine.errors import UsageError, not_allowed

ASSETS = Path(__file__).resolve().parent / "assets"
Pins = tuple[int, ...]
Component = Callable[..., object]


@dataclass(frozen=True)
class Picked:
    """What the browser asks for: positions, rising; `turn` counts what it asked."""

    positions: Pins
    turn: int


def strip(
    component: Component,
    key: str,
    data: Mapping[str, object],
    read: Callable[[object], Picked],
    on_pick: Callable[[Pins], None],
    **others: Callable[[], None],
) -> None:
    """Shows the strip. `on_pick` gets new pins before the script runs again: a click costs one run.

    `others`: what is called on what else the component tells.
    """
    said = st.session_state.pop(_said(key), "")
    told = {**data, "turn": _turn(key)}
    component(key=key, data=told, on_picked_change=partial(receive, key, read, on_pick), **others)
    if said:
        say_note(said)


def receive(key: str, read: Callable[[object], Picked], on_pick: Callable[[Pins], None]) -> None:
    """Takes what the browser just sent to the strip of that key. What does not fit changes nothing, and is told."""
    try:
        picked = read(st.session_state[key].get("picked"))
    except UsageError as error:
        st.session_state[_said(key)] = str(error)
        st.session_state[_turns(key)] = _turn(key) + 1
        return
    st.session_state[_turns(key)] = picked.turn
    on_pick(picked.positions)


def parse(sent: object, is_pickable: Callable[[int], bool], allowed: str) -> Picked:
    """What came from the browser, checked. `allowed` says in words what can be picked."""
    fields = sent if isinstance(sent, dict) else {}
    asked, turn = fields.get("pins"), fields.get("turn")
    if type(turn) is not int or turn < 1:
        raise _refused("turn", "a whole number from 1", turn)
    if not isinstance(asked, list) or not all(type(at) is int and is_pickable(at) for at in asked):
        raise _refused("pins", allowed, asked)
    return Picked(tuple(sorted(set(asked))), turn)


def component(name: str, file: str) -> Component:
    """The component whose style sheet and script have the name `file`; both build on those of all strips."""
    css = compact_css(_joined(file, "css")).replace("}", "}\n")  # one line alone would be taken for the name of a file
    script = compact_script(_joined(file, "js"))
    made: Component = st.components.v2.component(name, css=css, js=script, isolate_styles=False)
    return made


def _joined(file: str, kind: str) -> str:
    return "\n".join((ASSETS / f"{name}.{kind}").read_text(encoding="utf-8") for name in ("pins", file))


def _refused(argument: str, allowed: str, got: object) -> UsageError:
    return not_allowed(argument, allowed, got, "The pins stay as they were. Load the page again if this happens twice.")


def _turn(key: str) -> int:
    return int(st.session_state.get(_turns(key), 0))


def _turns(key: str) -> str:
    return f"{key}.turn"


def _said(key: str) -> str:
    return f"{key}.said"
