"""The Attention page's last part: scores, matrices and attention as files, and how to cite and repeat them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from components.attention.export import (
    KeptHeads,
    attention_file,
    explain_command,
    heads_command,
    matrix_csv,
    scores_csv,
    scores_json,
)
from components.attention.look import head_name
from components.attention.picture import cite_html, html, svg
from components.attention.scores import HeadMap
from components.attention.session import key
from components.attention.state import AttentionState
from components.inputs.picture_choice import PictureFocus
from components.keeping import (
    cite_box,
    file_button,
    how_to_repeat_picture,
    how_to_repeat_text,
    picture_button,
    text_button,
)
from components.png_button import png_button
from engine.heads.readings import HeadReading
from engine.request import Example

Builder = Callable[[KeptHeads], str | bytes]
FILES: tuple[tuple[str, str, str, Builder, str], ...] = (
    ("HTML", "exegesis-heads.html", "text/html", html, "The scores and the head shown, as one page; light, no script."),
    ("SVG", "exegesis-heads.svg", "image/svg+xml", svg, "The scores and the head shown, for papers and slides; light."),
    ("CSV", "exegesis-heads.csv", "text/csv", scores_csv, "A row a head, a column a score. Scores in full."),
    ("JSON", "exegesis-heads.json", "application/json", scores_json, "What the command below prints."),
)
PNG_FILE = "exegesis-heads.png"
PNG_HELP = "The same picture in pixels, drawn by this browser."
LINES = " Its matrix is drawn, not its lines."
DRAWN = ("HTML", "SVG")
ALL_FILE = "exegesis-attention.safetensors"
ALL_HELP = (
    "Attention of all heads in half precision with the tokens, {}. In Python: safetensors.numpy.load_file(name). "
    "It is built when you press."
)


def keep_area(state: AttentionState, reading: HeadReading, scores: HeadMap | None) -> None:
    """Files to download and how to cite. A file is built when its button is pressed, not before."""
    kept = KeptHeads(state, reading, scores)
    lines = LINES * (state.look.detail == "lines")
    st.subheader("Keep", anchor=False)
    with st.container(horizontal=True, gap="small", key=_key(state, "all")):
        for label, name, kind, build, help in FILES:
            _button(kept, label, name, kind, build, help + lines * (label in DRAWN))
        _matrix_button(kept)
        _button(kept, "All attention", ALL_FILE, "application/octet-stream", attention_file, _all_help(reading))
        _input_button(state)
        # Last: its element is as wide as the rest of the line.
        png_button("PNG", PNG_FILE, partial(svg, kept), PNG_HELP + lines, key=_key(state, "PNG"))
    cite_box(cite_html(kept), _commands(kept), _key(state, "cite"))


def _button(kept: KeptHeads, label: str, name: str, kind: str, build: Builder, help: str) -> None:
    file_button(label, name, kind, lambda: build(kept), help, _key(kept.state, label))


def _matrix_button(kept: KeptHeads) -> None:
    name = head_name(kept.head)
    help = f"The matrix of head {name}: a row a query, a column a key, empty where a query may not attend."
    _button(kept, "Matrix", f"exegesis-head-{name}.csv", "text/csv", matrix_csv, help)


def _input_button(state: AttentionState) -> None:
    if isinstance(state.focus, PictureFocus):
        picture_button(state.focus, _key(state, "input"))
    elif isinstance(state.input, Example):
        text_button(state.input, _key(state, "input"))


def _all_help(reading: HeadReading) -> str:
    return ALL_HELP.format(f"{reading.attention.size * 2 / 1e6:,.1f} MB")


def _commands(kept: KeptHeads) -> list[tuple[str, str]]:
    """The scores, and the attribution under the switched heads where there are any."""
    found = [(_how_to_repeat(kept.state), heads_command(kept))]
    if kept.state.switched:
        found.append(("This one makes the attribution with the same heads switched:", explain_command(kept)))
    return found


def _how_to_repeat(state: AttentionState) -> str:
    if isinstance(state.focus, PictureFocus):
        return how_to_repeat_picture(state.focus)
    return how_to_repeat_text(state.input) if isinstance(state.input, Example) else ""


def _key(state: AttentionState, name: str) -> str:
    return key(state.kind, f"keep.{name}")
