"""The ten things of generated scenes, their colors, and the pen that draws them on a picture and its mask.

Each thing is drawn in coordinates from -1 to 1, y downwards, in one main color.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from PIL import Image, ImageDraw

Number = int | float
Point = tuple[Number, Number]
Color = tuple[int, int, int]
CIRCLE_CORNERS = 40
"""Number of corners of the polygon that approximates an ellipse."""


@dataclass(frozen=True)
class Placement:
    """Position, size and rotation of a thing, in pixels of the canvas. Its own coordinates range from -1 to 1."""

    x: Number
    y: Number
    half: Number
    stretch: Number = 1.0
    turn: Number = 0.0
    mirrored: bool = False

    def at(self, point: Point) -> Point:
        """Map a point of the thing to the canvas; `turn` is in radians, clockwise."""
        across = point[0] * self.half * (-1 if self.mirrored else 1)
        down = point[1] * self.half * self.stretch
        cos, sin = math.cos(self.turn), math.sin(self.turn)
        return self.x + across * cos - down * sin, self.y + across * sin + down * cos


class Pen:
    """A pen that draws on `canvas` (RGB) and marks the same pixels in `mask` (L). `edge`: the color of outlines."""

    def __init__(self, canvas: Image.Image, mask: Image.Image, place: Placement, edge: Color) -> None:
        self._canvas, self._mask = ImageDraw.Draw(canvas), ImageDraw.Draw(mask)
        self._place, self._edge = place, edge
        self._line = max(1, round(place.half * 0.05))

    def polygon(self, points: Sequence[Point], color: Color, outline: bool = True) -> None:
        """Draw a filled polygon with an outline centered on its edge."""
        corners = self._corners(points)
        self._mask.polygon(corners, fill=255)
        self._canvas.polygon(corners, fill=color)
        if outline:
            self._stroke([*corners, corners[0], corners[1]], self._line, self._edge)

    def ellipse(self, x: Number, y: Number, across: Number, down: Number, color: Color, outline: bool = True) -> None:
        """Draw a filled ellipse, given its center and half axes."""
        self.polygon(arc(x, y, across, down, 0, 360), color, outline)

    def line(self, points: Sequence[Point], width: Number, color: Color | None = None) -> None:
        """Draw a line with round joints; `width` is in the thing's units."""
        self._stroke(self._corners(points), max(1, round(width * self._place.half)), color or self._edge)

    def _corners(self, points: Sequence[Point]) -> list[tuple[int, int]]:
        # Rounded to pixels, so that the drawing does not depend on the last digit of a sine.
        return [(round(x), round(y)) for x, y in map(self._place.at, points)]

    def _stroke(self, corners: Sequence[tuple[int, int]], width: int, color: Color) -> None:
        for draw, fill in ((self._mask, 255), (self._canvas, color)):
            draw.line(list(corners), fill=fill, width=width, joint="curve")


def arc(x: Number, y: Number, across: Number, down: Number, start: Number, end: Number) -> list[Point]:
    """Return points on an ellipse from `start` to `end`, in degrees clockwise from the right."""
    steps = max(2, round(CIRCLE_CORNERS * abs(end - start) / 360))
    angles = [math.radians(start + (end - start) * i / steps) for i in range(steps + 1)]
    return [(x + across * math.cos(angle), y + down * math.sin(angle)) for angle in angles]


def curve(start: Point, pull: Point, end: Point, steps: int = 10) -> list[Point]:
    """Return points on a quadratic Bézier curve; `pull` is its control point."""
    shares = [i / steps for i in range(steps + 1)]
    return [
        (
            (1 - t) ** 2 * start[0] + 2 * t * (1 - t) * pull[0] + t**2 * end[0],
            (1 - t) ** 2 * start[1] + 2 * t * (1 - t) * pull[1] + t**2 * end[1],
        )
        for t in shares
    ]


def box(x0: Number, y0: Number, x1: Number, y1: Number) -> list[Point]:
    """Return the corners of an upright rectangle."""
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


WHITE: Color = (245, 245, 240)
BLACK: Color = (28, 26, 30)
GLASS: Color = (178, 214, 232)
WOOD: Color = (120, 78, 44)
YELLOW: Color = (250, 205, 60)
PINK: Color = (238, 150, 160)
LEAST_DISTANCE = 90
"""Minimum distance between a thing's color and the mean of its background, in RGB levels."""


def draw_color(rng: Random) -> Color:
    """Draw a saturated color of random hue."""
    return _from_hsv(rng.random(), 0.55 + 0.4 * rng.random(), 0.5 + 0.45 * rng.random())


def draw_distinct_color(rng: Random, background: Color) -> Color:
    """Draw a saturated color that contrasts with the background."""
    tries = [draw_color(rng) for _ in range(12)]
    far = [color for color in tries if color_distance(color, background) >= LEAST_DISTANCE]
    return far[0] if far else max(tries, key=lambda color: color_distance(color, background))


def vary_color(color: Color, rng: Random, spread: int = 18) -> Color:
    """Add a little noise to a color."""
    return _clip(*(level + rng.randint(-spread, spread) for level in color))


def shade(color: Color, factor: int | float) -> Color:
    """Darken a color by a factor below 1, lighten it by one above 1."""
    if factor <= 1:
        return _clip(*(round(level * factor) for level in color))
    return _clip(*(round(255 - (255 - level) / factor) for level in color))


def color_distance(a: Color, b: Color) -> float:
    """Return the Euclidean distance of two colors, in RGB levels."""
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5


def _from_hsv(hue: float, saturation: float, value: float) -> Color:
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, value)
    return _clip(round(red * 255), round(green * 255), round(blue * 255))


def _clip(red: int, green: int, blue: int) -> Color:
    return max(0, min(255, red)), max(0, min(255, green)), max(0, min(255, blue))


def draw_fish(pen: Pen, main: Color, rng: Random) -> None:
    fin = shade(main, 0.75)
    pen.polygon([(-0.4, 0), *curve((-0.95, -0.55), (-0.75, 0), (-0.95, 0.55))], fin)
    pen.polygon([*curve((-0.25, -0.3), (0.1, -0.95), (0.4, -0.3))], fin)
    pen.polygon([*curve((-0.1, 0.3), (0.0, 0.8), (0.25, 0.3))], fin)
    pen.polygon([*curve((-0.6, 0), (0.15, -0.9), (0.95, 0), 16), *curve((0.95, 0), (0.15, 0.9), (-0.6, 0), 16)], main)
    if rng.random() < 0.5:
        for x in (-0.2, 0.05):
            pen.line(curve((x, -0.32), (x + 0.12, 0), (x, 0.32)), 0.07, shade(main, 1.8))
    pen.line(curve((0.42, -0.3), (0.28, 0), (0.42, 0.3)), 0.06)
    pen.ellipse(0.62, -0.12, 0.12, 0.12, WHITE)
    pen.ellipse(0.65, -0.12, 0.055, 0.055, BLACK, outline=False)


def draw_car(pen: Pen, main: Color, rng: Random) -> None:
    pen.polygon(
        [*curve((-0.62, -0.02), (-0.5, -0.5), (-0.25, -0.5)), *curve((0.2, -0.5), (0.4, -0.5), (0.62, 0))], main
    )
    pen.polygon([(-0.48, -0.03), (-0.36, -0.38), (-0.06, -0.38), (-0.06, -0.03)], GLASS)
    pen.polygon([(0.04, -0.03), (0.04, -0.38), (0.22, -0.38), (0.46, -0.03)], GLASS)
    pen.polygon([*curve((-0.98, 0.4), (-1.0, -0.02), (-0.75, -0.04)), *curve((0.7, 0), (1.0, 0.02), (0.98, 0.4))], main)
    pen.ellipse(0.88, 0.14, 0.08, 0.08, YELLOW, outline=False)
    pen.polygon(box(-0.97, 0.06, -0.85, 0.2), (200, 40, 40), outline=False)
    for x in (-0.52, 0.52):
        pen.ellipse(x, 0.4, 0.25, 0.25, BLACK)
        pen.ellipse(x, 0.4, 0.11, 0.11, (190, 190, 195), outline=False)


def draw_house(pen: Pen, main: Color, rng: Random) -> None:
    roof, door = vary_color((165, 62, 48), rng, 40), vary_color(WOOD, rng)
    pen.polygon(box(0.32, -0.85, 0.52, -0.3), shade(roof, 0.8))
    pen.polygon(box(-0.68, -0.15, 0.68, 0.85), shade(main, 1.6))
    pen.polygon([(-0.92, -0.1), (0, -0.92), (0.92, -0.1)], roof)
    pen.polygon(box(-0.16, 0.3, 0.16, 0.85), door)
    for x in (-0.42, 0.42):
        pen.polygon(box(x - 0.15, 0.1, x + 0.15, 0.4), GLASS)
        pen.line([(x, 0.1), (x, 0.4)], 0.04)
        pen.line([(x - 0.15, 0.25), (x + 0.15, 0.25)], 0.04)


def draw_tree(pen: Pen, main: Color, rng: Random) -> None:
    leaf = vary_color(rng.choice([(52, 128, 52), (86, 150, 50), (40, 105, 70), (205, 120, 35)]), rng, 22)
    pen.polygon([(-0.13, 0.95), (-0.09, 0.1), (0.09, 0.1), (0.13, 0.95)], vary_color(WOOD, rng))
    if rng.random() < 0.4:
        for top, low, half in ((-0.1, 0.6, 0.62), (-0.55, 0.22, 0.5), (-0.95, -0.2, 0.36)):
            pen.polygon([(0, top - 0.02), (half, low), (-half, low)], leaf)
        return
    crowns = [(-0.38, -0.12, 0.38), (0.38, -0.12, 0.38), (-0.2, -0.5, 0.38), (0.22, -0.48, 0.4), (0, -0.1, 0.42)]
    for x, y, radius in crowns:
        pen.ellipse(x, y, radius, radius, leaf)
    for x, y, radius in crowns:
        pen.ellipse(x, y, radius * 0.9, radius * 0.9, leaf, outline=False)
    pen.ellipse(-0.22, -0.52, 0.16, 0.13, shade(leaf, 1.3), outline=False)


def draw_boat(pen: Pen, main: Color, rng: Random) -> None:
    sail = WHITE if rng.random() < 0.5 else shade(draw_color(rng), 2.2)
    pen.line([(0, 0.4), (0, -0.92)], 0.08, vary_color(WOOD, rng))
    pen.polygon([(0.08, -0.85), *curve((0.1, -0.5), (0.6, 0.0), (0.72, 0.28)), (0.08, 0.28)], sail)
    pen.polygon([(-0.08, -0.7), (-0.08, 0.28), (-0.6, 0.28)], shade(sail, 0.88))
    pen.polygon([(-0.92, 0.42), (0.92, 0.42), *curve((0.85, 0.5), (0.7, 0.85), (0.45, 0.88)), (-0.5, 0.88)], main)
    pen.line([(-0.85, 0.55), (0.8, 0.55)], 0.07, shade(main, 1.9))


def draw_cat(pen: Pen, main: Color, rng: Random) -> None:
    fur = vary_color(rng.choice([(70, 66, 70), (225, 140, 60), (235, 225, 210), (150, 140, 135), (120, 84, 58)]), rng)
    for side in (-1, 1):
        pen.polygon([(side * 0.72, -0.05), (side * 0.7, -0.95), (side * 0.12, -0.5)], fur)
        pen.polygon([(side * 0.6, -0.35), (side * 0.6, -0.72), (side * 0.32, -0.5)], PINK, outline=False)
    pen.ellipse(0, 0.12, 0.82, 0.68, fur)
    if rng.random() < 0.5:
        for x in (-0.16, 0, 0.16):
            pen.line([(x, -0.5), (x * 0.8, -0.26)], 0.07, shade(fur, 0.55))
    pen.ellipse(0, 0.42, 0.3, 0.22, shade(fur, 1.7), outline=False)
    eye = rng.choice([(150, 200, 60), (240, 200, 60), (110, 180, 220)])
    for side in (-1, 1):
        pen.ellipse(side * 0.34, 0.02, 0.19, 0.17, eye)
        pen.ellipse(side * 0.34, 0.02, 0.06, 0.16, BLACK, outline=False)
        for y in (0.34, 0.46):
            pen.line([(side * 0.3, 0.4 + (y - 0.4) * 0.4), (side * 0.98, y + (y - 0.4))], 0.035, WHITE)
    pen.polygon([(-0.1, 0.27), (0.1, 0.27), (0, 0.38)], PINK)
    pen.line([*curve((-0.18, 0.5), (-0.05, 0.58), (0, 0.4)), *curve((0, 0.4), (0.05, 0.58), (0.18, 0.5))], 0.045)


def draw_flower(pen: Pen, main: Color, rng: Random) -> None:
    green = vary_color((62, 140, 58), rng, 20)
    pen.line(curve((0, -0.2), (0.08, 0.4), (0, 0.97)), 0.1, green)
    for side, y in ((-1, 0.75), (1, 0.6)):
        end = (side * 0.5, y - 0.32)
        pen.polygon([*curve((0, y), (side * 0.1, y - 0.4), end), *curve(end, (side * 0.5, y), (0, y))], green)
    petals = rng.randint(5, 8)
    turn = rng.random() * 360
    for i in range(petals):
        angle = math.radians(turn + 360 * i / petals)
        x, y = 0.36 * math.cos(angle), -0.36 + 0.36 * math.sin(angle)
        pen.ellipse(x, y, 0.235, 0.235, main)
    pen.ellipse(0, -0.36, 0.22, 0.22, YELLOW if rng.random() < 0.7 else (110, 70, 40))


def draw_umbrella(pen: Pen, main: Color, rng: Random) -> None:
    other = main if rng.random() < 0.4 else shade(main, 1.9)
    pen.line([(0, -0.92), (0, 0.7), *arc(0.16, 0.72, 0.16, 0.2, 180, 20)], 0.08)
    edges = [-0.95, -0.48, 0.0, 0.48, 0.95]
    for i, (left, right) in enumerate(pairwise(edges)):
        rim = curve((right, 0.12), ((left + right) / 2, -0.1), (left, 0.12))
        rise = curve((left, 0.12), (left * 0.95, -0.62), (0, -0.8))
        fall = curve((0, -0.8), (right * 0.95, -0.62), (right, 0.12))
        pen.polygon([*rise, *fall, *rim], main if i % 2 else other)


def draw_mug(pen: Pen, main: Color, rng: Random) -> None:
    pen.line(arc(0.5, 0.12, 0.4, 0.36, -80, 80), 0.3)
    pen.line(arc(0.5, 0.12, 0.4, 0.36, -80, 80), 0.19, main)
    pen.polygon([(-0.72, -0.5), *arc(-0.08, 0.75, 0.58, 0.18, 180, 0), (0.56, -0.5)], main)
    if rng.random() < 0.5:
        stripe = shade(main, 1.9)
        pen.polygon([(-0.7, 0.0), *curve((-0.69, 0.22), (-0.08, 0.36), (0.53, 0.22)),
                     *curve((0.54, 0.0), (-0.08, 0.14), (-0.7, 0.0))], stripe, outline=False)  # fmt: skip
    pen.ellipse(-0.08, -0.5, 0.64, 0.17, shade(main, 1.4))
    pen.ellipse(-0.08, -0.48, 0.52, 0.11, (84, 52, 32), outline=False)
    if rng.random() < 0.5:
        for x in (-0.25, 0.1):
            steam = [
                *curve((x, -0.68), (x - 0.12, -0.78), (x, -0.84)),
                *curve((x, -0.84), (x + 0.12, -0.9), (x, -0.98)),
            ]
            pen.line(steam, 0.05, WHITE)


def draw_rocket(pen: Pen, main: Color, rng: Random) -> None:
    shell = shade(main, 2.4) if rng.random() < 0.6 else (225, 228, 232)
    pen.polygon([(-0.2, 0.5), *curve((-0.22, 0.6), (-0.1, 0.8), (0, 0.98)), (0.22, 0.6), (0.2, 0.5)], (245, 140, 40))
    pen.polygon([(-0.1, 0.52), (0, 0.78), (0.1, 0.52)], YELLOW, outline=False)
    for side in (-1, 1):
        pen.polygon([(side * 0.26, 0.05), *curve((side * 0.4, 0.15), (side * 0.62, 0.3), (side * 0.6, 0.68)),
                     (side * 0.22, 0.46)], main)  # fmt: skip
    hull = [*curve((-0.25, 0.5), (-0.48, -0.45), (0, -0.98), 16), *curve((0, -0.98), (0.48, -0.45), (0.25, 0.5), 16)]
    pen.polygon(hull, shell)
    pen.polygon([*curve((-0.215, -0.6), (-0.12, -0.86), (0, -0.98)), *curve((0, -0.98), (0.12, -0.86), (0.215, -0.6))],
                main)  # fmt: skip
    pen.ellipse(0, -0.2, 0.15, 0.15, GLASS)


THINGS: dict[str, Callable[[Pen, Color, Random], None]] = {
    "fish": draw_fish,
    "car": draw_car,
    "house": draw_house,
    "tree": draw_tree,
    "boat": draw_boat,
    "cat": draw_cat,
    "flower": draw_flower,
    "umbrella": draw_umbrella,
    "mug": draw_mug,
    "rocket": draw_rocket,
}
THING_NAMES = tuple(THINGS)
