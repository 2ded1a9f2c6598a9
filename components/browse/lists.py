"""Lists of a data set's texts and pictures: the switch, filters, jobs that fill them, and navigation."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.browse.confusion import draw_confusion
from components.browse.embedding import draw_embedding
from components.browse.examples import (
    CONFIDENT,
    MOST_SHOWN,
    UNSURE,
    ExampleTable,
    describe_examples,
    describe_left_out,
    describe_place,
    example_frame,
    explain_missing,
    list_examples,
    neighbors,
)
from components.browse.listing import DEFAULT_LISTING, LONGEST_SEARCH, Listing
from components.browse.results import (
    ExampleResults,
    RelatedJobs,
    picture_results,
    picture_spec,
    predict_spec,
    text_results,
)
from components.browse.slices import draw_slice
from components.browse.thumbnails import draw_picture_grid, thumbnail_url
from components.controls import PERSIST, Key, restore_controls, set_control
from components.errors import describe_error, error_html, escape_label, show_note
from components.inputs import picture_choice, text_choice
from components.inputs.datasets import OpenPictures, OpenTexts
from components.inputs.picture_choice import PictureFocus
from components.job_panel import JobPanel
from components.numbers import count
from components.tables import row_choice
from engine.data.examples import ImageDataset
from engine.errors import ExegesisError
from engine.input_kinds import list_models
from engine.metrics.agreement import QUICK
from engine.registry import all_explainers

PANEL = JobPanel("browse")
OPEN = "open.browse"
"""The control that opens the list."""
SHOW_NAMES = {
    "all": "All",
    "right": "Right",
    "wrong": "Wrong",
    "confident_wrong": f"Wrong and confident (≥ {CONFIDENT:.0%})",
    "unsure": f"Unsure (confidence < {UNSURE:.0%})",
    "off": "Largest errors (top quarter)",
    "disagree": "Methods disagree (top quarter)",
    "rationale": "With a rationale",
}
SORT_NAMES = {
    "index": "Data set order",
    "mistakes": "Failure cases first",
    "confident": "Most confident first",
    "doubtful": "Least confident first",
    "error": "Largest error first",
    "disagree": "Most disagreement first",
    "agree": "Least disagreement first",
    "short": "Shortest first",
    "long": "Longest first",
}
CLASSES_ONLY = {"right", "wrong", "confident_wrong", "unsure", "mistakes", "confident", "doubtful"}
SCORES_ONLY = {"off", "error"}
TABLE = "browse_table"
MOST_IN_VIEW = 8
PAGE_SIZE = 40
SIDE, QUALITY = 64, 70
"""Side in pixels and quality of a thumbnail: a page of them stays below 100 kB."""
TEXTS_ONLY = {"off", "disagree", "rationale", "error", "agree", "short", "long"}
LABELS_ONLY = {"right", "wrong", "confident_wrong", "mistakes"}


@dataclass(frozen=True)
class Offer:
    """A job that would fill the list: its button label, unique name, spec and kind."""

    label: str
    name: str
    spec: Mapping[str, object]
    help: str | None = None
    kind: str = "predict"


def draw_browse_button(place: DeltaGenerator, title: str, appearance: str, key: Key) -> None:
    """Draw the button that opens and closes the list of the data set, next to the choice of its example.

    `title`: title of the data set. `appearance`: what the list looks like.
    """
    is_open = bool(st.session_state.get(key(OPEN)))
    place.button(
        "Close list" if is_open else "Browse", key=key("browse button"),
        help=f"{escape_label(title)} as {appearance}, with predictions, a confusion matrix and an embedding map.",
        on_click=_flip_list, args=(key,),
    )  # fmt: skip


def _flip_list(key: Key) -> None:
    restore_controls()
    set_control(key(OPEN), not st.session_state.get(key(OPEN)))


def draw_framed(frame: str, read: Callable[[], ExampleResults], draw: Callable[[ExampleResults], None]) -> None:
    """Draw the list in a frame with the key `frame`, or the error if it cannot be read."""
    with st.container(border=True, key=frame):
        try:
            results = read()
        except Exception as error:
            st.html(error_html(describe_error(error)))
            return
        draw(results)


def draw_listing_controls(
    places: Sequence[DeltaGenerator], barred: Collection[str], labels: Sequence[str], predicted: Sequence[str], key: Key
) -> Listing:
    """Draw the filter, the classes and the order in `places`; return the listing of all controls.

    `barred`: filters and orders that are left out, unless a link has already chosen them. `predicted`: the model's
    classes.
    """
    label_names, class_names = (
        {"": "Any", **{one: one for one in filter(None, [*names, st.session_state.get(key(f"browse.{field}"))])}}
        for field, names in (("label", labels), ("predicted", predicted))
    )
    choices = (
        ("Show", SHOW_NAMES, barred),
        ("Label", label_names, ()),
        ("Predicted", class_names, ()),
        ("Sort", SORT_NAMES, barred),
    )
    for place, (title, names, left_out) in zip(places, choices, strict=True):
        widget = key(f"browse.{title.lower()}")
        options = [option for option in names if option not in left_out or option == st.session_state.get(widget)]
        place.selectbox(title, options, key=widget, format_func=names.__getitem__, persist_state=PERSIST)
    values = {name: st.session_state.get(key(f"browse.{name}")) for name in vars(DEFAULT_LISTING)}
    return Listing(**{name: values[name] or default for name, default in vars(DEFAULT_LISTING).items()})


def draw_walk(listed: Sequence[int], current: int | None, show: Callable[[int], None], key: Key) -> None:
    """Draw buttons to the neighbors of the current example and to a random one, and its position in the list."""
    before, after = neighbors(listed, current)
    others = [index for index in listed if index != current]
    chance = random.choice(others) if others else None
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for label, icon, index in (
            ("Previous", ":material/arrow_back:", before),
            ("Next", ":material/arrow_forward:", after),
            ("Random, filtered", ":material/shuffle:", chance),
        ):
            st.button(
                label, key=key(f"browse_{label}"), icon=icon, disabled=index is None, on_click=show, args=(index,)
            )
        st.caption(describe_place(listed, current))


def draw_jobs(results: ExampleResults | RelatedJobs, offers: Sequence[Offer]) -> None:
    """Draw buttons for the offered jobs, or the progress of the running job; the page reruns when that ends."""
    PANEL.trouble()
    if results.running is not None:
        PANEL.progress(results.running.id)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if offers:
            PANEL.go_on(results.last)
        for offer in offers:
            PANEL.offer(offer.label, offer.name, offer.kind, offer.spec, help=offer.help)


def draw_text_list(opened: OpenTexts, key: Key) -> None:
    """Draw the texts as a table that can be filtered, searched and sorted, if its switch is on.

    Clicking a row or a button shows that example, so the list is below the choice of the example.
    """
    if not st.session_state.get(key(OPEN)):
        return
    focus = text_choice.read_controls(opened)
    draw_framed(
        "browse",
        partial(text_results, focus.model, opened),
        lambda results: _draw_texts(opened, focus.model, results, focus.index, key),
    )


def _draw_texts(opened: OpenTexts, model: str, results: ExampleResults, current: int | None, key: Key) -> None:
    table = results.rows
    st.html(f'<div class="xg"><p class="xg-small">{escape(describe_examples(table))}</p></div>')
    draw_jobs(results, _text_jobs(model, opened, table))
    scores = opened.data.task == "regression"
    barred = SCORES_ONLY if not (scores if table.regression is None else table.regression) else CLASSES_ONLY
    draw_confusion(table, key)
    show = partial(text_choice.show, opened)
    selected = draw_embedding(opened, model, table, show, key)
    search, *places = st.columns([4, 4, 3, 3, 4], gap="small")
    search.text_input("Search", key=key("browse.search"), max_chars=LONGEST_SEARCH, placeholder="words in the text")
    listing = draw_listing_controls(places, barred, () if scores else table.label_names, table.class_names, key)
    listed = list_examples(table, listing, selected)
    draw_walk(listed, current, show, key)
    if missing := explain_missing(table, listing):
        show_note(missing)
    if listed:
        _draw_table(opened, table, listed, current, key)
    elif not missing:
        left = len(table.rows) - table.predicted
        more = f" {left:,} are not predicted yet." if left else ""
        st.info(f"No example matches.{more} Change the search or the filter.")
    draw_slice("text", opened, model, listed, len(table.rows), key)
    _draw_notes(table, listed)


def _text_jobs(model: str, opened: OpenTexts, table: ExampleTable) -> list[Offer]:
    total, spec = len(table.rows), partial(predict_spec, model, opened.name)
    examples = count(total, "example")
    predict = Offer(f"Predict all {examples}", "predict", spec())
    compare = Offer(
        f"Compare methods on all {examples}", "compare", spec(QUICK),
        f"Explains each example with {', '.join(QUICK)} to find where the methods disagree. "
        "This takes much longer than predicting.",
    )  # fmt: skip
    missing = ((predict, table.predicted), (compare, table.compared))
    return [offer for offer, done in missing if done < total]


def _draw_table(opened: OpenTexts, table: ExampleTable, listed: Sequence[int], current: int | None, key: Key) -> None:
    first = listed[:MOST_SHOWN]
    row_choice(
        example_frame([table.rows[index] for index in first], table),
        key(TABLE),
        first.index(current) if current in first else None,
        lambda row: text_choice.show(opened, first[row]),
        _columns(),
        MOST_IN_VIEW,
    )


def _columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "#": column.NumberColumn(width=60, help="Row number in the data set"),
        "Text": column.TextColumn(width=300),
        "Second text": column.TextColumn(width=260),
        "Confidence": column.ProgressColumn(
            min_value=0, max_value=1, format="percent", width=120, help="The probability of the predicted class"
        ),
        "Score": column.NumberColumn(format="%.3f"),
        "Error": column.NumberColumn(format="%.3f", help="The absolute difference between the score and the true one"),
        "Disagreement": column.NumberColumn(
            format="%.2f",
            help="1 minus the mean rank correlation of the methods. 0: the same order; about 1: unrelated",
        ),
        "Length": column.NumberColumn(width=70, help="Characters"),
        "Rationale": column.TextColumn(width=220, help="Words that people marked as the reason for the label"),
    }


def _draw_notes(table: ExampleTable, listed: Sequence[int]) -> None:
    notes = []
    if len(listed) > MOST_SHOWN:
        notes.append(
            f"The table shows the first {MOST_SHOWN:,} of {len(listed):,}; Previous, Next and Random cover all of them."
        )
    if table.compared:
        notes.append(_describe_comparison(table))
    if notes:
        st.caption(" ".join(notes))


def _describe_comparison(table: ExampleTable) -> str:
    titles = {id: method.title for id, method in all_explainers().items()}
    names = ", ".join(titles[id] for id in QUICK)
    comparison = (
        f"Disagreement on {table.compared:,} examples: 1 minus the mean Spearman ρ over all pairs of {names}, computed "
        "on absolute scores."
    )
    return f"{comparison} {describe_left_out(table, titles)}".rstrip()


def draw_picture_list(opened: OpenPictures, key: Key) -> None:
    """Draw thumbnails with labels and predictions, filtered and sorted, if their switch is on.

    Clicking a thumbnail or a button shows that picture, so the list is below the choice of the picture.
    """
    if not st.session_state.get(key(OPEN)):
        return
    focus = picture_choice.read_controls(opened)
    draw_framed(
        "picture_browse",
        partial(picture_results, focus.model, opened),
        lambda results: _draw_pictures(opened, focus, results, key),
    )


def _draw_pictures(opened: OpenPictures, focus: PictureFocus, results: ExampleResults, key: Key) -> None:
    table, current = results.rows, focus.place
    st.html(f'<div class="xg"><p class="xg-small">{escape(describe_examples(table))}</p></div>')
    total = len(table.rows)
    predict_all = Offer(f"Predict all {count(total, 'picture')}", "predict", picture_spec(focus.model, opened))
    draw_jobs(results, [] if table.predicted == total else [predict_all])
    picture_choice.offer_better_model(list_models("image"), opened, "browse")
    barred = TEXTS_ONLY if table.label_names else TEXTS_ONLY | LABELS_ONLY
    draw_confusion(table, key)
    show = partial(picture_choice.show, opened)
    selected = draw_embedding(opened, focus.model, table, show, key)
    listing = draw_listing_controls(st.columns(4, gap="small"), barred, table.label_names, table.class_names, key)
    listed = list_examples(table, listing, selected)
    draw_walk(listed, current, show, key)
    if missing := explain_missing(table, listing):
        show_note(missing)
    if listed:
        places = _draw_page_choice(listed, listing, current, key)
        data = opened.data
        urls = _cached_urls(data.id, data.revision, data.split, len(data), tuple(places), data)
        draw_picture_grid([table.rows[place] for place in places], urls, current, key("grid"), show)
        draw_slice("image", opened, focus.model, listed, total, key)
    elif not missing:
        st.info("No picture matches. Change the filter.")


def _draw_page_choice(listed: Sequence[int], listing: Listing, current: int | None, key: Key) -> Sequence[int]:
    """Draw the paging buttons; return the page: the first one after sorting, else that of the current picture."""
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
