"""What the strips of pins have in common: Python owns the pins, the browser asks for those that it would have.

The browser shows a click at once, counts what it asks, and is answered with the number of what it asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

import streamlit as st

from components.compact import compact_css, compact_script
from components.trouble import say_note
from engine.errors import UsageError, not_allowed

ASSETS = Path(__file__).resolve().parent / "assets"
Pins = tuple[int, ...]
Component = Callable[..., object]
STAYS = "The pins stay as they were. Load the page again if this happens twice."


@runtime_checkable
class Turned(Protocol):
    """Anything that counts what the browser asked."""

    @property
    def turn(self) -> int: ...


Asked = TypeVar("Asked", bound=Turned)


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
    tell(component, key, data, on_picked_change=partial(receive, key, read, on_pick), **others)


def tell(component: Component, key: str, data: Mapping[str, object], **events: Callable[[], None]) -> None:
    """Shows a component that asks by turns, and below it why its last question was refused, if it was."""
    said = st.session_state.pop(_said(key), "")
    component(key=key, data={**data, "turn": _turn(key)}, **events)
    if said:
        say_note(said)


def receive(key: str, read: Callable[[object], Picked], on_pick: Callable[[Pins], None]) -> None:
    """Takes what the browser just sent to the strip of that key. What does not fit changes nothing, and is told."""
    picked = heard(key, "picked", read)
    if picked is not None:
        on_pick(picked.positions)


def heard(key: str, event: str, read: Callable[[object], Asked]) -> Asked | None:
    """What the browser just asked; its number is kept as answered. None where it is refused, which is told."""
    try:
        asked = read(st.session_state[key].get(event))
    except UsageError as error:
        refuse(key, str(error))
        return None
    st.session_state[_turns(key)] = asked.turn
    return asked


def refuse(key: str, why: str) -> None:
    """Answers the browser's last question with what Python holds already; the next run says why."""
    st.session_state[_said(key)] = why
    st.session_state[_turns(key)] = _turn(key) + 1


def parse(sent: object, is_pickable: Callable[[int], bool], allowed: str) -> Picked:
    """What came from the browser, checked. `allowed` says in words what can be picked."""
    fields = sent if isinstance(sent, dict) else {}
    asked, turn = fields.get("pins"), turn_of(fields, STAYS)
    if not isinstance(asked, list) or not all(type(at) is int and is_pickable(at) for at in asked):
        raise not_allowed("pins", allowed, asked, STAYS)
    return Picked(tuple(sorted(set(asked))), turn)


def turn_of(fields: Mapping[str, object], next_step: str) -> int:
    """The number of the browser's question, checked."""
    turn = fields.get("turn")
    if type(turn) is not int or turn < 1:
        raise not_allowed("turn", "a whole number from 1", turn, next_step)
    return turn


def component(name: str, *files: str, folder: Path = ASSETS) -> Component:
    """The component whose style sheets and scripts, one after the other, have these names; strips begin them all.

    `folder`: the place of the files.
    """
    paths = [ASSETS / "pins", *(folder / file for file in files)]
    css = compact_css(_joined(paths, "css")).replace("}", "}\n")  # one line alone would be taken for the name of a file
    script = compact_script(_joined(paths, "js"))
    made: Component = st.components.v2.component(name, css=css, js=script, isolate_styles=False)
    return made


def _joined(paths: Sequence[Path], kind: str) -> str:
    """The files of that kind: not every script has a style sheet."""
    files = [path.with_suffix(f".{kind}") for path in paths]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())


def _turn(key: str) -> int:
    return int(st.session_state.get(_turns(key), 0))


def _turns(key: str) -> str:
    return f"{key}.turn"


def _said(key: str) -> str:
    return f"{key}.said"
