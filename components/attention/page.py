"""The Attention page below its title: controls, the prediction, the board of all heads, then its sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.attention.export import (
    HeadsExport,
    attention_file,
    cite_html,
    explain_command,
    heads_command,
    html,
    matrix_csv,
    scores_csv,
    scores_json,
    svg,
)
from components.attention.flow import flow_section
from components.attention.readings import agreement_section, answer_html, await_reading, await_scores, is_pending
from components.attention.state import (
    BOARD_KEYS,
    AttentionState,
    choose_query,
    fit_to_classes,
    fit_to_reading,
    key,
    lock,
)
from components.attention.switches import restore_button, switch_section
from components.compute import explain, is_cached
from components.controls import PERSIST
from components.export import (
    FileOf,
    citation_box,
    file_button,
    how_to_repeat,
    input_button,
    png_button,
)
from components.inputs.choices import CHOICES
from components.prediction import PROBE, prediction_area
from components.widgets.attention_board import (
    DETAILS,
    ORDERS,
    SCORE_NAMES,
    VIEWS,
    HeadScoreMap,
    attention_board,
    head_name,
)
from components.widgets.patch_map import picture_style, use_picture_styles
from engine.errors import ExegesisError
from engine.heads.matrices import BETWEEN, SCALES
from engine.heads.readings import HeadReading
from engine.heads.scores import AGREES, SCORES
from engine.input_kinds import INPUT_KINDS
from engine.request import Example, Picture, Request
from engine.vision.picture import read_view

MAX_CLASSES = 5
SCORE_TITLES = {score.id: score.title for score in (*SCORES.values(), AGREES)}
VIEW_TITLES = {
    "text": {"matrix": "Matrix", "received": "Received", "query": "From one token"},
    "image": {"query": "From one patch", "received": "Received", "matrix": "Matrix"},
}
VIEW_HELP = (
    "Matrix: rows are queries, columns are keys. Received: the mean attention to each {unit}, over the queries that "
    "may attend to it. From one {unit}: what one query attends to. It starts at the one that the model reads ({read}); "
    "click another in the detail."
)
ORDER_TITLES = {"place": "By layer", "score": "By score"}
DETAIL_TITLES = {"matrix": "Matrix", "lines": "Lines", "overlay": "Over the picture"}
BETWEEN_TITLES: Mapping[str, str] = {
    "all": "All", "a_to_b": "First to second text", "b_to_a": "Second to first text"
}  # fmt: skip

FILES: Sequence[FileOf[HeadsExport]] = (
    (
        "HTML",
        "exegesis-heads.html",
        "text/html",
        html,
        "The scores and the selected head as one page: light theme, no scripts.",
    ),
    (
        "SVG",
        "exegesis-heads.svg",
        "image/svg+xml",
        svg,
        "The scores and the selected head for papers and slides, in the light theme.",
    ),
    ("CSV", "exegesis-heads.csv", "text/csv", scores_csv, "One row per head, one column per score, unrounded."),
    ("JSON", "exegesis-heads.json", "application/json", scores_json, "The output of the command below."),
)
FIGURES = ("HTML", "SVG")
LINES_HELP = " It shows the head's matrix, not its lines."
PNG_FILE = "exegesis-heads.png"
PNG_HELP = "The SVG as a PNG image, rendered by your browser."
MATRIX_HELP = "The attention of head {}: one row per query, one column per key. Masked cells are empty."
ALL_FILE = "exegesis-attention.safetensors"
ALL_HELP = (
    "The attention of all heads in half precision, with the tokens: {:,.1f} MB, built when you click. Load it with "
    "safetensors.numpy.load_file."
)


def attention_panel(state: AttentionState, options: DeltaGenerator | None) -> None:
    """Draw everything below the choice of model and input. `options`: container for rarely used controls, if open."""
    if missing := describe_missing_input(state):
        st.info(missing)
    if missing or state.input is None:  # the picture controls already say why there is none
        return
    target, probe = key(state.kind, "target"), replace(state.request(PROBE), target=None)
    place = None if options is None else options.container()
    if prediction_area(probe, state.target, target, CHOICES[state.kind].noun, MAX_CLASSES, place) is None:
        _fit_to_cached_prediction(state, probe)
        restore_button(state)
        return
    reading = await_reading(state)
    if reading is None:
        return
    fit_to_reading(state, reading)
    answer = st.empty()
    st.selectbox(
        "Color heads by", SCORE_NAMES, key=key(state.kind, f"{BOARD_KEYS}score"), width=270, persist_state=PERSIST,
        format_func=SCORE_TITLES.__getitem__,
    )  # fmt: skip
    if options is not None:
        with options:
            _view_controls(state.kind, reading)
    place, pending = st.empty(), is_pending(state)
    scores = None if pending else await_scores(state, reading, place)
    if scores is not None and state.input is not None:
        answer.html(answer_html(scores, state.board, reading, state.input))
    board_panel(state, reading, scores)
    agreement_section(state, reading, scores)
    switch_section(state, reading, scores)
    flow_section(state, reading)
    # Last, so that the page does not wait: a slow score is computed in its place above the board.
    if pending and await_scores(state, reading, place) is not None:
        st.rerun()
    export_section(state, reading, scores)  # files never lack a score that is still pending


def describe_missing_input(state: AttentionState) -> str:
    """Return the next step if there is no model or no text; else an empty string."""
    if not state.model:
        return "Pick a model above, or type the folder of a checkpoint or a hub ID."
    if not isinstance(state.input, Example):
        return ""
    if not state.input.text.strip():
        return "Type a text above, or pick an example, to see what the heads attend to."
    if state.input.text_pair is not None and not state.input.text_pair.strip():
        return "Type the second text, or turn it off in Options."
    return ""


def _fit_to_cached_prediction(state: AttentionState, probe: Request) -> None:
    try:
        prediction = explain(probe).prediction if is_cached(probe) else None
    except ExegesisError:  # the prediction area already says why
        return
    if prediction is not None:
        fit_to_classes(state, prediction)


def board_panel(state: AttentionState, reading: HeadReading, scores: HeadScoreMap | None) -> None:
    """Draw the board; for a picture, over the picture as the model sees it. `scores`: None if there are none."""
    if isinstance(state.input, Picture):
        use_picture_styles()
        st.html(picture_style(read_view(state.model).transform(state.input.pixels)))
    attention_board(
        state.board,
        reading,
        scores,
        state.switched,
        key(state.kind, "board"),
        on_lock=partial(lock, state.kind),
        on_query=partial(choose_query, state.kind),
    )


def _view_controls(kind: str, reading: HeadReading) -> None:
    """Draw the controls for the map of each head, the detail, and the visible heads."""
    layers, heads = reading.slope.shape
    # Only fixed words, because a token's text may contain Markdown.
    read = "their mean" if (reading.reads > 0).sum() > 1 else f"position {reading.reads.argmax()}"
    st.segmented_control(
        "Map of each head", VIEWS[kind], key=key(kind, f"{BOARD_KEYS}view"), required=True,
        format_func=VIEW_TITLES[kind].__getitem__, help=VIEW_HELP.format(unit=INPUT_KINDS[kind].feature, read=read),
        persist_state=PERSIST,
    )  # fmt: skip
    st.segmented_control(
        "Detail", DETAILS[kind], key=key(kind, f"{BOARD_KEYS}detail"), required=True,
        format_func=DETAIL_TITLES.__getitem__, persist_state=PERSIST,
    )  # fmt: skip
    st.segmented_control(
        "Scale", SCALES, key=key(kind, f"{BOARD_KEYS}scale"), required=True, format_func=str.capitalize,
        persist_state=PERSIST,
        help="Own: each head has its own color scale. Shared: all heads have one scale.",
    )  # fmt: skip
    st.segmented_control(
        "Order", ORDERS, key=key(kind, f"{BOARD_KEYS}order"), required=True,
        format_func=ORDER_TITLES.__getitem__, persist_state=PERSIST,
    )  # fmt: skip
    if len({token.segment for token in reading.explanation.tokens if not token.special}) > 1:
        st.selectbox(
            "Attention between", BETWEEN, key=key(kind, f"{BOARD_KEYS}between"),
            format_func=BETWEEN_TITLES.__getitem__, persist_state=PERSIST,
        )  # fmt: skip
    st.toggle(
        "Special tokens in matrices", key=key(kind, f"{BOARD_KEYS}special"), persist_state=PERSIST,
        help="Heads often attend to [CLS] and [SEP] by default. Hiding them makes the rest easier to see; the values "
        "do not change.",
    )  # fmt: skip
    for name, count in (("layers", layers), ("heads", heads)):
        st.multiselect(
            name.capitalize(), range(count), key=key(kind, f"{BOARD_KEYS}{name}"), placeholder=f"All {name}",
            persist_state=PERSIST,
        )  # fmt: skip


def export_section(state: AttentionState, reading: HeadReading, scores: HeadScoreMap | None) -> None:
    """Draw the download buttons and the citation. A file is built only when its button is pressed."""
    export, kind = HeadsExport(state, reading, scores), state.kind
    lines = LINES_HELP * (state.board.detail == "lines")

    def button(label: str, name: str, form: str, build: Callable[[HeadsExport], str | bytes], help: str) -> None:
        file_button(label, name, form, lambda: build(export), help, key(kind, f"keep.{label}"))

    st.subheader("Export", anchor=False)
    with st.container(horizontal=True, gap="small", key=key(kind, "keep.all")):
        for label, name, form, build, help in FILES:
            button(label, name, form, build, help + lines * (label in FIGURES))
        head = head_name(export.head)
        button("Matrix", f"exegesis-head-{head}.csv", "text/csv", matrix_csv, MATRIX_HELP.format(head))
        megabytes = reading.attention.size * 2 / 1e6
        button("All attention", ALL_FILE, "application/octet-stream", attention_file, ALL_HELP.format(megabytes))
        input_button(state.focus, key(kind, "keep.input"))
        # Last, because its element takes the rest of the line.
        png_button("PNG", PNG_FILE, partial(svg, export), PNG_HELP + lines, key=key(kind, "keep.PNG"))
    citation_box(cite_html(export), _commands(export), key(kind, "keep.cite"))


def _commands(export: HeadsExport) -> list[tuple[str, str]]:
    """Return the command for the scores and, if heads are switched, the command for the attribution."""
    commands = [(how_to_repeat(export.state.focus), heads_command(export))]
    if export.state.switched:
        commands.append(("This command computes the attribution with the same head changes:", explain_command(export)))
    return commands
