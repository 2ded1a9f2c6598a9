"""Results of the Text page: the prediction, a map per method as it is computed, tests of the maps, an edited text.

The maps are below each other, or in one table with a column for each unit. An edit shows how the prediction and each
map change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, runtime_checkable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.ablation import TEXT_WORDS, Span, ablation_area, pinned_span, pinned_span_in_edit, substitute
from components.compute import Tick, explain
from components.controls import PERSIST
from components.errors import describe_error, escape_label, show_error, show_note
from components.inputs import text_choice
from components.map_preview import as_preview, is_useful, preview_note, preview_request
from components.method_row import (
    MethodRow,
    Placeholder,
    aligned_html,
    line_html,
    method_row,
    method_row_html,
    placeholder_html,
    quiet_line_html,
    token_map,
)
from components.prediction import PROBE, prediction_area
from components.progress import Ends, MethodPlace, Slot, fill_places, share_scales
from components.questions import QuestionPage, draw_map_summary, question_section
from components.styles import use_sheet
from components.text.state import TextState, key, pinned_names, put, value
from components.widgets.token_map import TokenMap
from components.widgets.token_map.edited import (
    CONTRAST_NOTE,
    edited_map,
    edited_map_html,
    explained_noun,
    how_to_read_html,
    predictions_html,
)
from engine.comparison.texts import other_request
from engine.format import shorten
from engine.registry import Explainer
from engine.request import Example, Prompt, Request
from engine.result import Explanation, Provenance
from engine.shipped.gallery import find_card
from engine.store import result_store
from engine.word_units import UNITS, split_words, unit_scores, units_of

Explanations = Mapping[str, Explanation]

REPLACE = "replace."
MOST_CHARACTERS = 40
"""Maximum characters of the replaced text in a label."""


@runtime_checkable
class Layout(Protocol):
    """A layout of the maps, which takes the methods in their order, then the HTML of each."""

    def slot(self, title: str) -> Slot:
        """Return the next method's place."""

    def draw(self, row: MethodRow) -> str:
        """Return the HTML of a method's map."""

    def quiet(self, row: Placeholder) -> str:
        """Return the HTML while there is no map."""

    def show(self) -> None:
        """Show everything drawn so far."""


class FlowLayout:
    """A row for each method, shown as soon as it is drawn."""

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
    """One table, drawn as a whole, because its columns are as wide as their widest cell."""

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
    """Draw the prediction as bars, and the choice of the class in `control_place`.

    Returns None after saying why there is no prediction.
    """
    if missing := _explain_missing(state):
        st.info(missing)
        return None
    probe = Request(state.model, PROBE, state.example, {}, None, state.seed)
    return prediction_area(probe, state.target, key("target"), "text", control_place=control_place)


def draw_methods(
    state: TextState, methods: Mapping[str, Explainer], probe: Explanation, above: Sequence[MethodRow] = ()
) -> dict[str, Explanation]:
    """Draw `above`, then a row for each chosen method; return the explanations that succeeded.

    The rows have the order chosen; costly ones are computed last.
    """
    if not state.methods:
        st.info("Pick at least one method above.")
        return {}
    progress, place = st.empty(), st.container(gap=None, key="text_rows")
    layout: Layout = FlowLayout(place, above)
    if state.view.aligned:
        layout = AlignedLayout(place, above, token_map(methods[PROBE], probe, state.example, state.unit))

    def draw(method: Explainer, explanation: Explanation, ends: Ends) -> str:
        row = method_row(method, explanation, state.example, state.unit, probe.notes, state.view, ends)
        return layout.draw(replace(row, notes=(*row.notes, *preview_note(state.request(method.id), explanation))))

    def draw_preview(method: Explainer, wanted: Request, tick: Tick) -> str:
        preview = explain(wanted, tick)
        if not is_useful(preview):
            return ""
        row = method_row(method, preview, state.example, state.unit, preview.notes, state.view)
        return layout.draw(as_preview(row, preview))

    places = []
    for id in state.methods:
        wanted = preview_request(state.request(id))
        preview = None if wanted is None else partial(draw_preview, methods[id], wanted)
        slot = layout.slot(methods[id].title)
        places.append(MethodPlace(methods[id], state.request(id), slot, quiet=layout.quiet, preview=preview))

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
    """Draw a sentence that summarizes the maps."""
    names = [unit.text for unit in units_of(probe, state.example, state.unit) if not unit.special]
    scores = partial(unit_scores, example=state.example, kind=state.unit)
    words = split_words(probe, state.example) if state.unit == UNITS[0] else ()
    draw_map_summary(methods, explanations, scores, names, state.unit, words)


def draw_gallery_note(state: TextState) -> None:
    """Draw the gallery's note on this text.

    Only if the card's two methods come first, with the default parameters and class.
    """
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
    """Return why there is no prediction yet; empty if there is one."""
    if not state.model:
        return "Pick a model above, or type the folder of a checkpoint or a hub ID."
    if state.focus.causal and not state.example.text.strip():
        return "Type a prompt above, or pick an example, to see which words its next token depends on."
    if not state.example.text.strip():
        return "Type a text above, or pick an example, to see which words its prediction depends on."
    if state.example.text_pair is not None and not state.example.text_pair.strip():
        return "Type the second text, or turn it off in Options."
    return ""


def draw_edit(
    state: TextState, methods: Mapping[str, Explainer], explanations: Mapping[str, Explanation], probe: Explanation
) -> None:
    """Draw the controls of the edit below the maps, and the edited text next to its parent."""
    child = edited_example(state)
    switch_row = _draw_controls(state, child)
    edited = _explain_edit(state, child, probe)
    with switch_row:
        _draw_replacement(state, child or state.example, probe, edited)
    if edited is None or child is None or child == state.example:
        return
    use_sheet("questions")
    parent = explain(state.request(PROBE)).provenance
    st.html(predictions_html(probe.prediction, edited.prediction, parent.target, noun=explained_noun(child)))
    if isinstance(child, Prompt) and child.contrast is not None:
        st.caption(CONTRAST_NOTE)
    for note in edited.notes:
        if note not in probe.notes:
            show_note(f"The edited text: {note}")
    if explanations:
        _draw_maps(state, child, parent, methods, explanations)


def edited_example(state: TextState) -> Example | None:
    """Return the edited text; None without an edit. A second text that was not edited is the parent's."""
    if state.edit is None:
        return None
    pair = state.example.text_pair if state.edit_pair is None else state.edit_pair
    return replace(state.example, text=state.edit, text_pair=pair)


def _draw_controls(state: TextState, child: Example | None) -> DeltaGenerator:
    """Draw the switch and, if it is on, the fields; return the row of the switch, which has space for more."""
    st.subheader("Edit the text", anchor=False)
    put("editing", state.edit is not None)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key=key("edit_controls"))
    row.toggle(
        "Edit this text", key=key("editing"), on_change=_take_switch, args=(state.example,), width=220,
        help="Compares the prediction and each map before and after the edit.",
    )  # fmt: skip
    if child is not None:
        _draw_fields(state.example, child)
    return row


def _draw_fields(parent: Example, child: Example) -> None:
    st.text_area("Edited text", key=key("edit"), height=90, persist_state=PERSIST)
    if parent.text_pair is not None:
        st.text_area("Edited second text", key=key("edit_pair"), height=68, persist_state=PERSIST)
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Use as the text", key=key("edit_go_on"), on_click=_take_as_text, args=(child,),
            help="Makes the edited text the text of this page.",
        )  # fmt: skip
        st.button("Discard the edit", key=key("edit_drop"), on_click=set_edit, args=(None,))


def _explain_edit(state: TextState, child: Example | None, probe: Explanation) -> Explanation | None:
    """Return the prediction of the edited text, or of the parent if they are equal; None after a message.

    The explained class is that of the parent.
    """
    if child is None:
        return probe
    if hint := _explain_no_edit(child, state.example):
        st.info(hint)
        return probe if child == state.example else None
    try:
        return explain(_edit_request(state, PROBE, child, explain(state.request(PROBE)).provenance))
    except Exception as error:
        show_error(describe_error(error))
        return None


def _draw_replacement(state: TextState, child: Example, probe: Explanation, edited: Explanation | None) -> None:
    """Draw a field that replaces the pinned tokens in the text as edited so far."""
    span = pinned_span(probe.tokens, state.pins)
    if span is None or edited is None:
        return
    edited_span, name = pinned_span_in_edit(edited.tokens, probe.tokens, state.pins), REPLACE + ".".join(map(str, span))
    if edited_span is None:
        st.caption("The pinned tokens are no longer in the edited text.")
        return
    segment, start, end = span
    old = ((state.example.text, state.example.text_pair)[segment] or "")[start:end]
    st.text_input(
        f"Replace “{_shorten(old)}” with", key=key(name), on_change=_replace, args=(child, edited_span, name),
        width=320, help="Press Enter to apply. A single space deletes the pinned text.",
    )  # fmt: skip


def _shorten(text: str) -> str:
    """Shorten a text and escape it, so that a label shows it literally, without Markdown."""
    return escape_label(shorten(text, MOST_CHARACTERS))


def _take_switch(example: Example) -> None:
    set_edit(example if value("editing") else None)


def _replace(example: Example, span: Span, name: str) -> None:
    if new := value(name):
        set_edit(substitute(example, span, new))


def set_edit(edited: Example | None) -> None:
    """Show an edited text next to its parent; None discards the edit. For use in a callback."""
    if edited is None:
        # Otherwise the same word could not be typed again, because a field sends only changes.
        for name in [name for name in st.session_state if str(name).startswith(key(REPLACE))]:
            st.session_state[name] = ""
    put("edit", None if edited is None else edited.text)
    put("edit_pair", None if edited is None else edited.text_pair)


def _take_as_text(edited: Example) -> None:
    own = {"index": None, "text": edited.text, "has_pair": edited.text_pair is not None, "pair": edited.text_pair or ""}
    for name, new in own.items():
        st.session_state[text_choice.key(name)] = new


def _explain_no_edit(child: Example, parent: Example) -> str:
    """Return why there is nothing to compare yet; empty if there is."""
    if not child.text.strip():
        return "The edited text is empty. Type a text, or discard the edit."
    if child.text_pair is not None and not child.text_pair.strip():
        return "The edited second text is empty. Type a text, or discard the edit."
    if child == parent:
        return "Change the text above to see how the prediction and each map change."
    return ""


def _draw_maps(
    state: TextState,
    child: Example,
    parent: Provenance,
    methods: Mapping[str, Explainer],
    explanations: Mapping[str, Explanation],
) -> None:
    st.html(how_to_read_html(next(iter(explanations.values())), child, state.unit))
    progress, rows = st.empty(), st.container(gap=None, key="edited_rows")
    places = [MethodPlace(methods[id], _edit_request(state, id, child, parent), rows.empty()) for id in explanations]

    def draw(method: Explainer, after: Explanation) -> str:
        before = explanations[method.id]
        return edited_map_html(edited_map(method, before, after, state.example, child, state.unit, state.view))

    fill_places(places, draw, progress)


def _edit_request(state: TextState, method: str, child: Example, parent: Provenance) -> Request:
    """Return the request for the edited text, which explains the parent's class, so that the maps are comparable."""
    return other_request(state.request(method), child, parent)
