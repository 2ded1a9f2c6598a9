"""A button that saves a picture as PNG: the browser draws our SVG with its own fonts, nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import streamlit as st

from components.component_key import component_key

SCRIPT = Path(__file__).resolve().parent / "assets" / "png_button.js"
NAME = "exegesis_png_button"
SCALE = 2
"""Pixels of the file for each pixel of the picture."""
_CSS = """
button { font: inherit; font-size: 0.875rem; line-height: 1.6; padding: 0.25rem 0.75rem; min-height: 2.5rem;
  cursor: pointer; color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color);
  border-radius: var(--st-button-radius); white-space: nowrap; }
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); }
"""


def png_button(label: str, file: str, build: Callable[[], str], help: str, key: str) -> None:
    """The button. The picture, an SVG, is built and sent to the browser only once it is asked for."""

    @st.fragment
    def button() -> None:
        _draw(label, file, build, help, component_key(key))

    button()


def _draw(label: str, file: str, build: Callable[[], str], help: str, key: str) -> None:
    turn = st.session_state.get(_turn(key), 0)
    asked = st.session_state.pop(_asked(key), False)
    data = {"label": label, "help": help, "name": file, "scale": SCALE, "turn": turn, "svg": build() if asked else ""}
    _component()(key=key, data=data, on_asked_change=partial(_ask, key), width="content")


def _ask(key: str) -> None:
    st.session_state[_asked(key)] = True
    st.session_state[_turn(key)] = st.session_state.get(_turn(key), 0) + 1


def _asked(key: str) -> str:
    return f"{key}.asked"


def _turn(key: str) -> str:
    return f"{key}.turn"


@cache
def _component() -> Callable[..., object]:
    script = SCRIPT.read_text(encoding="utf-8")
    return st.components.v2.component(NAME, html='<button type="button"></button>', css=_CSS, js=script)
