"""Items picked by looking: the data set a page at a time, each example with a box to tick."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.picture.thumbnails import Thumbnail, thumbnails_html, use_thumbnails
from components.study.controls import NARROW, key, put, value
from components.study.examples import Look, look_at, opened_source
from components.study.fields import read_indices, write_indices
from components.trouble import literal, say_error, sentence
from engine.data.sources import Source
from engine.errors import ExegesisError

A_PAGE = 12
TILE = 120
"""The width of a picture with its box, in pixels."""
OPENED, START, INDICES = "pick", "pick.from", "items.indices"


def pick(kind: str, dataset: str, split: str | None) -> None:
    """Closed it costs nothing. What is ticked stands in the list of numbers, and the other way round."""
    opened = st.expander(
        "Look through the data set and tick", icon=":material/checklist:", key=key(OPENED), on_change="rerun"
    )
    if not opened.open:
        return
    with opened:
        try:
            _draw(opened_source(kind, dataset, split), read_indices(value(INDICES)))
        except Exception as error:
            say_error(sentence(error))


def _draw(source: Source, picked: Sequence[int]) -> None:
    start = _turn(source.count)
    st.caption(f"{len(picked):,} picked, in the order in which they were ticked. No model is loaded for looking.")
    shown = [_look(source, index) for index in range(start, min(start + A_PAGE, source.count))]
    if not any(look.url for look in shown):
        for look in shown:
            _box(look, look.index in picked, f"{look.name}: {look.text}")
        return
    use_thumbnails()
    with st.container(horizontal=True, gap="small"):
        for look in shown:
            with st.container(width=TILE, gap="xsmall"):
                st.html(thumbnails_html([Thumbnail(look.url, "")]))
                _box(look, look.index in picked, look.name)


def _turn(count: int) -> int:
    """Where the page starts."""
    last = count - 1
    put(START, min(last, st.session_state.get(key(START)) or 0))
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.number_input("From number", 0, last, key=key(START), step=A_PAGE, width=NARROW, persist_state="page")
        start: int = value(START)
        for label, to in (("Page back", start - A_PAGE), ("Page on", start + A_PAGE)):
            st.button(
                label, key=key(f"pick.{label}"), on_click=put, args=(START, max(0, to)),
                disabled=start == 0 if to < start else to > last,
            )  # fmt: skip
    st.caption(f"{start:,} to {min(last, start + A_PAGE - 1):,} of 0 to {last:,}")
    return start


def _look(source: Source, index: int) -> Look:
    """One that cannot be read says so in its place."""
    try:
        return look_at(source.read(index))
    except ExegesisError as error:
        return Look(index, "", sentence(error))


def _box(look: Look, picked: bool, label: str) -> None:
    put(f"pick.{look.index}", picked)
    st.checkbox(literal(label), key=key(f"pick.{look.index}"), on_change=_toggle, args=(look.index,))


def _toggle(index: int) -> None:
    others = [one for one in read_indices(value(INDICES)) if one != index]
    put(INDICES, write_indices([*others, index] if value(f"pick.{index}") else others))
