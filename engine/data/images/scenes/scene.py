"""One scene: a thing somewhere over a ground, among small shapes that are none of the ten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image, ImageDraw

from engine.data.images.scenes.colours import APART, BLACK, WHITE, distance, drawn, drawn_apart
from engine.data.images.scenes.grounds import ground
from engine.data.images.scenes.pen import Colour, Pen, Placement, Point, arc, box
from engine.data.images.scenes.things import THINGS

FINER = 4
"""Scenes are drawn so many times larger and then averaged down."""
LEAST_HALF, MOST_HALF = 0.26, 0.42
"""Half the side of a thing, as a share of the picture."""
MOST_TURN = 0.3
"""Radians to either side."""
MOST_DISTRACTORS = 4

SHAPES: tuple[Sequence[Point], ...] = (
    arc(0, 0, 1, 1, 0, 360),
    box(-0.8, -0.8, 0.8, 0.8),
    [(0, -1), (0.95, 0.75), (-0.95, 0.75)],
    [(0, -1), (0.7, 0), (0, 1), (-0.7, 0)],
    [(-0.3, -1), (0.3, -1), (0.3, -0.3), (1, -0.3), (1, 0.3), (0.3, 0.3), (0.3, 1), (-0.3, 1), (-0.3, 0.3), (-1, 0.3),
     (-1, -0.3), (-0.3, -0.3)],
    box(-1, -0.3, 1, 0.3),
)  # fmt: skip
"""Disc, square, triangle, diamond, cross, bar."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The picture and the pixels of which the thing covers at least half."""

    pixels: UInt8[np.ndarray, "size size 3"]
    mask: Bool[np.ndarray, "size size"]


def draw(thing: str, size: int, chance: Random) -> Scene:
    """A scene with one `thing`. The same name, size and state of `chance` give the same pixels on any machine."""
    canvas = ground(size * FINER, chance)
    red, green, blue = canvas.resize((1, 1), Image.Resampling.BOX).getpixel((0, 0))  # type: ignore[misc]
    behind: Colour = (red, green, blue)
    mask = Image.new("L", canvas.size, 0)
    place = _placed(size * FINER, chance)
    _scatter(canvas, place, chance)
    main = drawn_apart(chance, behind)
    edge = BLACK if distance(BLACK, behind) > APART else WHITE
    THINGS[thing](Pen(canvas, mask, place, edge), main, chance)
    coverage = np.asarray(mask.reduce(FINER))
    return Scene(np.array(canvas.reduce(FINER)), coverage >= 128)


def _placed(side: int, chance: Random) -> Placement:
    half = side * _between(chance, LEAST_HALF, MOST_HALF)
    room = half * 1.08
    x, y = (_between(chance, room, side - room) for _ in range(2))
    turn = _between(chance, -MOST_TURN, MOST_TURN)
    return Placement(x, y, half, _between(chance, 0.88, 1.12), turn, chance.random() < 0.5)


def _scatter(canvas: Image.Image, thing: Placement, chance: Random) -> None:
    """Small shapes beside the thing."""
    side = canvas.width
    for _ in range(chance.randint(0, MOST_DISTRACTORS)):
        half = side * _between(chance, 0.03, 0.065)
        x, y = (_between(chance, half, side - half) for _ in range(2))
        place = Placement(x, y, half, turn=_between(chance, 0.0, 3.14))
        shape, colour = chance.choice(SHAPES), drawn(chance)
        if max(abs(x - thing.x), abs(y - thing.y)) > thing.half * 0.8 + half:
            corners = [(round(a), round(b)) for a, b in map(place.at, shape)]
            ImageDraw.Draw(canvas).polygon(corners, fill=colour)


def _between(chance: Random, low: float, high: float) -> float:
    return low + (high - low) * chance.random()
