"""The Images page's last part: the maps and their numbers as files, and how to cite and repeat them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from components.citing import cite_html
from components.keeping import cite_box, file_button, how_to_repeat_picture, picture_button
from components.picture.export import KeptPicture, command, csv_table, json_list, png
from components.picture.results import Truth
from components.picture.state import PictureState
from engine.registry import Explainer
from engine.result import Explanation

Builder = Callable[[KeptPicture], str | bytes]
FILES: tuple[tuple[str, str, str, Builder, str], ...] = (
    ("PNG", "exegesis-maps.png", "image/png", png, "The picture and its maps side by side, light, with references."),
    ("CSV", "exegesis-patches.csv", "text/csv", csv_table, "A row a patch a method: place, score, rank, truth."),
    ("JSON", "exegesis-patches.json", "application/json", json_list, "What the command below prints."),
)


def keep_area(
    state: PictureState, methods: Mapping[str, Explainer], made: Mapping[str, Explanation], truth: Truth
) -> None:
    """Files to download and how to cite. A file is built when its button is pressed, not before."""
    if not made:
        return
    shown = tuple((methods[id], made[id]) for id in made)
    kept = KeptPicture(state.focus, shown, truth, state.pins, state.look, state.seed)
    st.subheader("Keep", anchor=False)
    with st.container(horizontal=True, gap="small", key="picture_keep"):
        for label, name, kind, build, help in FILES:
            _button(label, name, kind, build, help, kept)
        picture_button(state.focus, "picture_keep_Picture")
    cite_box(cite_html(shown), [(how_to_repeat_picture(state.focus), command(kept))], "picture_cite")


def _button(label: str, name: str, kind: str, build: Builder, help: str, kept: KeptPicture) -> None:
    file_button(label, name, kind, lambda: build(kept), help, f"picture_keep_{label}")
