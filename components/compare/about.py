"""What stands below the maps: each column's check, cost, cautions, and everything that its numbers depend on."""

from __future__ import annotations

from html import escape

import streamlit as st

from components.compare.compared import Column, Compared
from components.compare.session import Opened
from components.compare.state import CompareState
from components.inputs.datasets import OpenTexts
from components.inputs.picture_choice import PictureFocus
from components.method_row import check_html, cost_line, details_html, facts

ABOUT = "Checks, costs and cautions"


def about_area(compared: Compared) -> None:
    """A list that a click opens."""
    if compared.there:
        st.html(about_html(compared))


def about_html(compared: Compared) -> str:
    """An item a column that has a map. Everything that is not ours is escaped."""
    items = "".join(_item(column) for column in compared.there)
    return (
        f'<div class="xg"><details class="xg-details xg-small"><summary>{ABOUT}</summary>'
        f'<div class="xg-list">{items}</div></details></div>'
    )


def label_words(state: CompareState, opened: Opened) -> str:
    """What the data set says that the example is; empty where it says nothing."""
    focus = state.focus
    if isinstance(focus, PictureFocus):
        names = () if isinstance(opened, OpenTexts) else opened.data.label_names
        return "" if focus.label is None or focus.own else f"Labelled {names[focus.label]}."
    if focus.index is None or not isinstance(opened, OpenTexts):
        return ""
    label, names = opened.data[focus.index].label, opened.data.label_names
    if label is None:
        return ""
    return f"Labelled {names[label] if isinstance(label, int) and names else label}."


def _item(column: Column) -> str:
    made = column.made
    if made is None:
        return ""
    notes = "".join(f'<p class="xg-small xg-note">{escape(note)}</p>' for note in made.notes)
    return (
        f'<div class="xg-item"><p class="xg-title"><b class="xg-letter">{column.letter}</b> {escape(column.title)}</p>'
        f'{check_html(made.check)}<p class="xg-small">{escape(cost_line(made))}</p>{notes}'
        f'<p class="xg-small xg-caution">{escape(column.method.caution)}</p>'
        f"{details_html(facts(column.method, made))}</div>"
    )
