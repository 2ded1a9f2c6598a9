"""Counterfactuals on the Images page: the fewest patches whose removal flips the prediction, on request."""

from __future__ import annotations

import json
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import streamlit as st
from jaxtyping import UInt8

from components.ablation import PICTURE_WORDS
from components.compute import run_cached
from components.controls import PERSIST
from components.export import command_line, file_button, how_to_repeat, input_arguments, input_button, to_png
from components.images.state import PictureState, key, put
from components.numbers import count, percent
from components.progress import run_with_progress
from components.styles import use_sheet
from engine.lazy import LazyModule
from engine.progress import CancelToken, cancellable
from engine.result import Prediction
from engine.vision.picture import read_view

if TYPE_CHECKING:
    from engine.counterfactuals import patches as patch_counterfactuals
    from engine.counterfactuals.patches import PatchCounterfactuals, PatchSet
else:  # it imports torch, which most visits do not need
    patch_counterfactuals = LazyModule("engine.counterfactuals.patches")

SIDE = 10
"""Side of a patch in the drawing, in SVG units."""
CAUTION = (
    "A picture with removed patches is unlike the training data, and another removal may need other patches. Wachter "
    "et al. (2018), Counterfactual explanations without opening the black box; patches that are not needed are put "
    "back as in Carter et al. (2019), sufficient input subsets."
)


def draw_counterfactuals(state: PictureState) -> None:
    """Draw the toggle and, once it is on, the smallest sets of patches and a summary of the search."""
    picture = state.picture
    if picture is None:
        return
    st.subheader("Flip the prediction", anchor=False)
    if not st.toggle(
        "Counterfactuals: the fewest removed patches", key=key("open.counterfactuals"), persist_state=PERSIST,
        help="Removes patches until the prediction flips. Runs the model up to some thousand times on request.",
    ):  # fmt: skip
        return

    def compute(token: CancelToken) -> PatchCounterfactuals:
        with cancellable(token):
            return patch_counterfactuals.patch_counterfactuals(state.model, picture, state.removal)

    def result_key() -> str:
        return patch_counterfactuals.patch_counterfactuals_key(state.model, picture, state.removal, None)

    result = run_with_progress(
        st.empty(), result_key, "Searching", "Stopped before the search ended.",
        lambda tick: run_cached(result_key(), compute, tick),
    )  # fmt: skip
    if result is not None:
        _draw_result(state, result, read_view(state.model).transform(picture.pixels))


def _draw_result(
    state: PictureState, result: PatchCounterfactuals, pixels: UInt8[np.ndarray, "height width 3"]
) -> None:
    use_sheet("questions")
    st.html(summary_html(result))
    for at, one in enumerate(result.results or filter(None, [result.closest])):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key(f"flip_row.{at}")):
            st.html(patches_html(result, one, pixels))
            st.button(
                "Pin", key=key(f"flip_pin.{at}"), on_click=put, args=("pins", list(one.patches)), width="content",
                help="Pin these patches in every map and see the prediction without them by each removal.",
            )  # fmt: skip
    st.html(search_html(result))
    with st.popover("Export counterfactuals"):
        file_button(
            "CSV", "counterfactuals.csv", "text/csv", result.as_csv, "A row for each removed patch.", key("flips_csv")
        )
        file_button(
            "JSON", "counterfactuals.json", "application/json", lambda: json.dumps(result.as_json(), indent=1),
            "Patches, predictions and what was searched.", key("flips_json"),
        )  # fmt: skip
        input_button(state.focus, key("flips_input"))
        st.caption(how_to_repeat(state.focus))
        arguments = ["counterfactuals", "--model", state.model, *input_arguments(state.focus)]
        command = command_line([*arguments, "--removal", state.removal])
        st.code(command, language="bash", wrap_lines=True)


def summary_html(result: PatchCounterfactuals) -> str:
    """HTML of a sentence on the smallest flip, or on how close the search came."""
    one = result.results[0] if result.results else result.closest
    if one is None:
        return '<div class="xg"><p class="xg-summary">The picture has no patch that can be removed alone.</p></div>'
    rows, columns = result.grid
    removed = f"{len(one.patches)} of {rows * columns} patches"
    how = f"A removed patch is {PICTURE_WORDS.removals[result.removal]}."
    index = one.prediction.index if result.results else result.original.index
    moved = f"{_value_html(result.original, result.original.index)} → {_value_html(one.prediction, index)}"
    if not result.results:
        sentence = (
            f"Nothing that was tried flips the prediction. Without {removed}: {moved}. {how} Choose another removal "
            "under Test the maps, or another picture."
        )
    else:
        smallest = " No smaller set does." if result.is_smallest and len(one.patches) > 1 else ""
        sentence = f"Removing {removed} flips the prediction: {moved}.{smallest} {how}"
    return f'<div class="xg"><p class="xg-summary">{sentence}</p></div>'


def patches_html(result: PatchCounterfactuals, one: PatchSet, pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    """HTML of the picture with the removed patches crossed out, their places, and the prediction without them."""
    index = one.prediction.index if result.results else result.original.index
    places = "; ".join(f"row {row + 1}, column {column + 1}" for row, column in places_of(result, one))
    picture = f"data:image/svg+xml,{quote(patches_svg(result, one, pixels))}"
    return (
        f'<div class="xg xg-flip-picture"><img src="{picture}" width="112" '
        f'alt="The picture; crossed out are {places}.">'
        f"<p><b>{_value_html(one.prediction, index)}</b><br>"
        f'<span class="xg-small">without {places}</span></p></div>'
    )


def places_of(result: PatchCounterfactuals, one: PatchSet) -> list[tuple[int, int]]:
    """Return the row and column of each patch, from 0."""
    return [divmod(patch, result.grid[1]) for patch in one.patches]


def patches_svg(result: PatchCounterfactuals, one: PatchSet, pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    """Return the picture as SVG, with a cross over each removed patch."""
    height, width = (SIDE * side for side in result.grid)
    image = b64encode(to_png(pixels)).decode()
    crosses = "".join(
        f'<path d="M{SIDE * column} {SIDE * row}h{SIDE}v{SIDE}h-{SIDE}zl{SIDE} {SIDE}m0-{SIDE}l-{SIDE} {SIDE}"/>'
        for row, column in places_of(result, one)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<image href="data:image/png;base64,{image}" width="{width}" height="{height}" preserveAspectRatio="none"/>'
        f'<g fill="#777" stroke="#fff" stroke-width="0.9">{crosses}</g></svg>'
    )


def _value_html(prediction: Prediction, index: int) -> str:
    return f"<bdi>{escape(prediction.labels[index])}</bdi> ({escape(percent(prediction.probabilities[index]))})"


def search_html(result: PatchCounterfactuals) -> str:
    """HTML of what was searched, its cost, and how to read the result."""
    verified = (
        "Each set was run again after the search, and no single patch of it can be put back. " if result.results else ""
    )
    return (
        f'<div class="xg"><p class="xg-small">{" ".join(result.statements)} {verified}'
        f'{count(result.evaluations, "evaluation")} of the model.</p><p class="xg-small">{CAUTION}</p></div>'
    )
