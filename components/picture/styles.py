"""The style sheet of the cards of a picture: layout, the layers of a map, and lines that are seen on any picture."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from components.compact import compact_css

LAYOUT = Path(__file__).resolve().parent.parent / "assets" / "picture_cards.css"
CARDS = ".st-key-picture_cards"
"""Around the cards that light each other: the key of their container on the Images page."""


def use_picture_styles() -> None:
    """Puts the style sheet into the page; it takes no room. Colours come with `styles.use_styles`."""
    st.html(picture_sheet())


@cache
def picture_sheet() -> str:
    return f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>"
