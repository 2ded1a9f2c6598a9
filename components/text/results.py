"""The Text page's answer: the prediction, a row a method as soon as it is there, and questions to the maps.

The maps stand one below the other, or as one table with a column for each unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.ablation import TEXT_WORDS, ablation_area
from components.errors import show_note
from components.map_summary import draw_map_summary
from components.method_row import MethodRow, Placeholder, method_row, method_row_html, placeholder_html, token_map
from components.prediction import PROBE, prediction_area
from components.progress import Ends, MethodPlace, Slot, fill_places, share_scales
from components.questions import QuestionPage, question_section
from components.text.state import TextState, key, pinned_names
from components.widgets.token_map import TokenMap
from components.widgets.token_map.rows import aligned_html, line_html, quiet_line_html
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation
from engine.shipped.gallery import find_card
from engine.store import result_store
from engine.word_units import unit_scores, units_of

Explanations = Mapping[str, Explanation]


@runtime_checkable
class Layout(Protocol):
    """Takes methods in the order in which they stand, then the HTML of each."""

    def slot(self, title: str) -> Slot:
        """The next method's place."""

    def draw(self, row: MethodRow) -> str:
        """The HTML in a method's place."""

    def quiet(self, row: Placeholder) -> str:
        """The HTML while there is no map."""

    def show(self) -> None:
        """Bring everything drawn so far into sight."""


class FlowLayout:
    """A row for each method, in sight as soon as it is drawn."""

    def __init__(self, place: DeltaGenerator, above: Sequence[MethodRow]) -> None:
        self._place = place
        for row in above:
            place.html(method_row_html(row))

    def slot(self, title: str) -> Slot:
        place: Slot = self._place.empty()
        return place

    def draw(self, row: MethodRow) -> str:
        return method_row_html(row)

    def quiet(self, row: Placeholder) -> str:
        return placeholder_html(row)

    def show(self) -> None:
        pass


class AlignedLayout:
    """One table, drawn whole: its columns are as wide as their widest cell."""

    def __init__(self, place: DeltaGenerator, above: Sequence[MethodRow], head: TokenMap) -> None:
        self._place, self._head = place.empty(), head
        self._rows: dict[str, MethodRow] = {}
        self.lines: list[str] = []
        self._titles = [row.title for row in above]
        for row in above:
            self.lines.append(self.draw(row))

    def slot(self, title: str) -> Slot:
        self.lines.append("")
        self._titles.append(title)
        return _Line(self, len(self.lines) - 1)

    def draw(self, row: MethodRow) -> str:
        self._rows[row.title] = row
        return line_html(row)

    def quiet(self, row: Placeholder) -> str:
        self._rows.pop(row.title, None)
        return quiet_line_html(row, len(self._head.units))

    def show(self) -> None:
        described = [self._rows[title] for title in self._titles if title in self._rows]
        self._place.html(aligned_html(self._head, self.lines, described))


@dataclass(frozen=True)
class _Line:
    """A line of the table as a method's place."""

    table: AlignedLayout
    number: int

    def html(self, body: str) -> None:
        self.table.lines[self.number] = body


def draw_prediction(state: TextState, control_place: DeltaGenerator | None) -> Explanation | None:
    """Draw the prediction as bars, and in its place the choice of the class; None after saying why there is none."""
    if missing := _explain_missing(state):
        st.info(missing)
        return None
    probe = Request(state.model, PROBE, state.example, {}, None, state.seed)
    return prediction_area(probe, state.target, key("target"), "text", control_place=control_place)


def draw_methods(
    state: TextState, methods: Mapping[str, Explainer], probe: Explanation, above: Sequence[MethodRow] = ()
) -> dict[str, Explanation]:
    """Draw a row for each chosen method, `above` before them; return the explanations that succeeded.

    The rows stand in the order chosen, the costly ones last.
    """
    if not state.methods:
        st.info("Pick at least one method above.")
        return {}
    progress, place = st.empty(), st.container(gap=None, key="text_rows")
    layout: Layout = FlowLayout(place, above)
    if state.view.aligned:
        layout = AlignedLayout(place, above, token_map(methods[PROBE], probe, state.example, state.unit))
    places = [
        MethodPlace(methods[id], state.request(id), layout.slot(methods[id].title), quiet=layout.quiet)
        for id in state.methods
    ]

    def draw(method: Explainer, explanation: Explanation, ends: Ends) -> str:
        return layout.draw(method_row(method, explanation, state.example, state.unit, probe.notes, state.view, ends))

    def extent(method: Explainer, explanation: Explanation) -> float:
        return token_map(method, explanation, state.example, state.unit).largest

    fill_places(places, lambda method, explanation: draw(method, explanation, {}), progress, layout.show)
    if state.view.shared:
        share_scales(places, extent, draw)
    layout.show()
    if status := result_store().status:
        show_note(status)
    return {place.method.id: place.made for place in places if place.made is not None}


def draw_summary(
    state: TextState, methods: Mapping[str, Explainer], explanations: Explanations, probe: Explanation
) -> None:
    """Draw the sentence on the maps."""
    names = [unit.text for unit in units_of(probe, state.example, state.unit) if not unit.special]
    scores = partial(unit_scores, example=state.example, kind=state.unit)
    draw_map_summary(methods, explanations, scores, names, state.unit)


def draw_gallery_note(state: TextState) -> None:
    """Draw the sentence of the gallery's card on this text, as long as its two methods come first as on the card."""
    card = find_card(state.model, state.example)
    if card is not None and state.methods[:2] == card.methods[:2] and not state.params and state.target is None:
        show_note(f"{card.title}: {card.see}")


def draw_questions(
    state: TextState, methods: Mapping[str, Explainer], explanations: Explanations, probe: Explanation
) -> None:
    """Draw removal curves or the agreement of the maps, computed on request."""
    scores = partial(unit_scores, example=state.example, kind=state.unit)
    page = QuestionPage("text", state, TEXT_WORDS, state.unit, state.request, key, scores)
    question_section(page, methods, explanations, probe)


def draw_ablation(
    state: TextState, methods: Mapping[str, Explainer], explanations: Explanations, probe: Explanation
) -> None:
    """Draw the prediction without the pinned tokens."""
    names = pinned_names(state, probe)
    ablation_area(state.request(PROBE), state.pins, names, TEXT_WORDS, methods, explanations, probe)


def _explain_missing(state: TextState) -> str:
    """Why there is no prediction yet; empty when there is one."""
    if not state.model:
        return "Pick a model above, or type the folder of a checkpoint or a hub ID."
    if not state.example.text.strip():
        return "Type a text above, or pick an example, to see which words its prediction depends on."
    if state.example.text_pair is not None and not state.example.text_pair.strip():
        return "Type the second text, or turn it off in Options."
    return ""
