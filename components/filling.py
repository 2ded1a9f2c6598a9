"""Places on the page that fill as explanations are there: what is known and quick first, costly methods last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from streamlit.delta_generator import DeltaGenerator

from components.computing import Tick
from components.engine_room import explain, is_cached, key_of
from components.method_row import Quiet, quiet_html, waiting
from components.stopping import ProgressLine, go_on_button, is_stopped
from components.trouble import sentence
from engine.errors import Cancelled, ExegesisError
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation

Draw = Callable[[Explainer, Explanation], str]


@runtime_checkable
class Slot(Protocol):
    """What can be drawn anew: an empty element of the page, or a part of one."""

    def html(self, body: str) -> object:
        """Draws instead of what stood there."""


@dataclass(eq=False)
class Place:
    """A method's place on the page; `made` once its explanation is there, `stopped` if the person
    stopped it. `quiet` draws what stands there till then.
    """

    method: Explainer
    request: Request
    slot: Slot
    made: Explanation | None = None
    stopped: bool = False
    quiet: Callable[[Quiet], str] = quiet_html


def fill(
    places: Sequence[Place], draw: Draw, progress: DeltaGenerator, show: Callable[[], None] = lambda: None
) -> None:
    """Draws each explanation in its place, or the sentence that says why there is none.

    `show` is called before each computation and needs to be called again at the end: it brings into sight what was
    drawn since, where drawing alone does not.
    """
    missing = [place for place in places if not _is_there(place)]
    line = ProgressLine(progress, [key_of(place.request) for place in missing])
    for place in missing:
        place.slot.html(place.quiet(waiting(place.method.title, now=False)))
    for place in places:
        if place not in missing:
            _fill_one(place, draw, line.tick)
    there = sum(place.made is not None for place in places)
    whole = there + len(missing)  # what is known to fail is no work
    for done, place in enumerate(sorted(missing, key=lambda place: not place.method.cheap), there):
        line.show(done / whole, f"{done} of {whole} methods. Computing: {place.method.title}")
        place.slot.html(place.quiet(waiting(place.method.title, now=True)))
        show()
        _fill_one(place, draw, line.tick)
    line.clear()
    stopped = [place for place in places if place.stopped]
    if stopped:
        have = "has" if len(stopped) == 1 else "have"
        said = f"Stopped: {len(stopped)} of {len(places)} methods {have} no map."
        go_on_button(progress, key_of(stopped[0].request), said)


def _is_there(place: Place) -> bool:
    """Whether the place needs no computing: its explanation is cached, it was stopped, or its error is known."""
    try:
        return is_cached(place.request) or is_stopped(key_of(place.request))
    except ExegesisError:
        return True


def _fill_one(place: Place, draw: Draw, tick: Tick) -> None:
    try:
        made = explain(place.request, tick)
        html = draw(place.method, made)
        place.made = made
    except Cancelled as stopped:
        place.stopped = True
        html = place.quiet(Quiet(place.method.title, str(stopped)))
    except Exception as error:
        html = place.quiet(Quiet(place.method.title, sentence(error), failed=True))
    place.slot.html(html)
