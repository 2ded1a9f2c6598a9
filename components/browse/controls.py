"""Controls of lists of texts and of pictures: the switch, the filters, the jobs that fill them, and walking through."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.browse.examples import CONFIDENT, UNSURE, describe_place, neighbors
from components.browse.listing import DEFAULT_LISTING, Listing
from components.browse.results import ExampleResults, RelatedJobs
from components.controls import PERSIST, Key
from components.errors import describe_error, error_html, escape_label
from components.job_panel import JobPanel

PANEL = JobPanel("browse")
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


@dataclass(frozen=True)
class Offer:
    """A job that would fill the list: its button, a name of its own, its spec and kind."""

    label: str
    name: str
    spec: Mapping[str, object]
    help: str | None = None
    kind: str = "predict"


def draw_browse_switch(title: str, appearance: str, key: Key) -> bool:
    """Whether the list of the data set of that title is open. `appearance`: what the list looks like."""
    return st.toggle(
        f"Browse {escape_label(title)}", key=key("open.browse"), help=f"The data set as {appearance}.",
        persist_state=PERSIST,
    )  # fmt: skip


def draw_framed(frame: str, read: Callable[[], ExampleResults], draw: Callable[[ExampleResults], None]) -> None:
    """Draw the list in a frame with that key, or why there is none."""
    with st.container(border=True, key=frame):
        try:
            results = read()
        except Exception as error:
            st.html(error_html(describe_error(error)))
            return
        draw(results)


def draw_listing_controls(
    places: Sequence[DeltaGenerator], barred: Collection[str], labels: Sequence[str], key: Key
) -> Listing:
    """Draw the filter, the label and the order in these places; return the listing of all controls.

    A filter or order that is barred is left out, unless a link has already chosen it.
    """
    chosen = st.session_state.get(key("browse.label"))
    label_names = {"": "Any", **{name: name for name in filter(None, [*labels, chosen])}}
    choices = (("Show", SHOW_NAMES, barred), ("Label", label_names, ()), ("Sort", SORT_NAMES, barred))
    for place, (title, names, left_out) in zip(places, choices, strict=True):
        widget = key(f"browse.{title.lower()}")
        options = [option for option in names if option not in left_out or option == st.session_state.get(widget)]
        place.selectbox(title, options, key=widget, format_func=names.__getitem__, persist_state=PERSIST)
    values = {name: st.session_state.get(key(f"browse.{name}")) for name in vars(DEFAULT_LISTING)}
    return Listing(**{name: values[name] or default for name, default in vars(DEFAULT_LISTING).items()})


def draw_walk(listed: Sequence[int], current: int | None, show: Callable[[int], None], key: Key) -> None:
    """Draw buttons to the neighbors of the current example in the list, and where it stands there."""
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
    """Draw what is still missing as buttons, or the job that makes it; the page is drawn again when that is over."""
    PANEL.trouble()
    if results.running is not None:
        PANEL.progress(results.running.id)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if offers:
            PANEL.go_on(results.last)
        for offer in offers:
            PANEL.offer(offer.label, offer.name, offer.kind, offer.spec, help=offer.help)
