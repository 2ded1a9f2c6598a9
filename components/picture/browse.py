"""Browse: a picture set as small pictures with labels and predictions, failure cases first if asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import streamlit as st

from components.browse.controls import (
    SHOW_NAMES,
    SORT_NAMES,
    Key,
    Offer,
    draw_browse_switch,
    draw_framed,
    draw_jobs,
    draw_listing_choice,
    draw_walk,
)
from components.browse.examples import ExampleTable, describe_examples, explain_missing, list_examples
from components.browse.listing import DEFAULT_LISTING, Listing
from components.browse.results import ExampleResults, picture_results, picture_spec
from components.browse.thumbnails import draw_picture_grid, thumbnail_url
from components.inputs import picture_choice as picture_focus_controls
from components.inputs.datasets import OpenPictures
from components.inputs.picture_choice import PictureFocus
from components.numbers import count
from components.trouble import say_note
from engine.data.examples import ImageDataset
from engine.errors import ExegesisError
from engine.input_kinds import list_models

A_PAGE = 40
SIDE, QUALITY = 64, 70
"""Of a small picture: a page of them stays below 100 kB."""
TEXTS_ONLY = {"off", "disagree", "rationale", "error", "agree", "short", "long"}
LABELS_ONLY = {"right", "wrong", "confident_wrong", "mistakes"}


def picture_browse_area(opened: OpenPictures, prefix: str) -> None:
    """Opened by its switch. `prefix`: how the widget keys of the page start. Stands below the choice of the picture."""

    def key(name: str) -> str:
        return prefix + name

    if not draw_browse_switch(opened.data.title or opened.name, "pictures", key):
        return
    focus = picture_focus_controls.read_controls(opened)
    draw_framed(
        "picture_browse", partial(picture_results, focus.model, opened), lambda held: _drawn(opened, focus, held, key)
    )


def _drawn(opened: OpenPictures, focus: PictureFocus, held: ExampleResults, key: Key) -> None:
    rows, current = held.rows, None if focus.own else focus.index
    st.html(f'<div class="xg"><p class="xg-small">{escape(describe_examples(rows))}</p></div>')
    draw_jobs(held, _offers(focus.model, opened, rows))
    picture_focus_controls.offer_better_model(list_models("image"), opened, "browse")
    browse = _controls(rows, key)
    found = list_examples(rows, browse)
    show = partial(picture_focus_controls.show, opened)
    draw_walk(found, current, show, key)
    if missing := explain_missing(rows, browse):
        say_note(missing)
    if found:
        shown = _page(found, browse, current, key)
        draw_picture_grid([rows.rows[place] for place in shown], _small(opened, shown), current, key("grid"), show)
    elif not missing:
        st.info("No picture matches. Change what is shown.")


def _offers(model: str, opened: OpenPictures, rows: ExampleTable) -> list[Offer]:
    total = len(rows.rows)
    if rows.predicted == total:
        return []
    return [Offer(f"Predict all {count(total, 'picture')}", "predict", picture_spec(model, opened))]


def _controls(rows: ExampleTable, key: Key) -> Listing:
    barred = TEXTS_ONLY if rows.label_names else TEXTS_ONLY | LABELS_ONLY
    show, label, sort = st.columns(3, gap="small")
    with show:
        draw_listing_choice("Show", "show", SHOW_NAMES, barred, key)
    with label:
        chosen = st.session_state.get(key("browse.label"))
        labels = dict.fromkeys(filter(None, [*rows.label_names, chosen]))
        draw_listing_choice("Label", "label", {"": "Any", **{name: name for name in labels}}, set(), key)
    with sort:
        draw_listing_choice("Sort", "sort", SORT_NAMES, barred, key)
    held = {name: st.session_state.get(key(f"browse.{name}")) for name in vars(DEFAULT_LISTING)}
    return Listing(**{name: held[name] or usual for name, usual in vars(DEFAULT_LISTING).items()})


def _page(found: Sequence[int], browse: Listing, current: int | None, key: Key) -> Sequence[int]:
    """The part of the list that is drawn: what was asked for first, then wherever the current picture is."""
    held, seen = key("browse_page"), key("browse_seen")
    now = [hash(tuple(found)), current]
    before = st.session_state.get(seen, [None, None])
    if now != before:
        first = now[0] != before[0] and browse.sort != DEFAULT_LISTING.sort
        st.session_state[held] = 0 if first or current not in found else found.index(current) // A_PAGE
        st.session_state[seen] = now
    page, pages = st.session_state[held], range(0, len(found), A_PAGE)
    if len(pages) > 1:
        _turn(page, len(pages), len(found), key)
    return found[pages[page] : pages[page] + A_PAGE]


def _turn(page: int, pages: int, total: int, key: Key) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for label, to in (("Page back", page - 1), ("Page on", page + 1)):
            st.button(
                label, key=key(f"browse_{label}"), disabled=not 0 <= to < pages, type="tertiary",
                on_click=st.session_state.__setitem__, args=(key("browse_page"), to),
            )  # fmt: skip
        st.caption(f"{page * A_PAGE + 1:,} to {min(total, (page + 1) * A_PAGE):,} of {total:,} pictures")


def _small(opened: OpenPictures, places: Sequence[int]) -> list[str]:
    data = opened.data
    return _urls(data.id, data.revision, data.split, len(data), tuple(places), opened)


@st.cache_data(max_entries=64, show_spinner=False)
def _urls(id: str, revision: str, split: str, total: int, places: tuple[int, ...], _opened: OpenPictures) -> list[str]:
    return [_url(_opened.data, place) for place in places]


def _url(data: ImageDataset, place: int) -> str:
    try:
        return thumbnail_url(data[place].pixels, SIDE, QUALITY)
    except ExegesisError:
        return ""
