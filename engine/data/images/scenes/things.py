"""The ten things. Each is drawn by a pen in coordinates from -1 to 1, y downwards, in a main colour of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from random import Random

from engine.data.images.scenes.colours import BLACK, GLASS, PINK, WHITE, WOOD, YELLOW, drawn, near, shaded
from engine.data.images.scenes.pen import Colour, Pen, arc, box, curve

Thing = Callable[[Pen, Colour, Random], None]


def fish(pen: Pen, main: Colour, chance: Random) -> None:
    fin = shaded(main, 0.75)
    pen.polygon([(-0.4, 0), *curve((-0.95, -0.55), (-0.75, 0), (-0.95, 0.55))], fin)
    pen.polygon([*curve((-0.25, -0.3), (0.1, -0.95), (0.4, -0.3))], fin)
    pen.polygon([*curve((-0.1, 0.3), (0.0, 0.8), (0.25, 0.3))], fin)
    pen.polygon([*curve((-0.6, 0), (0.15, -0.9), (0.95, 0), 16), *curve((0.95, 0), (0.15, 0.9), (-0.6, 0), 16)], main)
    if chance.random() < 0.5:
        for x in (-0.2, 0.05):
            pen.line(curve((x, -0.32), (x + 0.12, 0), (x, 0.32)), 0.07, shaded(main, 1.8))
    pen.line(curve((0.42, -0.3), (0.28, 0), (0.42, 0.3)), 0.06)
    pen.ellipse(0.62, -0.12, 0.12, 0.12, WHITE)
    pen.ellipse(0.65, -0.12, 0.055, 0.055, BLACK, outline=False)


def car(pen: Pen, main: Colour, chance: Random) -> None:
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


def house(pen: Pen, main: Colour, chance: Random) -> None:
    roof, door = near((165, 62, 48), chance, 40), near(WOOD, chance)
    pen.polygon(box(0.32, -0.85, 0.52, -0.3), shaded(roof, 0.8))
    pen.polygon(box(-0.68, -0.15, 0.68, 0.85), shaded(main, 1.6))
    pen.polygon([(-0.92, -0.1), (0, -0.92), (0.92, -0.1)], roof)
    pen.polygon(box(-0.16, 0.3, 0.16, 0.85), door)
    for x in (-0.42, 0.42):
        pen.polygon(box(x - 0.15, 0.1, x + 0.15, 0.4), GLASS)
        pen.line([(x, 0.1), (x, 0.4)], 0.04)
        pen.line([(x - 0.15, 0.25), (x + 0.15, 0.25)], 0.04)


def tree(pen: Pen, main: Colour, chance: Random) -> None:
    leaf = near(chance.choice([(52, 128, 52), (86, 150, 50), (40, 105, 70), (205, 120, 35)]), chance, 22)
    pen.polygon([(-0.13, 0.95), (-0.09, 0.1), (0.09, 0.1), (0.13, 0.95)], near(WOOD, chance))
    if chance.random() < 0.4:
        for top, low, half in ((-0.1, 0.6, 0.62), (-0.55, 0.22, 0.5), (-0.95, -0.2, 0.36)):
            pen.polygon([(0, top - 0.02), (half, low), (-half, low)], leaf)
        return
    crowns = [(-0.38, -0.12, 0.38), (0.38, -0.12, 0.38), (-0.2, -0.5, 0.38), (0.22, -0.48, 0.4), (0, -0.1, 0.42)]
    for x, y, radius in crowns:
        pen.ellipse(x, y, radius, radius, leaf)
    for x, y, radius in crowns:
        pen.ellipse(x, y, radius * 0.9, radius * 0.9, leaf, outline=False)
    pen.ellipse(-0.22, -0.52, 0.16, 0.13, shaded(leaf, 1.3), outline=False)


def boat(pen: Pen, main: Colour, chance: Random) -> None:
    sail = WHITE if chance.random() < 0.5 else shaded(drawn(chance), 2.2)
    pen.line([(0, 0.4), (0, -0.92)], 0.08, near(WOOD, chance))
    pen.polygon([(0.08, -0.85), *curve((0.1, -0.5), (0.6, 0.0), (0.72, 0.28)), (0.08, 0.28)], sail)
    pen.polygon([(-0.08, -0.7), (-0.08, 0.28), (-0.6, 0.28)], shaded(sail, 0.88))
    pen.polygon([(-0.92, 0.42), (0.92, 0.42), *curve((0.85, 0.5), (0.7, 0.85), (0.45, 0.88)), (-0.5, 0.88)], main)
    pen.line([(-0.85, 0.55), (0.8, 0.55)], 0.07, shaded(main, 1.9))


def cat(pen: Pen, main: Colour, chance: Random) -> None:
    fur = near(chance.choice([(70, 66, 70), (225, 140, 60), (235, 225, 210), (150, 140, 135), (120, 84, 58)]), chance)
    for side in (-1, 1):
        pen.polygon([(side * 0.72, -0.05), (side * 0.7, -0.95), (side * 0.12, -0.5)], fur)
        pen.polygon([(side * 0.6, -0.35), (side * 0.6, -0.72), (side * 0.32, -0.5)], PINK, outline=False)
    pen.ellipse(0, 0.12, 0.82, 0.68, fur)
    if chance.random() < 0.5:
        for x in (-0.16, 0, 0.16):
            pen.line([(x, -0.5), (x * 0.8, -0.26)], 0.07, shaded(fur, 0.55))
    pen.ellipse(0, 0.42, 0.3, 0.22, shaded(fur, 1.7), outline=False)
    eye = chance.choice([(150, 200, 60), (240, 200, 60), (110, 180, 220)])
    for side in (-1, 1):
        pen.ellipse(side * 0.34, 0.02, 0.19, 0.17, eye)
        pen.ellipse(side * 0.34, 0.02, 0.06, 0.16, BLACK, outline=False)
        for y in (0.34, 0.46):
            pen.line([(side * 0.3, 0.4 + (y - 0.4) * 0.4), (side * 0.98, y + (y - 0.4))], 0.035, WHITE)
    pen.polygon([(-0.1, 0.27), (0.1, 0.27), (0, 0.38)], PINK)
    pen.line([*curve((-0.18, 0.5), (-0.05, 0.58), (0, 0.4)), *curve((0, 0.4), (0.05, 0.58), (0.18, 0.5))], 0.045)


def flower(pen: Pen, main: Colour, chance: Random) -> None:
    green = near((62, 140, 58), chance, 20)
    pen.line(curve((0, -0.2), (0.08, 0.4), (0, 0.97)), 0.1, green)
    for side, y in ((-1, 0.75), (1, 0.6)):
        end = (side * 0.5, y - 0.32)
        pen.polygon([*curve((0, y), (side * 0.1, y - 0.4), end), *curve(end, (side * 0.5, y), (0, y))], green)
    petals = chance.randint(5, 8)
    turn = chance.random() * 360
    for i in range(petals):
        angle = math.radians(turn + 360 * i / petals)
        x, y = 0.36 * math.cos(angle), -0.36 + 0.36 * math.sin(angle)
        pen.ellipse(x, y, 0.235, 0.235, main)
    pen.ellipse(0, -0.36, 0.22, 0.22, YELLOW if chance.random() < 0.7 else (110, 70, 40))


def umbrella(pen: Pen, main: Colour, chance: Random) -> None:
    other = main if chance.random() < 0.4 else shaded(main, 1.9)
    pen.line([(0, -0.92), (0, 0.7), *arc(0.16, 0.72, 0.16, 0.2, 180, 20)], 0.08)
    edges = [-0.95, -0.48, 0.0, 0.48, 0.95]
    for i, (left, right) in enumerate(pairwise(edges)):
        rim = curve((right, 0.12), ((left + right) / 2, -0.1), (left, 0.12))
        rise = curve((left, 0.12), (left * 0.95, -0.62), (0, -0.8))
        fall = curve((0, -0.8), (right * 0.95, -0.62), (right, 0.12))
        pen.polygon([*rise, *fall, *rim], main if i % 2 else other)


def mug(pen: Pen, main: Colour, chance: Random) -> None:
    pen.line(arc(0.5, 0.12, 0.4, 0.36, -80, 80), 0.3)
    pen.line(arc(0.5, 0.12, 0.4, 0.36, -80, 80), 0.19, main)
    pen.polygon([(-0.72, -0.5), *arc(-0.08, 0.75, 0.58, 0.18, 180, 0), (0.56, -0.5)], main)
    if chance.random() < 0.5:
        stripe = shaded(main, 1.9)
        pen.polygon([(-0.7, 0.0), *curve((-0.69, 0.22), (-0.08, 0.36), (0.53, 0.22)),
                     *curve((0.54, 0.0), (-0.08, 0.14), (-0.7, 0.0))], stripe, outline=False)  # fmt: skip
    pen.ellipse(-0.08, -0.5, 0.64, 0.17, shaded(main, 1.4))
    pen.ellipse(-0.08, -0.48, 0.52, 0.11, (84, 52, 32), outline=False)
    if chance.random() < 0.5:
        for x in (-0.25, 0.1):
            steam = [
                *curve((x, -0.68), (x - 0.12, -0.78), (x, -0.84)),
                *curve((x, -0.84), (x + 0.12, -0.9), (x, -0.98)),
            ]
            pen.line(steam, 0.05, WHITE)


def rocket(pen: Pen, main: Colour, chance: Random) -> None:
    shell = shaded(main, 2.4) if chance.random() < 0.6 else (225, 228, 232)
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


THINGS: dict[str, Thing] = {
    thing.__name__: thing for thing in (fish, car, house, tree, boat, cat, flower, umbrella, mug, rocket)
}
NAMES = tuple(THINGS)
