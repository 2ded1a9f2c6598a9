"""The part of a study's form that chooses its items: number and conditions, a picker, and a preview.

Browsing the data set runs no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import islice

import streamlit as st

from components.browse.thumbnails import Thumbnail, thumbnail_url, thumbnails_html, use_thumbnails
from components.errors import describe_error, escape_label, show_error
from components.inputs.datasets import FileStamp, file_stamp
from components.study.fields import (
    NARROW,
    describe_field_error,
    design_from_fields,
    draw_choice,
    draw_line,
    draw_number,
    draw_text,
    field_key,
    field_names,
    field_row,
    field_value,
    fields_from_design,
    format_indices,
    parse_indices,
    set_field,
)
from components.tables import facts_html
from engine.data.sources import ExampleSource, SourceExample, load_source
from engine.errors import ExegesisError, UsageError
from engine.format import shorten
from engine.request import Example, Picture
from engine.study.design import Design
from engine.study.items import read_candidates

CHOICES = {"seed": "Random", "filter": "Random, filtered", "hand": "By hand"}
JUDGED = {"any": "right or wrong", "right": "right", "wrong": "wrong"}
HAND_HELP = "Example numbers in the data set, such as 3, 7, 10-19. The first ones become the practice items."
ITEM_FIELDS = ("kind", "practice", "seed")
"""Fields that determine the items, in addition to those of `ItemChoice`."""
PICKER, START, INDICES, PREVIEW = "pick", "pick.from", "items.indices", "preview"
A_PAGE = 12
TILE = 120
"""Width of a picture with its checkbox, in pixels."""
FIRST = 6
"""Number of items in the preview."""
MOST_CHARACTERS = 160
NOTHING_PICKED = "No examples selected yet. Check examples above, or enter their numbers."
NOTHING_FITS = "No example of the data set matches the filters. Relax them."
LATER = "Predictions are computed when the study opens."
PRACTICE = "practice"


@dataclass(frozen=True)
class ExampleCard:
    """A short form of an example: its text on one line, or the `data:` URL of a thumbnail."""

    index: int
    label: str
    text: str = ""
    url: str = ""

    @property
    def name(self) -> str:
        """The index in the data set and the class."""
        return f"{self.index} · {self.label}" if self.label else f"{self.index}"


def draw_items() -> None:
    """Draw the controls and the preview of the items."""
    st.subheader("Items", anchor=False)
    draw_choice("items.how", CHOICES)
    how = field_value("items.how")
    with field_row():
        if how != "hand":
            draw_number("items.count")
        draw_number("practice")
        draw_line("items.split", "For example, train or test. If empty, the default split.", NARROW)
        draw_number("seed")
    if how == "hand":
        draw_text("items.indices", HAND_HELP, 80)
        _draw_picker(field_value("kind"), _dataset(), field_value("items.split").strip() or None)
    if how == "filter":
        _draw_conditions()
    try:
        design = _items_design()
    except UsageError as error:
        show_error(describe_field_error(error))
        return
    _draw_preview(design)


def _draw_conditions() -> None:
    with field_row():
        draw_line("items.label", "The name of a class of the data set. If empty, any class.", NARROW)
        if field_value("kind") == "text":
            draw_number("items.least_words")
            draw_number("items.most_words")
    draw_choice("items.judged", JUDGED)


def _items_design() -> Design:
    """Return a design of the items only, independent of the rest of the form."""
    names = [name for name in field_names() if name in ITEM_FIELDS or name.startswith("items.")]
    fields = fields_from_design(Design(), UTC) | {name: field_value(name) for name in names}
    return design_from_fields(fields, "", _dataset(), [], UTC)


def _dataset() -> str:
    name = st.session_state.get(field_key(f"{field_value('kind')}.dataset")) or ""
    return str(name).strip()


def _draw_picker(kind: str, dataset: str, split: str | None) -> None:
    """Draw the data set page by page with a checkbox per example; it runs only while open.

    The checkboxes and the list of numbers stay in sync.
    """
    section = st.expander("Browse the data set", icon=":material/checklist:", key=field_key(PICKER), on_change="rerun")
    if not section.open:
        return
    with section:
        try:
            _draw_boxes(open_source(kind, dataset, split), parse_indices(field_value(INDICES)))
        except Exception as error:
            show_error(describe_field_error(error))


def _draw_boxes(source: ExampleSource, picked: Sequence[int]) -> None:
    start = _draw_page_controls(source.count)
    st.caption(f"{len(picked):,} selected, in the order of selection.")
    cards = [_readable_card(source, index) for index in range(start, min(start + A_PAGE, source.count))]
    if not any(card.url for card in cards):
        for card in cards:
            _draw_box(card, card.index in picked, f"{card.name}: {card.text}")
        return
    use_thumbnails()
    with st.container(horizontal=True, gap="small"):
        for card in cards:
            with st.container(width=TILE, gap="xsmall"):
                st.html(thumbnails_html([Thumbnail(card.url, "")]))
                _draw_box(card, card.index in picked, card.name)


def _draw_page_controls(count: int) -> int:
    """Draw the controls of the page. Return the index of its first example."""
    last = count - 1
    set_field(START, min(last, st.session_state.get(field_key(START)) or 0))
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.number_input("First example", 0, last, key=field_key(START), step=A_PAGE, width=NARROW, persist_state="page")
        start: int = field_value(START)
        for label, to in (("Previous page", start - A_PAGE), ("Next page", start + A_PAGE)):
            st.button(
                label, key=field_key(f"pick.{label}"), on_click=set_field, args=(START, max(0, to)),
                disabled=start == 0 if to < start else to > last,
            )  # fmt: skip
    st.caption(f"Examples {start:,} to {min(last, start + A_PAGE - 1):,}; the last one is {last:,}")
    return start


def _readable_card(source: ExampleSource, index: int) -> ExampleCard:
    """Return the card of an example, or of the error if it cannot be read."""
    try:
        return example_card(source.read(index))
    except ExegesisError as error:
        return ExampleCard(index, "", describe_error(error))


def _draw_box(card: ExampleCard, is_picked: bool, label: str) -> None:
    set_field(f"pick.{card.index}", is_picked)
    st.checkbox(escape_label(label), key=field_key(f"pick.{card.index}"), on_change=_toggle, args=(card.index,))


def _toggle(index: int) -> None:
    others = [one for one in parse_indices(field_value(INDICES)) if one != index]
    set_field(INDICES, format_indices([*others, index] if field_value(f"pick.{index}") else others))


def _draw_preview(design: Design) -> None:
    """Draw the first items for the current form; it runs only while open. Only the design's items must be valid."""
    section = st.expander("Preview items", icon=":material/preview:", key=field_key(PREVIEW), on_change="rerun")
    if not section.open:
        return
    with section:
        try:
            source = open_source(design.kind, design.dataset, design.items.split)
            with st.spinner("Selecting items …"):
                items = [(example_card(one), practice) for one, practice in preview_items(design, source)]
            st.caption(_describe_preview(design, len(items)))
            if design.kind == "image":
                use_thumbnails()
            st.html(_cards_html(items))
        except Exception as error:
            show_error(describe_field_error(error))


def _describe_preview(design: Design, number: int) -> str:
    """Describe the items of the preview."""
    if not number:
        return NOTHING_PICKED if design.items.how == "hand" else NOTHING_FITS
    if awaits_model(design):
        return (
            f"The first {number:,} candidates. Those for which the model is {design.items.judged} become items when "
            "the study opens."
        )
    return f"The first {number:,} of {item_count(design):,} items, including practice items. {LATER}"


def _cards_html(items: Sequence[tuple[ExampleCard, bool]]) -> str:
    """HTML of texts below each other, or thumbnails in rows, each with index, class, and a mark if for practice."""
    named = [(f"{card.name} · {PRACTICE}" if practice else card.name, card) for card, practice in items]
    if any(card.url for _, card in named):
        return thumbnails_html(Thumbnail(card.url, name) for name, card in named)
    return facts_html({name: card.text for name, card in named})


def open_source(kind: str, dataset: str, split: str | None) -> ExampleSource:
    """Return the data set of that name, cached until its file changes. Errors: it cannot be read."""
    return _open_source(kind, dataset, split, file_stamp(dataset))


@st.cache_resource(max_entries=4, show_spinner="Reading the data set …")
def _open_source(kind: str, dataset: str, split: str | None, stamp: FileStamp) -> ExampleSource:
    return load_source(kind, dataset, split)


def example_card(one: SourceExample) -> ExampleCard:
    """Return the card of an example."""
    label = one.label or ""
    if isinstance(one.input, Picture):
        return ExampleCard(one.index, label, url=thumbnail_url(one.input.pixels))
    assert isinstance(one.input, Example)
    return ExampleCard(one.index, label, shorten(" / ".join(one.input.texts), MOST_CHARACTERS))


def preview_items(design: Design, source: ExampleSource, most: int = FIRST) -> list[tuple[SourceExample, bool]]:
    """Return the first chosen examples, and whether each is for practice.

    If the model must be right or wrong, these are the first candidates, and none is for practice yet.
    """
    total = item_count(design)
    first = islice(read_candidates(design, source), min(most, total))
    by_hand, is_final = design.items.how == "hand", not awaits_model(design)
    start, end = (0, design.practice) if by_hand else (design.items.count, total)
    return [(one, is_final and start <= place < end) for place, one in enumerate(first)]


def item_count(design: Design) -> int:
    """Return the number of chosen items, including practice items."""
    return len(design.items.indices) if design.items.how == "hand" else design.items.count + design.practice


def awaits_model(design: Design) -> bool:
    """Whether the model decides which examples become items."""
    return design.items.how == "filter" and design.items.judged != "any"
