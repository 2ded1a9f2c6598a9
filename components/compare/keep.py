"""The Compare page's last part: maps and matrix as files, and how to cite and repeat them."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from components.compare.compared import Compared
from components.compare.export import cite_html, command, comparison_json, html, matrix_csv, scores_csv
from components.compare.session import key
from components.inputs.picture_choice import PictureFocus
from components.keeping import (
    cite_box,
    file_button,
    how_to_repeat_picture,
    how_to_repeat_text,
    picture_button,
    text_button,
)
from engine.request import Example

Builder = Callable[[Compared], str | bytes]
FILES: tuple[tuple[str, str, str, Builder, str], ...] = (
    ("HTML", "exegesis-compare.html", "text/html", html, "Maps and matrix as one page that needs no network."),
    ("CSV", "exegesis-compare.csv", "text/csv", scores_csv, "A row a part, a column a map. Scores in full."),
    ("Matrix", "exegesis-agreement.csv", "text/csv", matrix_csv, "A row for every two maps, by both measures."),
    ("JSON", "exegesis-compare.json", "application/json", comparison_json, "What the command below prints."),
)


def keep_area(compared: Compared) -> None:
    """Files to download and how to cite. A file is built when its button is pressed, not before."""
    if not compared.there:
        return
    state = compared.state
    st.subheader("Keep", anchor=False)
    with st.container(horizontal=True, gap="small", key=key(state.kind, "keep")):
        for label, name, kind, build, help in FILES:
            _button(label, name, kind, build, help, compared)
        if isinstance(state.input, Example):
            text_button(state.input, key(state.kind, "keep_Text"))
        elif isinstance(state.focus, PictureFocus) and state.focus.own:
            picture_button(state.focus, key(state.kind, "keep_Picture"))
    if len(compared.columns) > 1:
        cite_box(cite_html(compared), [(_how(compared), command(compared))], f"compare_{state.kind}_cite")


def _button(label: str, name: str, kind: str, build: Builder, help: str, compared: Compared) -> None:
    file_button(label, name, kind, lambda: build(compared), help, key(compared.state.kind, f"keep_{label}"))


def _how(compared: Compared) -> str:
    state = compared.state
    if isinstance(state.focus, PictureFocus):
        return how_to_repeat_picture(state.focus)
    return how_to_repeat_text(state.focus.example)
