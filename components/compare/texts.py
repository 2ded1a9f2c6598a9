"""Two texts or prompts on the Compare page: every column explains both, and the maps are aligned by what they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.compare.comparison import ColumnMap, Comparison, OtherMap
from components.errors import show_note
from components.method_row import Placeholder, placeholder_html
from components.progress import MethodPlace, fill_places
from components.styles import use_sheet
from components.widgets.token_map.edited import (
    CONTRAST_NOTE,
    edited_map,
    edited_map_html,
    explained_noun,
    predictions_html,
)
from engine.comparison.texts import other_request
from engine.request import Example, Prompt
from engine.result import Explanation

NAMES = ("first", "other")
"""Names of the two texts."""


@dataclass(eq=False)
class _Row:
    """A column's row, drawn as soon as its map of the other text exists."""

    place: DeltaGenerator
    comparison: Comparison
    column: ColumnMap

    def html(self, body: str) -> None:
        if body:  # empty for a new map, which is drawn with the predictions
            self.place.html(body)

    def quiet(self, row: Placeholder) -> str:
        return placeholder_html(replace(row, title=self.column.name))


def texts_panel(comparison: Comparison) -> Comparison:
    """Draw both predictions of each model and both maps of each column. Returns the comparison with the new maps."""
    state, other = comparison.state, comparison.state.other_input
    if other is None or not comparison.explained:
        return comparison
    noun = text_noun(other)
    st.subheader(f"Both {noun}s", anchor=False)
    if not other.text.strip():
        st.info(f"Type the other {noun} above.")
        return comparison
    if other == state.input:
        st.info(f"Change the other {noun} above to see how the predictions and maps differ.")
        return comparison
    use_sheet("questions")
    st.html(f'<div class="xg"><p class="xg-small">{escape(how_to_read(comparison))}</p></div>')
    progress, predictions, rows = st.empty(), st.empty(), st.container(gap=None, key="compare_texts")
    slots = [_Row(rows.empty(), comparison, column) for column in comparison.explained]
    places = [_place(slot, other) for slot in slots]

    def others() -> tuple[OtherMap, ...]:
        pairs = zip(comparison.explained, places, strict=True)
        return tuple(OtherMap(column, place.made) for column, place in pairs if place.made is not None)

    def show() -> None:
        made = replace(comparison, others=others())
        if made.others:
            predictions.html("".join(two_predictions_html(made)))
        for one in made.others:
            slots[comparison.explained.index(one.column)].html(row_html(made, one))

    fill_places(places, lambda method, explanation: "", progress, show)
    show()
    if isinstance(other, Prompt) and other.contrast is not None:
        st.caption(CONTRAST_NOTE)
    for note in dict.fromkeys(note for one in others() for note in _new_notes(one)):
        show_note(f"The other {noun}: {note}")
    return replace(comparison, others=others())


def text_noun(example: Example) -> str:
    """The noun for the input."""
    return "prompt" if isinstance(example, Prompt) else "text"


def how_to_read(comparison: Comparison) -> str:
    """Explain how to read the rows."""
    other = comparison.state.other_input
    noun, unit = "text" if other is None else text_noun(other), comparison.unit
    return (
        f"Each {unit} of the first {noun} is above that of the other; frames mark where they differ. Both maps of a "
        f"column explain the same {'token' if noun == 'prompt' else 'class'} on one scale, so they can be compared. "
        f"ρ is the rank correlation of the scores of unchanged {unit}s: +1 is the same order, 0 no relation."
    )


def two_predictions_html(comparison: Comparison) -> Iterator[str]:
    """Yield HTML of both predictions and their change for each model and class. All foreign text is escaped."""
    seen: set[tuple[str, str]] = set()
    for one in comparison.others:
        first = _first(one)
        if (known := (one.column.model, first.provenance.target_label)) in seen:
            continue
        seen.add(known)
        names = (f"{one.column.model}, {NAMES[0]}", NAMES[1])
        yield predictions_html(
            first.prediction, one.explanation.prediction, first.provenance.target,
            (escape(names[0]), names[1]), noun=explained_noun(_other(comparison)),
        )  # fmt: skip


def row_html(comparison: Comparison, one: OtherMap) -> str:
    """HTML of both maps of a column. All foreign text is escaped."""
    state, other = comparison.state, comparison.state.other_input
    assert isinstance(state.input, Example)
    assert other is not None
    view = edited_map(
        one.column.method, _first(one), one.explanation, state.input, other, state.view.unit, comparison.map_view
    )
    title = f"{one.column.name}, for {comparison.target(one.column)}"
    return edited_map_html(replace(view, title=title, names=NAMES))


def texts_html(comparison: Comparison) -> str:
    """HTML of the section in a standalone page; empty without another text."""
    if not comparison.others:
        return ""
    rows = "".join(row_html(comparison, one) for one in comparison.others)
    title = f"Both {text_noun(_other(comparison))}s"
    predictions = "".join(two_predictions_html(comparison))
    return f"<h2>{title}</h2><p>{escape(how_to_read(comparison))}</p>{predictions}{rows}"


def _place(slot: _Row, other: Example) -> MethodPlace:
    state, column = slot.comparison.state, slot.column
    assert state.input is not None
    pair = state.columns[slot.comparison.columns.index(column)]
    request = other_request(pair.request(state.input, state.target, state.seed), other, _explanation(column).provenance)
    return MethodPlace(column.method, request, slot, quiet=slot.quiet)


def _explanation(column: ColumnMap) -> Explanation:
    assert column.explanation is not None
    return column.explanation


def _first(one: OtherMap) -> Explanation:
    """The column's map of the first text."""
    return _explanation(one.column)


def _new_notes(one: OtherMap) -> Sequence[str]:
    return [note for note in one.explanation.notes if note not in _first(one).notes]


def _other(comparison: Comparison) -> Example:
    assert comparison.state.other_input is not None
    return comparison.state.other_input
