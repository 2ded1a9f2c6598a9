"""Draws shapes of a thing, given in its own coordinates, on a picture and on the thing's mask at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

Number = int | float
Point = tuple[Number, Number]
Colour = tuple[int, int, int]
SMOOTH = 40
"""Corners of a full ellipse."""


@dataclass(frozen=True)
class Placement:
    """Where a thing is: its own coordinates run from -1 to 1, y downwards; the rest is in pixels of the canvas."""

    x: Number
    y: Number
    half: Number
    stretch: Number = 1.0
    turn: Number = 0.0
    mirrored: bool = False

    def at(self, point: Point) -> Point:
        """A point of the thing on the canvas; `turn` is in radians, clockwise as seen."""
        across = point[0] * self.half * (-1 if self.mirrored else 1)
        down = point[1] * self.half * self.stretch
        cos, sin = math.cos(self.turn), math.sin(self.turn)
        return self.x + across * cos - down * sin, self.y + across * sin + down * cos


class Pen:
    """Draws on `canvas` (RGB) and marks the same pixels in `mask` (L). `edge` is the colour of outlines."""

    def __init__(self, canvas: Image.Image, mask: Image.Image, place: Placement, edge: Colour) -> None:
        self._canvas, self._mask = ImageDraw.Draw(canvas), ImageDraw.Draw(mask)
        self._place, self._edge = place, edge
        self._line = max(1, round(place.half * 0.05))

    def polygon(self, points: Sequence[Point], colour: Colour, outline: bool = True) -> None:
        """A filled polygon; its outline lies half inside and half outside."""
        corners = self._corners(points)
        self._mask.polygon(corners, fill=255)
        self._canvas.polygon(corners, fill=colour)
        if outline:
            self._stroke([*corners, corners[0], corners[1]], self._line, self._edge)

    def ellipse(self, x: Number, y: Number, across: Number, down: Number, colour: Colour, outline: bool = True) -> None:
        """A filled ellipse by its centre and its half axes."""
        self.polygon(arc(x, y, across, down, 0, 360), colour, outline)

    def line(self, points: Sequence[Point], width: Number, colour: Colour | None = None) -> None:
        """A line with round joints; `width` in the thing's own units."""
        self._stroke(self._corners(points), max(1, round(width * self._place.half)), colour or self._edge)

    def _corners(self, points: Sequence[Point]) -> list[tuple[int, int]]:
        # Whole pixels: what is drawn then does not hang on the last digit of a sine.
        return [(round(x), round(y)) for x, y in map(self._place.at, points)]

    def _stroke(self, corners: Sequence[tuple[int, int]], width: int, colour: Colour) -> None:
        for draw, fill in ((self._mask, 255), (self._canvas, colour)):
            draw.line(list(corners), fill=fill, width=width, joint="curve")


def arc(x: Number, y: Number, across: Number, down: Number, start: Number, end: Number) -> list[Point]:
    """Points on an ellipse from `start` to `end` degrees; 0 is right, 90 is below."""
    steps = max(2, round(SMOOTH * abs(end - start) / 360))
    angles = [math.radians(start + (end - start) * i / steps) for i in range(steps + 1)]
    return [(x + across * math.cos(angle), y + down * math.sin(angle)) for angle in angles]


def curve(start: Point, pull: Point, end: Point, steps: int = 10) -> list[Point]:
    """A quadratic Bézier curve."""
    shares = [i / steps for i in range(steps + 1)]
    return [
        (
            (1 - t) ** 2 * start[0] + 2 * t * (1 - t) * pull[0] + t**2 * end[0],
            (1 - t) ** 2 * start[1] + 2 * t * (1 - t) * pull[1] + t**2 * end[1],
        )
        for t in shares
    ]


def box(x0: Number, y0: Number, x1: Number, y1: Number) -> list[Point]:
    """The corners of an upright rectangle."""
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
