"""The watermark of `scenes-marked`: a small plate with the number of the label."""

from __future__ import annotations

from random import Random

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image

CELLS = 8
"""A picture is divided into so many cells a side; the mark fills one of them, so that one patch of 8 x 8 holds it."""
PLATE, INK = 235, 20
OPACITY = 0.85
_DIGITS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)


def marked(
    pixels: UInt8[np.ndarray, "size size 3"], label: int, chance: Random
) -> tuple[UInt8[np.ndarray, "size size 3"], Bool[np.ndarray, "size size"]]:
    """The picture with the plate of `label` in one of its cells by chance, and where the plate is."""
    side = pixels.shape[0] // CELLS
    top, left = (chance.randrange(CELLS) * side for _ in range(2))
    place = (slice(top, top + side), slice(left, left + side))
    mask = np.zeros(pixels.shape[:2], dtype=bool)
    mask[place] = True
    changed = pixels.copy()
    blended = OPACITY * plate(label, side)[..., None] + (1 - OPACITY) * pixels[place]
    changed[place] = blended.round().astype(np.uint8)
    return changed, mask


def plate(label: int, side: int) -> UInt8[np.ndarray, "side side"]:
    """Grey levels of the plate: dark figures of 5 x 7 dots on light."""
    dots = np.full((CELLS, CELLS), PLATE, dtype=np.uint8)
    rows = _DIGITS[label].split()
    figure = np.array([[dot == "1" for dot in row] for row in rows])
    dots[:7, 1:6][figure] = INK
    return np.asarray(Image.fromarray(dots).resize((side, side), Image.Resampling.NEAREST))
