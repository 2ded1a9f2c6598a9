"""The Text page's last part: the maps and their numbers as files, and how to cite and repeat them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from components.citing import cite_html
from components.keeping import cite_box, file_button, how_to_repeat_text, text_button
from components.method_row import MethodRow
from components.png_button import png_button
from components.text.export import Kept, command, csv_table, html, json_list, svg
from components.text.state import TextState
from engine.registry import Explainer
from engine.result import Explanation

Builder = Callable[[Kept], str | bytes]
FILES: tuple[tuple[str, str, str, Builder, str], ...] = (
    ("HTML", "exegesis-maps.html", "text/html", html, "The maps as one page that needs no network and runs no script."),
    ("SVG", "exegesis-maps.svg", "image/svg+xml", svg, "The maps as a picture for papers and slides."),
    ("CSV", "exegesis-scores.csv", "text/csv", csv_table, "A row a token, a column a method. Scores in full."),
    ("JSON", "exegesis-scores.json", "application/json", json_list, "What the command below prints."),
)
PNG_FILE = "exegesis-maps.png"
PNG_HELP = "The same picture in pixels, light, drawn by this browser."


def keep_area(
    state: TextState, methods: Mapping[str, Explainer], made: Mapping[str, Explanation], above: Sequence[MethodRow] = ()
) -> None:
    """Files to download and how to cite. A file is built when its button is pressed, not before."""
    if not made:
        return
    shown = tuple((methods[id], made[id]) for id in made)
    kept = Kept(state.example, state.unit, shown, tuple(above), state.look, state.pins)
    st.subheader("Keep", anchor=False)
    with st.container(horizontal=True, gap="small", key="text_keep"):
        for label, name, kind, build, help in FILES:
            _button(label, name, kind, build, help, kept)
        text_button(state.example, "text_keep_Text")
        # Last: its element is as wide as the rest of the line.
        png_button("PNG", PNG_FILE, partial(svg, kept, dark=False), PNG_HELP, key="text_keep_PNG")
    cite_box(cite_html(shown), [(how_to_repeat_text(state.example), command(kept))], "text_cite")


def _button(label: str, name: str, kind: str, build: Builder, help: str, kept: Kept) -> None:
    file_button(label, name, kind, lambda: build(kept), help, f"text_keep_{label}")
