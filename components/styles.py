"""The one style sheet of everything that we draw as HTML."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import streamlit as st

from components.palette import PALETTES, SIDES, STEPS, THEMES, Theme, colour

LAYOUT = Path(__file__).resolve().parent / "assets" / "maps.css"
LINES: dict[Theme, str] = {"light": "#d9dee4", "dark": "#343d47"}


@functools.cache
def stylesheet(theme: Theme | Literal["auto"] = "auto") -> str:
    """A `<style>` element: layout and colours of one theme, or of whichever `color-scheme` the page is in.

    "auto" is what the dashboard uses: the browser tells the server its theme too late for the first page.
    """
    names = "".join(f"--xg-{name}:{value};" for name, value in _names(theme).items())
    steps = "".join(
        f".xg-{side}-{step}{{background:{_pick(theme, lambda t, s=side, k=step: colour(t, s, k))}}}"
        for side in SIDES
        for step in range(1, STEPS + 1)
    )
    return f"<style>.xg{{{names}}}{steps}{LAYOUT.read_text(encoding='utf-8')}</style>"


def _names(theme: Theme | Literal["auto"]) -> dict[str, str]:
    plain = {
        name: _pick(theme, lambda t, n=name: getattr(PALETTES[t], n)) for name in ("ground", "text", "muted", "special")
    }
    ends = {f"{side}-end": _pick(theme, lambda t, s=side: colour(t, s, STEPS)) for side in SIDES}
    return {**plain, **ends, "line": _pick(theme, LINES.__getitem__)}


def _pick(theme: Theme | Literal["auto"], value: Callable[[Theme], str]) -> str:
    if theme != "auto":
        return value(theme)
    return "light-dark({}, {})".format(*map(value, THEMES))


def use_styles() -> None:
    """Puts the style sheet into the page; it takes no room."""
    st.html(stylesheet("auto"))
