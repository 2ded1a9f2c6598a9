"""A page of the board alone; it writes what Python holds.

In its address: `n` explanations, `pictures` for maps of pictures, `long` for long texts, `fail` to fail the first
time it saves, `until` a file to save once that is there.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import streamlit as st

from components.styles import use_styles
from components.widgets.patch_map import PatchMap, patches_html, picture_style, use_picture_styles
from components.widgets.ranking import PLACES, ConfirmedRanking, draw_ranking_board, forget_ranking
from components.widgets.token_map import TokenMap, token_map_html
from engine.errors import UsageError
from engine.request import Example
from engine.word_units import units
from tests.unit.components.making import encoded

TEXT = "the <b>actors</b> are warm &amp; funny, but the story is thin"


def seen() -> np.ndarray:
    """A picture of a sky over a sea."""
    rows, columns = np.mgrid[:64, :64] / 64
    return (255 * np.stack([0.8 - 0.6 * rows, 0.7 - 0.3 * rows, 0.6 + 0.3 * columns], axis=2)).astype(np.uint8)


def text_map(number: int, text: str) -> str:
    example = Example(text)
    tokens = encoded(example)
    scores = np.random.default_rng(number).normal(size=len(tokens))
    scores[[token.special for token in tokens]] = 0
    return token_map_html(TokenMap(units(tokens, scores, example, "token"), (text,), True, "good"))


def picture_map(number: int) -> str:
    scores = np.random.default_rng(number).normal(size=(8, 8))
    return patches_html(f"Explanation {PLACES[number]}", PatchMap(scores, True, "sun"))


def explanations() -> list[str]:
    asked = st.query_params
    count, text = int(asked.get("n", 3)), TEXT * (20 if "long" in asked else 1)
    return [picture_map(number) if "pictures" in asked else text_map(number, text) for number in range(count)]


def save(ranked: ConfirmedRanking) -> None:
    st.session_state.saves = st.session_state.get("saves", 0) + 1
    while (file := st.query_params.get("until")) and not Path(file).exists():
        time.sleep(0.02)
    if "fail" in st.query_params and st.session_state.saves == 1:
        raise UsageError("study: it is <b>closed</b>.")
    st.session_state.tokens = [*st.session_state.get("tokens", []), ranked.token]


if "pictures" in st.query_params:
    st.set_page_config(layout="wide")
use_styles()
use_picture_styles()
st.html(picture_style(seen()))
st.session_state.runs = st.session_state.get("runs", 0) + 1
again, forgets = st.columns(2)
again.button("Run again")
forgets.button("Forget", on_click=forget_ranking, args=("board",))
ranked = draw_ranking_board(explanations(), "board", save, "pictures" in st.query_params)
ranks = "nothing" if ranked is None else ",".join(map(str, ranked.ranks)) if ranked.ranks else "cannot tell"
tokens = len(set(st.session_state.get("tokens", [])))
st.text(f"Python holds {ranks}, turn {ranked.turn if ranked else 0}, tokens {tokens}")
st.text(f"Run {st.session_state.runs}")
