"""The style sheet of the answers about one text: the prediction without tokens, an edited text beside its parent."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from components.compact import compact_css

LAYOUT = Path(__file__).resolve().parent / "assets" / "questions.css"


def use_question_styles() -> None:
    """Puts the style sheet into the page; it takes no room. Colours come with `styles.use_styles`."""
    st.html(_sheet())


@cache
def _sheet() -> str:
    return f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>"
