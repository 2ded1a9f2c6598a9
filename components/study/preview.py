"""The first items of a study as its form stands, before it opens."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.library_html import facts_html
from components.picture.thumbnails import Thumbnail, thumbnails_html, use_thumbnails
from components.study.controls import key
from components.study.examples import Look, awaits_model, first_items, look_at, opened_source, wanted
from components.trouble import say_error, sentence
from engine.study.design import Design

OPENED = "preview"
NOTHING_PICKED = "Nothing is picked yet: tick examples above, or write their numbers."
NOTHING_FITS = "No example of the data set fits. Ask for less of them."
LATER = "What the model says of them is computed when the study opens."
PRACTICE = "for practice"


def preview(design: Design) -> None:
    """Closed it costs nothing. `design`: nothing but its items need be right."""
    opened = st.expander("Preview of the items", icon=":material/preview:", key=key(OPENED), on_change="rerun")
    if not opened.open:
        return
    with opened:
        try:
            _draw(design)
        except Exception as error:
            say_error(sentence(error))


def _draw(design: Design) -> None:
    source = opened_source(design.kind, design.dataset, design.items.split)
    with st.spinner("Looking for the items …"):
        found = [(look_at(one), practice) for one, practice in first_items(design, source)]
    st.caption(told(design, len(found)))
    if design.kind == "image":
        use_thumbnails()
    st.html(looks_html(found))


def told(design: Design, shown: int) -> str:
    """What the shown ones are, in words."""
    if not shown:
        return NOTHING_PICKED if design.items.how == "hand" else NOTHING_FITS
    if awaits_model(design):
        return (
            f"The first {shown:,} examples of which the model will be asked: it must be {design.items.judged}. Which "
            "of them become items is known when the study opens."
        )
    return f"The first {shown:,} of {wanted(design):,} items, practice items counted. {LATER}"


def looks_html(looks: Sequence[tuple[Look, bool]]) -> str:
    """Texts under each other, or small pictures in rows, each with its number, its class, and whether it counts."""
    named = [(f"{look.name} · {PRACTICE}" if practice else look.name, look) for look, practice in looks]
    if any(look.url for _, look in named):
        return thumbnails_html(Thumbnail(look.url, name) for name, look in named)
    return facts_html({name: look.text for name, look in named})
