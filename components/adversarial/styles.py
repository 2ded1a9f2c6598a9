"""The style sheet of before and after; colours come with `styles.use_styles`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from components.compact import compact_css
from components.widgets.patch_map.picture import use_picture_styles

LAYOUT = Path(__file__).resolve().parent.parent / "assets" / "adversarial.css"


def use_adversarial_styles() -> None:
    """Puts the style sheets into the page; they take no room."""
    use_picture_styles()
    st.html(adversarial_sheet())


@cache
def adversarial_sheet() -> str:
    return f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>"
