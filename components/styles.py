"""Style sheets of everything that we draw as HTML."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

from components.lazy import st
from components.palette import PALETTES, SIDES, STEPS, THEMES, Side, Theme, color

ASSETS = Path(__file__).resolve().parent / "assets"
ThemeChoice = Theme | Literal["auto"]
FLOATING = ":is([data-testid=stDialog],[data-testid=stPopoverBody])"
STACK = ".st-key-text_rows"
"""Around the maps that light each other: the key of their container on the Text page."""
DIGITS = 32
"""Positions up to DIGITS x DIGITS have a class for each digit, by which hovering finds the same unit in every map."""
SYMBOLS = "0123456789abcdefghijklmnopqrstuv"
"""The low digit as the browser spells numbers of base DIGITS."""
TONES: dict[Side, str] = {"for": "f", "against": "a", "amount": "m"}
"""The classes of steps of color begin so."""
_STEPS = {f"{TONES[side]}{step}": (side, step) for side in SIDES for step in range(1, STEPS + 1)}
_SECTION = re.compile(r"/\* sheet (\w+) \*/")


@cache
def asset_sheet(sheet: str | Path) -> str:
    """The style sheet of that path, or the section of that name in assets/pages.css."""
    if isinstance(sheet, Path):
        return sheet.read_text(encoding="utf-8")
    sections = _SECTION.split((ASSETS / "pages.css").read_text(encoding="utf-8"))
    return sections[sections.index(sheet) + 1]


def use_sheet(sheet: str | Path) -> None:
    """Put a style sheet into the page, named as in `asset_sheet`; it takes no room. Colors come with `use_styles`."""
    st.html(f"<style>{asset_sheet(sheet)}</style>")


def use_styles() -> None:
    """Put the style sheet of everything that we draw into the page; it takes no room.

    Dialogs and popovers lie outside of the element to which Streamlit gives the color scheme of its theme.
    """
    theme = st.context.theme.type
    floating = f"<style>{FLOATING}{{color-scheme:{theme}}}</style>" if theme in THEMES else ""
    st.html(stylesheet("auto") + floating)


@cache
def stylesheet(theme: ThemeChoice = "auto") -> str:
    """A `<style>` element: layout and colors of one theme, or of whichever `color-scheme` the page is in.

    The dashboard uses "auto": the browser tells the server its theme too late for the first page.
    """
    sheets = [_theme_colors(name) for name in THEMES] if theme == "auto" else [_theme_colors(theme)]
    merged = {
        name: value if theme != "auto" else f"light-dark({','.join(sheet[name] for sheet in sheets)})"
        for name, value in sheets[0].items()
    }
    names = "".join(f"--xg-{name}:{value};" for name, value in merged.items() if name not in _STEPS)
    steps = "".join(f".xg .{name}{{background-color:{merged[name]}}}" for name in _STEPS)
    return f"<style>.xg{{{names}}}{steps}{asset_sheet(ASSETS / 'maps.css')}{same_unit_rules()}</style>"


def place_classes(position: int) -> tuple[str, str]:
    """The two digits of a unit's position as classes; nothing beyond DIGITS x DIGITS units."""
    high, low = divmod(position, DIGITS)
    return (f"xi{high}", f"j{SYMBOLS[low]}") if high < DIGITS else ("", "")


def unit_selector(position: int) -> str:
    """The CSS selector of a unit in every map, whatever the layout; it matches nothing beyond DIGITS x DIGITS."""
    high, low = place_classes(position)
    return f":is(.{high} .{low}, .{high}.{low})" if high else ":not(*)"


def same_unit_rules() -> str:
    """Hovering a unit of one map outlines the same unit of every map on the page.

    A unit carries its position as two digits (`place_classes`). Each digit of the hovered unit raises
    a flag on the units that share it; the outline is as wide as their product: 2 x DIGITS rules for any text.
    """
    highs, lows = zip(*(place_classes(digit * (DIGITS + 1)) for digit in range(DIGITS)), strict=True)
    named = [("xi", name) for name in highs] + [("xj", name) for name in lows]
    rules = "".join(f"&:has(.{name}:hover) .{name}{{--{flag}:1}}" for flag, name in named)
    return f"{STACK}{{{rules}}}"


def _theme_colors(theme: Theme) -> dict[str, str]:
    palette = PALETTES[theme]
    named = {name: getattr(palette, name) for name in ("ground", "text", "muted", "special", "line", "link")}
    ends = {f"{side}-end": color(theme, side, STEPS) for side in SIDES}
    return named | ends | {name: color(theme, *place) for name, place in _STEPS.items()}
