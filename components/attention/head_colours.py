"""A colour for each head of a layer, the same in both themes' order: badge, border, title and lines have it.

No 16 colours are told apart by everyone, so that the head's number is always written beside its colour.
"""

from __future__ import annotations

import streamlit as st

from components.palette import THEMES, Theme, hued

LIGHTNESS: dict[Theme, tuple[float, float, float]] = {"light": (0.42, 0.56, 0.68), "dark": (0.60, 0.72, 0.86)}
CHROMA: dict[Theme, float] = {"light": 0.15, "dark": 0.13}
# Hue in degrees and place among the lightnesses. Found by a search for the largest of the smallest distances between
# the first twelve, as people with and without red and green cones see them (Machado et al., 2009).
PLACES = (
    (144, 1), (280, 0), (296, 2), (168, 0), (328, 1), (144, 2), (256, 1), (88, 2),
    (328, 0), (176, 1), (120, 0), (176, 2), (64, 1), (152, 0), (160, 1), (160, 2),
)  # fmt: skip


def head_colour(theme: Theme, head: int) -> str:
    """As #rrggbb; from the 17th head on they come again."""
    hue, level = PLACES[head % len(PLACES)]
    return hued(LIGHTNESS[theme][level], CHROMA[theme], float(hue))


def head_colour_rules() -> str:
    """The colours as variables --xg-head-0 and so on, of whichever theme the page is in."""
    both = ((head, *(head_colour(theme, head) for theme in THEMES)) for head in range(len(PLACES)))
    return f".xg{{{';'.join(f'--xg-head-{head}:light-dark({light},{dark})' for head, light, dark in both)}}}"


def use_head_colours() -> None:
    """Puts the colours into the page; it takes no room."""
    st.html(f"<style>{head_colour_rules()}</style>")
