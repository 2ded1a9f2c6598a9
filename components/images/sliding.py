"""A window that slides over the picture: the prediction without it, and a map of the fall at every position."""

from __future__ import annotations

import json
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.compute import run_cached
from components.controls import PERSIST
from components.errors import describe_error, show_error
from components.export import command_line, file_button, how_to_repeat, input_arguments, input_button
from components.images.state import SLIDING, PictureState, key, put, value
from components.numbers import percent, points
from components.prediction import prediction_html, target_index
from components.widgets.patch_map import PatchMap, layers_html, legend_html, picture_style, place, sentence
from engine.lazy import LazyModule
from engine.progress import CancelToken, cancellable
from engine.request import Picture
from engine.result import Explanation
from engine.table_io import to_csv
from engine.vision.picture import read_view

if TYPE_CHECKING:
    from engine import sliding
    from engine.sliding import SlidingWindow
else:  # it imports torch, which most visits do not need
    sliding = LazyModule("engine.sliding")

SCOPE = "xg-slide"
MOST_CLASSES = 5
HELP = "Removes a square of patches at every position and predicts each time, in one batch."
SOURCE = (
    "Sliding-window occlusion (Zeiler and Fergus, 2014, Visualizing and understanding convolutional networks). Color: "
    "the mean fall over the windows that cover a patch. At a stride of 1 it is the map of Occlusion with the "
    "same window size and removal."
)


def draw_sliding(state: PictureState, probe: Explanation) -> None:
    """Draw the toggle and, once it is on, the window, its prediction and the map; nothing for a regression model."""
    if state.picture is None or probe.grid is None or probe.prediction.regression:
        return
    st.subheader("Slide a window", anchor=False)
    if not st.toggle(
        "Prediction with a window removed", key=key("open.sliding"), persist_state=PERSIST, help=HELP
    ):  # fmt: skip
        return
    target = target_index(probe.prediction, state.target)
    if target is None:
        return
    controls = st.container(horizontal=True, gap="small", vertical_alignment="bottom")
    window, stride = _size_controls(state, probe.grid, controls)
    compute = partial(_compute, state.model, state.picture, window, stride, state.removal)
    try:
        result = run_cached(sliding.sliding_key(state.model, state.picture, window, stride, state.removal), compute)
    except Exception as error:
        show_error(describe_error(error))
        return
    position = _position_control(state, result, controls, target)
    left, right = st.columns([2, 3], gap="medium")
    pixels = read_view(state.model).transform(state.picture.pixels)
    left.html(picture_style(pixels, result.covered(position), f".{SCOPE}") + map_html(result, position, target))
    with right:
        st.html(answer_html(result, position, target))
        st.html(prediction_html(result.prediction(position), target, result.prediction(), MOST_CLASSES))
    st.caption(SOURCE)
    _export(state, result, target)


def _compute(
    model: str, picture: Picture, window: int, stride: int, removal: str, token: CancelToken
) -> SlidingWindow:  # fmt: skip
    with cancellable(token):
        return sliding.slide_window(model, picture, window, stride, removal)


def _size_controls(state: PictureState, grid: tuple[int, int], controls: DeltaGenerator) -> tuple[int, int]:
    """Draw the controls for the window and its stride, limited to the grid."""
    largest = min(grid)
    window = min(state.sliding.window, largest)
    stride = min(state.sliding.stride, window)
    for name, held in (("window", window), ("stride", stride)):
        if value(f"{SLIDING}{name}") != held:
            put(f"{SLIDING}{name}", held)
    window = controls.number_input(
        "Window, in patches", 1, largest, key=key(f"{SLIDING}window"), width=150, persist_state=PERSIST,
        help="The side of the square that is removed.",
    )  # fmt: skip
    stride = controls.number_input(
        "Stride", 1, int(window), key=key(f"{SLIDING}stride"), width=120, persist_state=PERSIST,
        help="Patches from one position to the next.",
    )  # fmt: skip
    return int(window), int(stride)


def _position_control(state: PictureState, result: SlidingWindow, controls: DeltaGenerator, target: int) -> int:
    """Draw the slider of the position and a button to the largest fall. Return the position, from 0."""
    count = len(result.positions)
    held = min(state.sliding.position, count)
    if value(f"{SLIDING}position") != held:
        put(f"{SLIDING}position", held)
    if count < 2:
        return 0
    strongest = int(result.falls(target).argmax()) + 1
    chosen = controls.slider(
        "Position", 1, count, key=key(f"{SLIDING}position"), width=320, persist_state=PERSIST,
        help="In reading order: row by row, from the top left.",
    )  # fmt: skip
    controls.button(
        "Largest fall", key=key("sliding_strongest"), on_click=put, args=(f"{SLIDING}position", strongest),
        help="Moves the window where the probability falls most.",
    )  # fmt: skip
    return int(chosen) - 1


def map_html(result: SlidingWindow, position: int, target: int) -> str:
    """HTML of the picture with the map of falls over it and the window outlined. All text is escaped."""
    view = PatchMap(result.heat_map(target), True, result.labels[target])
    where = place(result.positions[position][0] * result.grid[1] + result.positions[position][1], result.grid[1])
    label = f"Fall of the probability of {result.labels[target]}. Window from {where}. {sentence(view)}"
    return (
        f'<div class="xg xg-card {SCOPE}"><div class="xg-patches xg-alone" role="img" aria-label="{escape(label)}">'
        f'{layers_html(view)}</div><div class="xg-small">{legend_html(view)}</div></div>'
    )


def answer_html(result: SlidingWindow, position: int, target: int) -> str:
    """HTML of the prediction without the window, and of where the probability falls most. All text is escaped."""
    falls, label = result.falls(target), result.labels[target]
    row, column = result.positions[position]
    strongest = int(falls.argmax())
    most = place(result.positions[strongest][0] * result.grid[1] + result.positions[strongest][1], result.grid[1])
    changed = sum(result.prediction(at).index != result.predicted for at in range(len(falls)))
    here = (
        f"Without the window at row {row + 1}, column {column + 1} the model predicts "
        f"{result.prediction(position).label}: {label} {percent(result.prediction(position).probabilities[target])} "
        f"({points(-float(falls[position]))} points)."
    )
    fall = points(float(falls[strongest])).removeprefix("+")
    everywhere = (
        f"The largest fall of {label} is {fall} points, at {most}. The prediction changes at {changed:,} of "
        f"{len(falls):,} positions."
    )
    return f'<div class="xg"><p class="xg-answer">{escape(here)}</p><p>{escape(everywhere)}</p></div>'


def positions_csv(result: SlidingWindow) -> str:
    """Return CSV with a row for each position and the probability of every class."""
    return to_csv(
        {
            "row": row + 1,
            "column": column + 1,
            **{f"probability {label}": float(share) for label, share in zip(result.labels, shares, strict=True)},
        }
        for (row, column), shares in zip(result.positions, result.probabilities, strict=True)
    )


def _export(state: PictureState, result: SlidingWindow, target: int) -> None:
    with st.popover("Export sliding window"):
        file_button(
            "CSV", "sliding.csv", "text/csv", partial(positions_csv, result), "A row for each position.",
            key("sliding_csv"),
        )  # fmt: skip
        file_button(
            "JSON", "sliding.json", "application/json", lambda: json.dumps(result.as_json(), indent=1),
            "All positions with the probability of every class.", key("sliding_json"),
        )  # fmt: skip
        input_button(state.focus, key("sliding_picture"))
        st.caption(how_to_repeat(state.focus))
        arguments = ["slide", "--model", state.model, *input_arguments(state.focus), "--target", result.labels[target]]
        arguments += ["--window", str(result.window), "--stride", str(result.stride)]
        arguments += [] if state.removal == "mean" else ["--removal", state.removal]
        st.code(command_line([*arguments, "--json"]), language="bash", wrap_lines=True)
