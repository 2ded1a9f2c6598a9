"""The picture set as small pictures with labels and predictions, filtered and sorted; a click shows the picture."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import streamlit as st

from components.browse.controls import (
    Offer,
    draw_framed,
    draw_jobs,
    draw_listing_controls,
    draw_walk,
)
from components.browse.examples import ExampleTable, describe_examples, explain_missing, list_examples
from components.browse.listing import DEFAULT_LISTING, Listing
from components.browse.results import ExampleResults, picture_results, picture_spec
from components.browse.thumbnails import draw_picture_grid, thumbnail_url
from components.controls import Key
from components.errors import show_note
from components.inputs import picture_choice
from components.inputs.datasets import OpenPictures
from components.inputs.picture_choice import PictureFocus
from components.numbers import count
from engine.data.examples import ImageDataset
from engine.errors import ExegesisError
from engine.input_kinds import list_models

PAGE_SIZE = 40
SIDE, QUALITY = 64, 70
"""Pixels a side and quality of a small picture: a page of them stays below 100 kB."""
TEXTS_ONLY = {"off", "disagree", "rationale", "error", "agree", "short", "long"}
LABELS_ONLY = {"right", "wrong", "confident_wrong", "mistakes"}


def draw_browse(opened: OpenPictures, prefix: str) -> None:
    """Draw the list and the buttons that walk through it, if its switch is on.

    Stands below the choice of the picture. `prefix`: of the widget keys of the page.
    """

    def key(name: str) -> str:
        return prefix + name

    if not st.session_state.get(key("open.browse")):
        return
    focus = picture_choice.read_controls(opened)
    draw_framed(
        "picture_browse",
        partial(picture_results, focus.model, opened),
        lambda results: _draw_list(opened, focus, results, key),
    )


def _draw_list(opened: OpenPictures, focus: PictureFocus, results: ExampleResults, key: Key) -> None:
    table, current = results.rows, None if focus.own else focus.index
    st.html(f'<div class="xg"><p class="xg-small">{escape(describe_examples(table))}</p></div>')
    draw_jobs(results, _offers(focus.model, opened, table))
    picture_choice.offer_better_model(list_models("image"), opened, "browse")
    barred = TEXTS_ONLY if table.label_names else TEXTS_ONLY | LABELS_ONLY
    listing = draw_listing_controls(st.columns(3, gap="small"), barred, table.label_names, key)
    listed = list_examples(table, listing)
    show = partial(picture_choice.show, opened)
    draw_walk(listed, current, show, key)
    if missing := explain_missing(table, listing):
        show_note(missing)
    if listed:
        places = _draw_page_choice(listed, listing, current, key)
        draw_picture_grid([table.rows[place] for place in places], _urls(opened, places), current, key("grid"), show)
    elif not missing:
        st.info("No picture matches. Change the filter.")


def _offers(model: str, opened: OpenPictures, table: ExampleTable) -> list[Offer]:
    total = len(table.rows)
    if table.predicted == total:
        return []
    return [Offer(f"Predict all {count(total, 'picture')}", "predict", picture_spec(model, opened))]


def _draw_page_choice(listed: Sequence[int], listing: Listing, current: int | None, key: Key) -> Sequence[int]:
    """Draw the buttons that turn pages; return the page: the first after sorting, else that of the current picture."""
    page_key, last_key = key("browse_page"), key("browse_seen")
    now = [hash(tuple(listed)), current]
    before = st.session_state.get(last_key, [None, None])
    if now != before:
        first = now[0] != before[0] and listing.sort != DEFAULT_LISTING.sort
        st.session_state[page_key] = 0 if first or current not in listed else listed.index(current) // PAGE_SIZE
        st.session_state[last_key] = now
    page, starts, total = st.session_state[page_key], range(0, len(listed), PAGE_SIZE), len(listed)
    if len(starts) > 1:
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            for label, target in (("Previous page", page - 1), ("Next page", page + 1)):
                st.button(
                    label, key=key(f"browse_{label}"), disabled=not 0 <= target < len(starts), type="tertiary",
                    on_click=st.session_state.__setitem__, args=(page_key, target),
                )  # fmt: skip
            st.caption(f"{page * PAGE_SIZE + 1:,} to {min(total, (page + 1) * PAGE_SIZE):,} of {total:,} pictures")
    return listed[starts[page] : starts[page] + PAGE_SIZE]


def _urls(opened: OpenPictures, places: Sequence[int]) -> list[str]:
    data = opened.data
    return _cached_urls(data.id, data.revision, data.split, len(data), tuple(places), data)


@st.cache_data(max_entries=64, show_spinner=False)
def _cached_urls(
    id: str, revision: str, split: str, total: int, places: tuple[int, ...], _data: ImageDataset
) -> list[str]:
    return [_url(_data, place) for place in places]


def _url(data: ImageDataset, place: int) -> str:
    try:
        return thumbnail_url(data[place].pixels, SIDE, QUALITY)
    except ExegesisError:
        return ""
