"""Common parts of our browser components: their files, their keys, and their events.

Python owns the state, such as the pins of a strip, and the browser sends events. The browser shows a click immediately,
counts its events in `turn`, and receives the turn of the last event that was answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from components.errors import show_note
from components.lazy import st
from components.numbers import plural
from engine.errors import UsageError, not_allowed

BASE = Path(__file__).with_suffix("")
"""Path without suffix of the script and the style sheet that all widgets share."""
Pins = tuple[int, ...]
Component = Callable[..., object]
PIN_HINT = (
    "Click a {unit} in any map to pin it, and again to unpin it. Shift-click pins a range, Esc unpins all. "
    "By keyboard: arrow keys and Space. The prediction without the pinned {units} appears below."
)
STAYS = "The pins did not change. If this happens again, reload the page."


@runtime_checkable
class ComponentEvent(Protocol):
    """An event of the browser. `turn`: its number."""

    @property
    def turn(self) -> int: ...


SomeEvent = TypeVar("SomeEvent", bound=ComponentEvent)


@dataclass(frozen=True)
class PinEvent:
    """The pins that the browser requests, as positions in ascending order."""

    positions: Pins
    turn: int


def draw_strip(
    component: Component,
    key: str,
    data: Mapping[str, object],
    read: Callable[[object], PinEvent],
    on_pick: Callable[[Pins], None],
    **others: Callable[[], None],
) -> None:
    """Draw a strip of pins. `on_pick` receives new pins before the script runs again, so a click costs one run.

    `others`: callbacks of the component's other events.
    """
    draw_component(component, key, data, on_picked_change=partial(receive_pins, key, read, on_pick), **others)


def draw_pin_hint(unit: str) -> None:
    """Draw the instructions for pinning, which are the same for all maps. `unit`: noun for what is pinned."""
    st.caption(PIN_HINT.format(unit=unit, units=plural(unit)))


def draw_component(component: Component, key: str, data: Mapping[str, object], **events: Callable[[], None]) -> None:
    """Draw a component that sends events, and below it the reason if its last event was refused."""
    refusal = st.session_state.pop(_refusal_key(key), "")
    # Streamlit checks whether a list in the data is a table, for which it imports pandas. It does not check tuples.
    sent = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    component(key=key, data={**sent, "turn": _answered_turn(key)}, **events)
    if refusal:
        show_note(refusal)


def receive_pins(key: str, read: Callable[[object], PinEvent], on_pick: Callable[[Pins], None]) -> None:
    """Receive an event of the strip with this key. Invalid pins change nothing; a note reports them."""
    event = receive_event(key, "picked", read)
    if event is not None:
        on_pick(event.positions)


def receive_event(key: str, name: str, read: Callable[[object], SomeEvent]) -> SomeEvent | None:
    """Return the browser's event and answer its turn; or refuse it, so that a note reports it, and return None."""
    try:
        event = read(st.session_state[key].get(name))
    except UsageError as error:
        refuse_event(key, str(error))
        return None
    st.session_state[_turn_key(key)] = event.turn
    return event


def refuse_event(key: str, reason: str) -> None:
    """Answer the browser's last event with the unchanged state; the next run draws the reason."""
    st.session_state[_refusal_key(key)] = reason
    st.session_state[_turn_key(key)] = _answered_turn(key) + 1


def parse_pins(sent: object, is_pickable: Callable[[int], bool], allowed: str) -> PinEvent:
    """Parse the pins in a value from the browser. Errors: `allowed` says what can be pinned."""
    fields = sent if isinstance(sent, dict) else {}
    positions, turn = fields.get("pins"), parse_turn(fields, STAYS)
    if not isinstance(positions, list) or not all(type(at) is int and is_pickable(at) for at in positions):
        raise not_allowed("pins", allowed, positions, STAYS)
    return PinEvent(tuple(sorted(set(positions))), turn)


def parse_turn(fields: Mapping[str, object], next_step: str) -> int:
    """Parse the turn in a value from the browser. Errors: it is not an integer from 1."""
    turn = fields.get("turn")
    if type(turn) is not int or turn < 1:
        raise not_allowed("turn", "a whole number from 1", turn, next_step)
    return turn


def build_component(name: str, *files: str, folder: Path, html: str | None = None) -> Component:
    """Build a component from the style sheets and scripts with these names in `folder`, after those of the base."""
    css, script = component_files(*files, folder=folder)
    built: Component = st.components.v2.component(name, html=html, css=css, js=script, isolate_styles=False)
    return built


def component_files(*files: str, folder: Path) -> tuple[str, str]:
    """Return the style sheet and the script of a component, as sent to the browser."""
    paths = [BASE, *(folder / file for file in files)]
    return _joined(paths, "css"), _joined(paths, "js")


def component_key(key: str) -> str:
    """Return a component's key without two adjacent underscores or one at its end. Different keys stay different.

    Streamlit joins a component's key and its events by two underscores and refuses to draw one whose key has them.
    """
    safe = key.replace("%", "%25").replace("__", "_%5F")
    return f"{safe[:-1]}%5F" if safe.endswith("_") else safe


def _joined(paths: Sequence[Path], kind: str) -> str:
    """Join the existing files of this kind; not every script has a style sheet."""
    files = [path.with_suffix(f".{kind}") for path in paths]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())


def _answered_turn(key: str) -> int:
    return int(st.session_state.get(_turn_key(key), 0))


def _turn_key(key: str) -> str:
    return f"{key}.turn"


def _refusal_key(key: str) -> str:
    return f"{key}.said"
