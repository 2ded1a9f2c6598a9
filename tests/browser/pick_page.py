"""A page of two maps and the strip that pins their tokens; it writes what Python holds."""

from __future__ import annotations

import time

import numpy as np
import streamlit as st

from components.styles import use_styles
from components.widgets.base import Pins, draw_pin_hint
from components.widgets.token_map import TokenMap, draw_token_picker, token_map_html
from engine.request import Example
from engine.word_units import units
from tests.unit.components.making import encoded

TEXTS = {
    "short": "the <b>actors</b> are warm &amp; funny",
    "other": "a dull film",
    "right to left": "הסרט הזה היה נפלא",
    "long": "word " * 510,
}


def keep(pins: Pins) -> None:
    st.session_state.pins = pins


def forget() -> None:
    st.session_state.pins = ()


use_styles()
kept: Pins = st.session_state.setdefault("pins", (2,) if "pin" in st.query_params else ())
st.session_state.runs = st.session_state.get("runs", 0) + 1
text = st.radio("Text", list(TEXTS), key="text", on_change=forget, horizontal=True)
kind = st.radio("Unit", ("token", "word"), key="unit", horizontal=True)
st.button("Pin the fourth token", on_click=lambda: st.session_state.update(pins=(4,)))
st.button("Run again")
slowly = st.button("Run slowly")
example = Example(TEXTS[text])
tokens = encoded(example)
scores = np.where([token.special for token in tokens], 0.0, np.linspace(-1, 1, len(tokens)))
drawn = units(tokens, scores, example, kind)
draw_token_picker(drawn, kept, "pick", keep)
with st.container(gap=None, key="text_rows"):
    for name, sign in (("first", 1.0), ("second", -1.0)):
        view = TokenMap(units(tokens, sign * scores, example, kind), (example.text,), True, "good")
        st.html(f'<div class="xg" id="{name}">{token_map_html(view)}</div>')
draw_pin_hint(kind)
if slowly:
    st.text("Still running")
    progress = st.progress(0.0)
    for step in range(100):  # as often as pages that compute
        time.sleep(0.2)
        progress.progress(step / 100)
st.text(f"Python holds {','.join(map(str, kept)) or 'nothing'} after {st.session_state.runs} runs")
