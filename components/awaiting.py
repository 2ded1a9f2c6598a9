"""What a page waits for, in sight: how far it is, a button that stops it, and why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from streamlit.delta_generator import DeltaGenerator

from components.computing import Tick
from components.stopping import ProgressLine, go_on_button
from components.trouble import say_error, sentence
from engine.errors import Cancelled

T = TypeVar("T")


def awaited(
    place: DeltaGenerator, key: Callable[[], str], head: str, stopped: str, work: Callable[[Tick], T]
) -> T | None:
    """What `work` makes; None after saying in `place`, an empty element, why there is none.

    `key`: makes the cache key of what is computed. `head` names the work; `stopped` is said when it was stopped.
    """
    try:
        line = ProgressLine(place, [key()], head)
        made = work(line.tick)
        line.clear()
        return made
    except Cancelled:
        go_on_button(place, key(), stopped)
    except Exception as error:
        say_error(sentence(error), place)
    return None
