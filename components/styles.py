"""Style sheets of all HTML that the dashboard draws."""

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
"""Selector of the container on the Text page whose maps highlight the same unit together."""
DIGITS = 32
"""Base of position classes. Positions below DIGITS x DIGITS have a class per digit, so that hovering finds the same
unit in every map."""
SYMBOLS = "0123456789abcdefghijklmnopqrstuv"
"""Low digits as the browser spells numbers of base DIGITS."""
TONES: dict[Side, str] = {"for": "f", "against": "a", "amount": "m"}
"""Prefixes of the classes of color steps."""
_STEPS = {f"{TONES[side]}{step}": (side, step) for side in SIDES for step in range(1, STEPS + 1)}
_SECTION = re.compile(r"/\* sheet (\w+) \*/")


@cache
def asset_sheet(sheet: str | Path) -> str:
    """Return the style sheet at a path, or the section of that name in assets/pages.css."""
    if isinstance(sheet, Path):
        return sheet.read_text(encoding="utf-8")
    sections = _SECTION.split((ASSETS / "pages.css").read_text(encoding="utf-8"))
    return sections[sections.index(sheet) + 1]


def use_sheet(sheet: str | Path) -> None:
    """Add a style sheet to the page, named as in `asset_sheet`; it takes no space. Colors come with `use_styles`."""
    st.html(f"<style>{asset_sheet(sheet)}</style>")


def use_styles() -> None:
    """Add the style sheet of all HTML to the page; it takes no space.

    Dialogs and popovers get the color scheme here, because they lie outside the element to which Streamlit gives it.
    """
    theme = st.context.theme.type
    floating = f"<style>{FLOATING}{{color-scheme:{theme}}}</style>" if theme in THEMES else ""
    st.html(stylesheet("auto") + floating)


@cache
def stylesheet(theme: ThemeChoice = "auto") -> str:
    """Return a `<style>` element: layout and colors of one theme, or with "auto" of the page's `color-scheme`.

    The dashboard uses "auto", because the browser tells the server its theme too late for the first page.
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
    """Return the two digits of a unit's position as classes; empty strings beyond DIGITS x DIGITS units."""
    high, low = divmod(position, DIGITS)
    return (f"xi{high}", f"j{SYMBOLS[low]}") if high < DIGITS else ("", "")


def unit_selector(position: int) -> str:
    """Return the CSS selector of a unit in every map and layout; it matches nothing beyond DIGITS x DIGITS."""
    high, low = place_classes(position)
    return f":is(.{high} .{low}, .{high}.{low})" if high else ":not(*)"


def same_unit_rules() -> str:
    """Return CSS rules by which hovering a unit of one map outlines the same unit of every map in `STACK`.

    A unit carries its position as two digits (`place_classes`). Each digit of the hovered unit raises a flag on the
    units that share it; the width of the outline is the product of the flags. This takes 2 x DIGITS rules for any text.
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
