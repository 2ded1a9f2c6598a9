"""Visible progress: a line with a stop button, and places on the page that fill with explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.compute import STOPPED, Tick, explain, is_stopped
from components.errors import describe_error, show_error
from components.method_row import Placeholder, placeholder_html, waiting_placeholder
from components.widgets.view_options import scale_group, shared_ends
from engine.errors import Cancelled
from engine.explain import cached_explanation, key_of
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation

T = TypeVar("T")
Draw = Callable[[Explainer, Explanation], str]
Ends = Mapping[str, float]
"""Ends of the scales, by group of maps."""
Extent = Callable[[Explainer, Explanation], float]
"""Function that returns the largest score of a map."""


def resume_button(place: DeltaGenerator, key: str, sentence: str) -> None:
    """Draw a sentence on what was stopped and a button that resumes it. `key`: cache key of a stopped request."""
    box = place.container(horizontal=True, vertical_alignment="center", gap="small")
    box.info(sentence)
    box.button("Go on", key=f"go_on.{key}", on_click=_resume, help="Computes what was stopped.")


class ProgressLine:
    """A line of progress. Once the wait is noticeable, it has a button that stops all of the work."""

    def __init__(self, place: DeltaGenerator, keys: Sequence[str], head: str = "") -> None:
        """`place`: an empty element. `keys`: cache keys of the requests. `head`: name of the first part."""
        self._place, self._keys = place, list(keys)
        self._box: DeltaGenerator | None = None
        self._bar: DeltaGenerator | None = None
        self._share, self._head, self._offered = 0.0, head, False

    def show(self, share: int | float, head: str) -> None:
        """Draw the finished share of the work, from 0 to 1. `head`: name of the current part."""
        self._share, self._head = float(share), head
        self._draw(head)

    def tick(self, words: str) -> None:
        """Draw the progress of the current part."""
        self._draw(f"{self._head}: {words}")
        if self._box is not None and not self._offered:
            self._offered = True
            self._box.button("Stop", key=f"stop.{self._keys[0]}", on_click=_stop, args=(self._keys,))

    def clear(self) -> None:
        self._place.empty()

    def _draw(self, words: str) -> None:
        if self._bar is None:
            self._box = self._place.container(horizontal=True, vertical_alignment="center", gap="small")
            self._bar = self._box.empty()
        self._bar.progress(self._share, words)


def run_with_progress(
    place: DeltaGenerator, key: Callable[[], str], head: str, stopped: str, work: Callable[[Tick], T]
) -> T | None:
    """Return the result of `work`, or draw in `place` why there is none and return None.

    `place`: an empty element. `key`: returns the cache key. `head`: name of the work. `stopped`: message for stopped
    work.
    """
    try:
        line = ProgressLine(place, [key()], head)
        result = work(line.tick)
        line.clear()
        return result
    except Cancelled:
        resume_button(place, key(), stopped)
    except Exception as error:
        show_error(describe_error(error), place)
    return None


@runtime_checkable
class Slot(Protocol):
    """A part of the page that can be redrawn: an empty element, or a part of one."""

    def html(self, body: str) -> object:
        """Replace the content."""


@dataclass(eq=False)
class MethodPlace:
    """A method's place on the page.

    `made`: its explanation, once computed. `stopped`: whether the person stopped it. Until then the place shows the
    HTML of `quiet`, or of `preview`, which computes an estimate of the map; it returns an empty string if the estimate
    is useless.
    """

    method: Explainer
    request: Request
    slot: Slot
    made: Explanation | None = None
    stopped: bool = False
    quiet: Callable[[Placeholder], str] = placeholder_html
    preview: Callable[[Tick], str] | None = None


def fill_places(
    places: Sequence[MethodPlace], draw: Draw, progress: DeltaGenerator, show: Callable[[], None] = lambda: None
) -> None:
    """Draw each explanation in its place, cached and cheap ones first, or the reason why there is none.

    `show` is called before each computation, and by the caller again at the end. It displays what was drawn since, for
    places where drawing alone does not.
    """
    cached: dict[MethodPlace, Explanation] = {}
    missing = [place for place in places if not _is_there(place, cached)]
    line = ProgressLine(progress, [key_of(place.request) for place in missing])
    for place in missing:
        place.slot.html(place.quiet(waiting_placeholder(place.method.title, now=False)))
    for place in places:
        if place not in missing:
            _fill_one(place, draw, line.tick, cached.get(place))
    there = sum(place.made is not None for place in places)
    whole = there + len(missing)  # a place that is known to fail is not counted
    previewed = [place for place in missing if _draw_preview(place, line, there / whole)]
    for done, place in enumerate(sorted(missing, key=lambda place: not place.method.cheap), there):
        line.show(done / whole, f"{done} of {whole} methods. Computing: {place.method.title}")
        if place not in previewed:
            place.slot.html(place.quiet(waiting_placeholder(place.method.title, now=True)))
        show()
        _fill_one(place, draw, line.tick)
    line.clear()
    stopped = [place for place in places if place.stopped]
    if stopped:
        have = "has" if len(stopped) == 1 else "have"
        text = f"Stopped: {len(stopped)} of {len(places)} methods {have} no map."
        resume_button(progress, key_of(stopped[0].request), text)


def share_scales(
    places: Sequence[MethodPlace], extent: Extent, draw: Callable[[Explainer, Explanation, Ends], str]
) -> None:
    """Redraw the existing maps on scales that maps of the same unit share."""
    existing = [(place, place.made) for place in places if place.made is not None]
    ends = shared_scale_ends(((place.method, explanation) for place, explanation in existing), extent)
    for place, explanation in existing:
        place.slot.html(draw(place.method, explanation, ends))


def shared_scale_ends(explained: Iterable[tuple[Explainer, Explanation]], extent: Extent) -> dict[str, float]:
    """Return the ends of the scales that at least two maps share, by group."""
    return shared_ends((scale_group(method, one.provenance.params), extent(method, one)) for method, one in explained)


def _stop(keys: Sequence[str]) -> None:
    st.session_state[STOPPED] = sorted({*st.session_state.get(STOPPED, []), *keys})


def _resume() -> None:
    st.session_state[STOPPED] = []


def _is_there(place: MethodPlace, cached: dict[MethodPlace, Explanation]) -> bool:
    """Whether nothing has to be computed: the explanation is cached, was stopped, or is known to fail.

    A cached explanation is added to `cached`, because a second lookup takes as long: its key depends on the model's
    files.
    """
    try:
        explanation = cached_explanation(place.request)
        if explanation is not None:
            cached[place] = explanation
        return explanation is not None or is_stopped(key_of(place.request))
    except Exception:  # `_fill_one` meets the error again and draws it
        return True


def _draw_preview(place: MethodPlace, line: ProgressLine, share: float) -> bool:
    """Draw an estimate of a map that is still to be computed. Return whether there is one."""
    if place.preview is None:
        return False
    try:
        line.show(share, f"Preview: {place.method.title}")
        html = place.preview(line.tick)
    except Exception:  # the exact map follows and reports the error
        return False
    if html:
        place.slot.html(html)
    return bool(html)


def _fill_one(place: MethodPlace, draw: Draw, tick: Tick, cached: Explanation | None = None) -> None:
    try:
        made = cached or explain(place.request, tick)
        html = draw(place.method, made)
        place.made = made
    except Cancelled as stopped:
        place.stopped = True
        html = place.quiet(Placeholder(place.method.title, str(stopped)))
    except Exception as error:
        html = place.quiet(Placeholder(place.method.title, describe_error(error), failed=True))
    place.slot.html(html)
