"""Colors of maps: perceptually uniform steps from the background, color-blind safe and legible in both themes.

Blue means for the class, orange against it, and teal an unsigned amount. At the same distance from zero, blue and
orange have the same lightness. The theme's text color is legible on every step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Literal, Protocol, runtime_checkable

from components.lazy import st
from components.numbers import plain
from components.widgets.view_options import ViewOptions

STEPS = 20
"""Number of color steps between zero and the largest score, on each side."""

Theme = Literal["light", "dark"]
Side = Literal["for", "against", "amount"]
SIDES: tuple[Side, ...] = ("for", "against", "amount")
THEMES: tuple[Theme, ...] = ("light", "dark")
RGB = tuple[float, float, float]


@dataclass(frozen=True)
class Palette:
    """Colors of a theme, and the OKLCH lightness and chroma of the ends of its scales, which differ in hue only."""

    ground: str
    text: str
    muted: str
    special: str
    line: str
    link: str
    lightness: float
    chroma: float


# Hues in degrees: Okabe and Ito's blue, their vermilion moved toward orange, and a teal between their blue and green.
HUES: dict[Side, float] = {"for": 248.0, "against": 56.0, "amount": 182.0}
PALETTES: dict[Theme, Palette] = {
    "light": Palette("#fcfcfb", "#1b222b", "#596370", "#e9ecef", "#d9dee4", "#1a5a94", 0.66, 0.14),
    "dark": Palette("#14181d", "#e4e8ed", "#a2acb8", "#2a313a", "#343d47", "#7dbbee", 0.50, 0.12),
}
CHART_COLORS: dict[Theme, tuple[str, ...]] = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b8a800", "#6a7079"),
    "dark": ("#3c8fc4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#b6bdc6"),
}
"""Okabe and Ito's eight colors for lines, bars and points, with black and yellow adapted to each background: blue,
vermilion, green, purple, orange, sky blue, yellow, and the gray of chance."""


def color(theme: Theme, side: Side, step: int) -> str:
    """Return the background color of a step from 0 (the ground) to `STEPS` (the largest score), as #rrggbb."""
    palette = PALETTES[theme]
    ground, share = _to_oklab(_parse(palette.ground)), step / STEPS
    end = _end(palette, side)
    lightness, a, b = (low + share * (high - low) for low, high in zip(ground, end, strict=True))
    return _format(_from_oklab((lightness, a, b)))


def translucent_color(theme: Theme, side: Side, step: int) -> tuple[int, int, int, int]:
    """Return red, green, blue and alpha (0 to 255) that give `color` over the ground; smaller steps are less opaque."""
    alpha = round(255 * step / STEPS)
    if not alpha:
        return 0, 0, 0, 0
    ground = _parse(PALETTES[theme].ground)
    red, green, blue = (
        round(255 * min(1, max(0, below + (255 / alpha) * (shown - below))))
        for shown, below in zip(_parse(color(theme, side, step)), ground, strict=True)
    )
    return red, green, blue, alpha


def step_of(score: float, largest: float, gamma: float = 1.0) -> int:
    """Return the step of a score on a scale up to `largest`: its share to the power gamma. The sign is ignored."""
    if largest <= 0:
        return 0
    return round(STEPS * min(1.0, abs(score) / largest) ** gamma)


def oklch_color(lightness: float, chroma: float, hue: float) -> str:
    """Return an OKLCH color as #rrggbb, with the chroma limited to what a screen can show; the hue is in degrees."""
    return _format(_from_oklab(_displayable(lightness, chroma, hue)))


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted(_luminance(_parse(c)) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def lightness(color: str) -> float:
    """Return the perceived lightness, from 0 to 1 (the L of OKLab)."""
    return _to_oklab(_parse(color))[0]


def browser_theme() -> Theme:
    """Return the theme of the page in the browser; light until the browser has sent it."""
    return "dark" if st.context.theme.type == "dark" else "light"


@runtime_checkable
class ScaledMap(Protocol):
    """A map with a scale."""

    @property
    def scale(self) -> float:
        """The score at the end of the scale."""

    @property
    def look(self) -> ViewOptions:
        """The view options of the map."""

    @property
    def sharing(self) -> str:
        """Description of the maps that share the scale; empty for a scale of its own."""


def gamma_note(view: ScaledMap) -> str:
    """Return a note on the score at half the color; empty if that is half the scale."""
    if view.look.gamma == 1:
        return ""
    half = view.scale * 0.5 ** (1 / view.look.gamma)
    return f" · gamma {plain(view.look.gamma)}: half the color at {plain(half)}"


def sharing_note(view: ScaledMap) -> str:
    """Return a note on the maps that share this scale, escaped; empty if maps do not share scales."""
    if not view.look.shared:
        return ""
    return (
        f" · scale shared by the {escape(view.sharing)}" if view.sharing else " · own scale: no other map has its unit"
    )


def _end(palette: Palette, side: Side) -> RGB:
    """The end of a scale in OKLab."""
    return _displayable(palette.lightness, palette.chroma, HUES[side])


def _displayable(lightness: float, chroma: float, hue: float) -> RGB:
    """Return an OKLCH color in OKLab, with the chroma reduced until a screen can show it; the hue is in degrees."""
    angle = math.radians(hue)
    while True:
        point = (lightness, chroma * math.cos(angle), chroma * math.sin(angle))
        if all(-1e-4 <= channel <= 1 + 1e-4 for channel in _from_oklab(point)):
            return point
        chroma -= 0.002


def _parse(color: str) -> RGB:
    red, green, blue = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _format(rgb: RGB) -> str:
    return "#" + "".join(f"{round(255 * min(1, max(0, channel))):02x}" for channel in rgb)


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def _gamma(channel: float) -> float:
    return 12.92 * channel if channel <= 0.0031308 else 1.055 * channel ** (1 / 2.4) - 0.055


def _luminance(rgb: RGB) -> float:
    red, green, blue = map(_linear, rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# The matrices of OKLab (Ottosson, 2020), sRGB to and from it.
def _to_oklab(rgb: RGB) -> RGB:
    r, g, b = map(_linear, rgb)
    long = math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
    medium = math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
    short = math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _from_oklab(lab: RGB) -> RGB:
    lightness, a, b = lab
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    red, green, blue = (_gamma(channel) if channel > 0 else channel for channel in linear)
    return red, green, blue
