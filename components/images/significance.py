"""Significance test of a picture's patches against the patches of other pictures, on request."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from components.compute import run_cached
from components.controls import PERSIST
from components.errors import show_note
from components.export import command_line, input_arguments
from components.images.state import PatchTestView, PictureState, key
from components.numbers import count, plain, points
from components.progress import run_with_progress
from components.significance import (
    METHOD,
    draw_test_controls,
    export_significance,
    parts_table,
    significance_arguments,
    sorted_parts,
)
from components.tables import draw_table
from components.widgets.patch_map import PatchMap, layers_html, legend_html, picture_style, place, sentence
from engine.lazy import LazyModule
from engine.progress import CancelToken, cancellable
from engine.request import Picture
from engine.significance.false_discovery import survives
from engine.table_io import to_csv
from engine.vision.picture import read_view

if TYPE_CHECKING:
    import pandas as pd

    from engine.significance import pictures as picture_significance
    from engine.significance.pictures import PictureSignificance, PictureSignificanceQuery
else:  # it imports torch, which most visits do not need
    picture_significance = LazyModule("engine.significance.pictures")

SCOPE = "xg-significance"
MOST_AT_ONCE = 3_000
"""Maximum number of evaluations that start without a click; more take longer than a few seconds on a CPU."""
CAUTION = (
    "The patches of another picture do not fit their neighbors here. So a patch can survive because it continues its "
    "surroundings, not because of what it shows."
)
ASSUMPTION = (
    f"{METHOD} Benjamini and Hochberg’s procedure keeps the rate if "
    "unimportant patches are distributed as those at the same "
    "place in the other pictures, the class is chosen beforehand, and the tests are independent or positively "
    "dependent. The predicted class is not chosen beforehand: in a simulation, at a rate of 10%, 11 to 14% of the "
    "pictures without important patches had one that survives; with a chosen class, 6 to 11%."
)


def draw_significance(state: PictureState) -> None:
    """Draw the toggle and, once it is on, the significant patches."""
    if state.picture is None:
        return
    st.subheader("Test the patches", anchor=False)
    if not st.toggle(
        "Patches that are statistically significant", key=key("open.significance"), persist_state=PERSIST,
        help="Replaces each patch by those of 255 other pictures: thousands of evaluations, on request.",
    ):  # fmt: skip
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        draw_test_controls("patch", key)
    view, query = state.significance, query_of(state, state.picture)
    if not _is_started(query):
        return

    def compute(token: CancelToken) -> PictureSignificance:
        with cancellable(token):
            return picture_significance.picture_significance(query)

    found = run_with_progress(
        st.empty(), lambda: query.key, "Replacing patches", "Stopped before all patches were replaced.",
        lambda tick: run_cached(query.key, compute, tick),
    )  # fmt: skip
    if found is None:
        return
    pixels = read_view(state.model).transform(state.picture.pixels)
    alive = survivors(found, view)
    left, right = st.columns([2, 3], gap="medium")
    left.html(picture_style(pixels, alive, f".{SCOPE}") + map_html(found, view))
    with right:
        st.html(answer_html(found, view))
        if shortage := found.shortage(view.rate / 100):
            show_note(f"{shortage} {found.remedy(query.draws)}")
        st.caption(CAUTION)
    with st.expander("Numbers of all patches"):
        draw_table(patches_table(found, view), "significance")
        st.caption(ASSUMPTION)
    export_significance(
        found, view, lambda: to_csv(sorted_patches(found, view)), state.focus, command_line(_arguments(state)), key,
        "picture",
    )  # fmt: skip


def _is_started(query: PictureSignificanceQuery) -> bool:
    """Whether to test now, since the test is cached, quick or started; else draw its cost and a button."""
    evaluations = picture_significance.most_evaluations(query)
    started, is_quick = st.session_state.get(key("started")) == query.key, evaluations <= MOST_AT_ONCE
    if is_quick or started or picture_significance.is_computed(query):
        return True
    show_note(f"The test takes up to {count(evaluations, 'evaluation')} of the model. It runs once you start it.")
    st.button("Start the test", key=key("start"), on_click=_start, args=(query.key,))
    return False


def _start(test_key: str) -> None:
    """Start this test; it stays started when the page is redrawn."""
    st.session_state[key("started")] = test_key


def query_of(state: PictureState, picture: Picture) -> PictureSignificanceQuery:
    """Return the engine's query; the replacements are patches of the open data set."""
    return picture_significance.PictureSignificanceQuery(
        state.model, picture, state.focus.data, state.focus.split or None, state.target, seed=state.seed
    )


def survivors(found: PictureSignificance, view: PatchTestView) -> np.ndarray:
    """Return whether each patch is significant, on the grid."""
    alive: np.ndarray = survives(found.adjusted(view.alternative), view.rate / 100).reshape(found.grid)
    return alive


def map_html(found: PictureSignificance, view: PatchTestView) -> str:
    """HTML of the picture with the changes of the significant patches. All text is escaped."""
    scores = np.where(survivors(found, view), found.changes.reshape(found.grid), 0.0)
    drawn = PatchMap(scores, True, found.label)
    label = f"Patches that are significant for {found.label}. {sentence(drawn)}"
    legend = legend_html(drawn) if scores.any() else "<p>No patch is significant.</p>"
    return (
        f'<div class="xg xg-card {SCOPE}"><div class="xg-patches xg-alone" role="img" aria-label="{escape(label)}">'
        f'{layers_html(drawn)}</div><div class="xg-small">{legend}</div></div>'
    )


def answer_html(found: PictureSignificance, view: PatchTestView) -> str:
    """HTML of the number of significant patches, and the strongest of them. All text is escaped."""
    alive, changes = survivors(found, view).ravel(), found.changes
    number, total = int(alive.sum()), count(len(alive), "patch")
    verb = "is" if number <= 1 else "are"
    head = f"{number or 'None'} of {total} {verb} significant at a false discovery rate of {view.rate}%."
    if number:
        strongest = int(np.where(alive, np.abs(changes), -1.0).argmax())
        change = plain(float(changes[strongest])) if found.regression else f"{points(float(changes[strongest]))} points"
        head += f" The largest change, {change}, is at {place(strongest, found.grid[1])}."
    what = "score" if found.regression else f"probability of {found.label}"
    how = (
        f"A patch’s change is the {what}, {plain(found.value)}, minus its mean with the patches at the same place of "
        f"{found.count:,} other pictures of {found.source}. Patches without color do not survive."
    )
    return f'<div class="xg"><p class="xg-answer">{escape(head)}</p><p class="xg-small">{escape(how)}</p></div>'


def sorted_patches(found: PictureSignificance, view: PatchTestView) -> list[dict[str, Any]]:
    """Return a row for each patch, the smallest p-value first."""
    return sorted_parts(found, view, "row", "column")


def patches_table(found: PictureSignificance, view: PatchTestView) -> pd.DataFrame:
    """Return a row for each patch, rounded."""
    return parts_table(sorted_patches(found, view), {"Row": "row", "Column": "column"})


def _arguments(state: PictureState) -> list[str]:
    patches = ["--patches-from", state.focus.data] if state.focus.own else []
    target = ["--target", str(state.target)] if state.target is not None else []
    own = ["--model", state.model, *input_arguments(state.focus), *patches, *target]
    return significance_arguments(own, state.significance, state.seed)
