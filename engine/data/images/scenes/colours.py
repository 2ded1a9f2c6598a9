"""Colours of things: drawn by chance, told apart from what lies behind them."""

from __future__ import annotations

import colorsys
from random import Random

from engine.data.images.scenes.pen import Colour

WHITE: Colour = (245, 245, 240)
BLACK: Colour = (28, 26, 30)
GLASS: Colour = (178, 214, 232)
WOOD: Colour = (120, 78, 44)
YELLOW: Colour = (250, 205, 60)
PINK: Colour = (238, 150, 160)
APART = 90
"""Least distance between a thing's colour and the mean of its ground, in RGB levels."""


def drawn(chance: Random) -> Colour:
    """A clear colour of any hue."""
    return _from_hsv(chance.random(), 0.55 + 0.4 * chance.random(), 0.5 + 0.45 * chance.random())


def drawn_apart(chance: Random, ground: Colour) -> Colour:
    """A clear colour that stands out from the ground."""
    tries = [drawn(chance) for _ in range(12)]
    far = [colour for colour in tries if distance(colour, ground) >= APART]
    return far[0] if far else max(tries, key=lambda colour: distance(colour, ground))


def near(colour: Colour, chance: Random, spread: int = 18) -> Colour:
    """The colour, a little changed."""
    return _clipped(*(level + chance.randint(-spread, spread) for level in colour))


def shaded(colour: Colour, factor: int | float) -> Colour:
    """Darker below 1, lighter above."""
    if factor <= 1:
        return _clipped(*(round(level * factor) for level in colour))
    return _clipped(*(round(255 - (255 - level) / factor) for level in colour))


def distance(a: Colour, b: Colour) -> float:
    """Euclidean, in RGB levels."""
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5


def _from_hsv(hue: float, saturation: float, value: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, value)
    return _clipped(round(red * 255), round(green * 255), round(blue * 255))


def _clipped(red: int, green: int, blue: int) -> Colour:
    return max(0, min(255, red)), max(0, min(255, green)), max(0, min(255, blue))
