"""The state of the Images page, as plain values: in a link, in the widgets, and in the session between runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.controls import PERSIST, gamma_slider, options_popover, scale_choice, seed_input
from components.errors import show_error
from components.inputs import picture_choice
from components.inputs.datasets import OpenPictures, open_pictures
from components.inputs.imported_maps import methods_for_input
from components.inputs.picture_choice import (
    PictureFocus,
    is_other_picture,
    read_picture_focus,
    write_picture_focus,
)
from components.links import Query, last_values, opened_option, pins_option, read_record, write_record
from components.method_picker import all_methods
from components.state import PageSession, PageState, control_values, read_shared, write_shared
from components.widgets.base import Pins
from components.widgets.patch_map import MOST_OPACITY, OPACITY, draw_patch_picker, on_grid
from components.widgets.view_options import SCALES, ViewOptions, gamma
from engine.errors import UsageError
from engine.params import option
from engine.registry import Explainer
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Picture, Request
from engine.result import Explanation
from engine.shipped.gallery import PICTURE_METHODS

START = PICTURE_METHODS
OF_A_PICTURE = ("pin",)
"""Fields of a link that belong to one picture only."""
RECORDS = ("view", "sliding", "significance")
"""Fields of the state that are records of options."""
SESSION = PageSession("picture", picture_choice.SELECTION, (*OF_A_PICTURE, "target"))
WIDGETS, key, value, put = SESSION.widgets, SESSION.key, SESSION.value, SESSION.put
PICKER = "picture_patch_pick"


@dataclass(frozen=True)
class PictureViewOptions:
    """View options of the Images page.

    `opacity`: opacity of a map at its largest score, in percent. `outline`: whether the labeled object is outlined.
    `gamma`, `scale`: as in `ViewOptions`.
    """

    opacity: int = option(OPACITY, low=0, high=MOST_OPACITY)
    outline: bool = True
    gamma: float = gamma()
    scale: str = option(SCALES[0], choices=SCALES)

    @property
    def maps(self) -> ViewOptions:
        """The options of the maps themselves."""
        return ViewOptions(gamma=self.gamma, scale=self.scale)


DEFAULT_PICTURE_VIEW = PictureViewOptions()
SLIDING = "sliding."
"""Prefix of the widget keys of the sliding window."""
MOST_WINDOW, MOST_POSITION = 64, 9_999


@dataclass(frozen=True)
class SlidingOptions:
    """The window in patches, its stride, and its position in reading order, from 1."""

    window: int = option(3, low=1, high=MOST_WINDOW, link="slide_window")
    stride: int = option(1, low=1, high=MOST_WINDOW, link="slide_stride")
    position: int = option(1, low=1, high=MOST_POSITION, link="slide_position")


DEFAULT_SLIDING = SlidingOptions()
SIGNIFICANCE = "significance."
"""Prefix of the widget keys of the test of patches."""


@dataclass(frozen=True)
class PatchTestView:
    """Options of the test of patches: its false discovery rate in percent, and its alternative."""

    rate: int = option(10, choices=(5, 10, 20))
    alternative: Literal["greater", "two-sided"] = option("greater", choices=("greater", "two-sided"))


DEFAULT_TEST = PatchTestView()


@dataclass(frozen=True, kw_only=True)
class PictureState(PageState):
    """State of the Images page. `pins`: indices of patches, row by row."""

    focus: PictureFocus
    view: PictureViewOptions = DEFAULT_PICTURE_VIEW
    sliding: SlidingOptions = DEFAULT_SLIDING
    significance: PatchTestView = DEFAULT_TEST
    pins: tuple[int, ...] = pins_option("patches")
    opened: tuple[str, ...] = opened_option(
        "browse", "truth", "questions", "counterfactuals", "sliding", "significance", "label"
    )
    removal: str = option(PATCH_OPERATORS[0], choices=PATCH_OPERATORS)

    @property
    def model(self) -> str:
        return self.focus.model

    @property
    def picture(self) -> Picture | None:
        return self.focus.picture

    def request(self, method: str) -> Request:
        """Return the engine's request for one method. Errors: no picture can be read."""
        if self.picture is None:
            raise UsageError(f"picture: {self.focus.error}")
        params = self.params.get(method, {})
        return Request(self.model, method, self.picture, dict(params), self.target, self.seed)


def read_state(
    query: Query, models: list[str], methods: Mapping[str, Explainer], opened: OpenPictures
) -> tuple[PictureState, list[str]]:
    """Return the state of a link, and a sentence for each unknown value in it."""
    notes: list[str] = []
    last = last_values(query)
    focus = read_picture_focus(last, models, opened, notes)
    if is_other_picture(last, focus, opened):
        query = {name: values for name, values in query.items() if name not in OF_A_PICTURE}
    state = read_record(PictureState(focus=focus, methods=START), query, notes, names=RECORDS)
    return read_shared(state, query, methods, notes), notes


def write_state(state: PictureState) -> Query:
    """Return the link that reopens the state. Only values that differ from their defaults are written."""
    return write_picture_focus(state.focus) | write_shared(state) | write_record(state, names=RECORDS)


def load_state(models: list[str], methods: Mapping[str, Explainer]) -> tuple[PictureState, OpenPictures, list[str]]:
    """Fill the widgets that have no value yet. Return the state of the last link, its data set and its errors."""
    link, fresh = SESSION.follow()
    opened = open_pictures(*picture_choice.requested_dataset(link))
    state, notes = read_state(link, models, methods, opened)
    picture_choice.fill_controls(state.focus, opened)
    SESSION.fill(
        control_values("", state.view)
        | control_values(SLIDING, state.sliding)
        | control_values(SIGNIFICANCE, state.significance)
    )
    SESSION.fill_shared(state, methods)
    return state, opened, SESSION.tell(notes, fresh, state=state)


def read_controls(loaded: PictureState, methods: Mapping[str, Explainer], opened: OpenPictures) -> PictureState:
    """Return the state of the controls.

    A new model resets the class and the pins, a new picture the pins.
    """
    if value("seed") is None:  # only after an interrupted run, which left the controls without values
        SESSION.clear()
        st.rerun()
    focus = picture_choice.read_controls(opened)
    if focus.model != loaded.model:
        put("target", "")
    if focus.model != loaded.model or focus.picture != loaded.picture:
        put("pins", [])
    shared = SESSION.read_shared(loaded, methods)
    return replace(
        shared, focus=focus, view=SESSION.read_record("", loaded.view),
        sliding=SESSION.read_record(SLIDING, loaded.sliding),
        significance=SESSION.read_record(SIGNIFICANCE, loaded.significance),
    )  # fmt: skip


def offered_methods(methods: Mapping[str, Explainer], opened: OpenPictures) -> Mapping[str, Explainer]:
    """Return the methods to offer for the picture that the controls show."""
    return methods_for_input(methods, value("methods") or (), picture_choice.read_controls(opened).picture)


def draw_options(methods: Mapping[str, Explainer], opened: OpenPictures, line: DeltaGenerator) -> DeltaGenerator | None:
    """Draw the popover of the rare controls. Return the container for the explained class, or None if it is closed."""
    if (options := options_popover(WIDGETS, line)) is None:
        return None
    with options:
        all_methods(methods, START, WIDGETS, [str(SESSION.selection.value("model") or "")])
        place = st.container()
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            picture_choice.draw_split_control(opened)
            seed_input(key, 120)
        scale_choice(key, "random always has its own")
        gamma_slider(key, "patches")
        st.toggle(
            "Outline of the labeled object", key=key("outline"), persist_state=PERSIST,
            help="Shown where the data set has a mask of the labeled object.",
        )  # fmt: skip
    return place


def draw_pins(state: PictureState, probe: Explanation) -> None:
    """Draw the strip of pinned patches; nothing without a map to click. `probe`: the explanation that has the grid."""
    if probe.grid is None:
        return
    if error := explain_lost_pins(probe.grid, state.pins):
        show_error(error)
    if state.methods:
        draw_patch_picker(probe.grid, state.pins, PICKER, _set_pins, state.view.opacity, _set_opacity)


def explain_lost_pins(grid: tuple[int, int], pins: Pins) -> str:
    """Return a sentence on the pins outside the grid, or an empty string if there are none."""
    beyond = ", ".join(str(pin) for pin in pins if pin not in on_grid(grid, pins))
    if not beyond:
        return ""
    rows, columns = grid
    return (
        f"pin: must be numbers of patches from 0 to {rows * columns - 1} ({rows} rows of {columns}), "
        f"got {beyond[:40]}. They are ignored. Click a patch to pin it."
    )


def _set_pins(pins: Pins) -> None:
    put("pins", list(pins))


def _set_opacity(opacity: int) -> None:
    put("opacity", opacity)
