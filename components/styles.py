"""The one style sheet of everything that we draw as HTML."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import streamlit as st

from components.compact import compact_css
from components.palette import PALETTES, SIDES, STEPS, THEMES, Theme, colour
from components.widgets.token_map.html import DIGITS, STACK, TONES, place_classes

LAYOUT = Path(__file__).resolve().parent / "assets" / "maps.css"
Wanted = Theme | Literal["auto"]


@functools.cache
def stylesheet(theme: Wanted = "auto") -> str:
    """A `<style>` element: layout and colours of one theme, or of whichever `color-scheme` the page is in.

    "auto" is what the dashboard uses: the browser tells the server its theme too late for the first page.
    """
    sheets = [_colours(name) for name in THEMES] if theme == "auto" else [_colours(theme)]
    merged = {name: _either([sheet[name] for sheet in sheets]) for name in sheets[0]}
    names = "".join(f"--xg-{name}:{value};" for name, value in merged.items() if name not in _STEPS)
    steps = "".join(f".xg .{name}{{background-color:{merged[name]}}}" for name in _STEPS)
    layout = compact_css(LAYOUT.read_text(encoding="utf-8"))
    return f"<style>.xg{{{names}}}{steps}{layout}{same_unit_rules()}</style>"


def same_unit_rules() -> str:
    """Hovering a unit of one map outlines the same unit of every map on the page.

    A unit carries its position as two digits (`token_map.place_classes`). Each digit of the hovered unit raises
    a flag on the units that share it; the outline is as wide as their product: 2 x DIGITS rules for any text.
    """
    highs, lows = zip(*(place_classes(digit * (DIGITS + 1)) for digit in range(DIGITS)), strict=True)
    named = [("xi", name) for name in highs] + [("xj", name) for name in lows]
    rules = "".join(f"&:has(.{name}:hover) .{name}{{--{flag}:1}}" for flag, name in named)
    return f"{STACK}{{{rules}}}"


_STEPS = {f"{TONES[side]}{step}": (side, step) for side in SIDES for step in range(1, STEPS + 1)}


def _colours(theme: Theme) -> dict[str, str]:
    palette = PALETTES[theme]
    named = {name: getattr(palette, name) for name in ("ground", "text", "muted", "special", "line")}
    ends = {f"{side}-end": colour(theme, side, STEPS) for side in SIDES}
    return named | ends | {name: colour(theme, *place) for name, place in _STEPS.items()}


def _either(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"light-dark({','.join(values)})"


def use_styles() -> None:
    """Puts the style sheet into the page; it takes no room."""
    st.html(stylesheet("auto"))
