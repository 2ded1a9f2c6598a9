"""Maps of one picture on the same patches, where models see another part of it, or cut it into other patches.

The common patches are as large as the largest of any model and lie where all models look. A patch's score is spread
evenly over its area, so that what a common patch gets is a sum, as a word's is of its tokens'.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from engine.comparison.parts import Part, Sheet
from engine.errors import ExegesisError
from engine.result import Explanation
from engine.vision.view import ModelView

DIGITS = 12
"""Digits that count: what is equal but for rounding stays equal, so that it ties."""


@dataclass(frozen=True)
class Box:
    """A part of the picture, its sides as shares of the picture's height and width; beyond 0 and 1 is black."""

    top: float
    left: float
    bottom: float
    right: float

    def __and__(self, other: Box) -> Box:
        return Box(
            max(self.top, other.top), max(self.left, other.left),
            min(self.bottom, other.bottom), min(self.right, other.right),
        )  # fmt: skip

    @property
    def empty(self) -> bool:
        return self.top >= self.bottom or self.left >= self.right


def seen_box(view: ModelView, height: int, width: int) -> Box:
    """What the model sees of a picture of that many pixels."""
    tall, wide = replace(view.preprocessing, crop=None).output_size(height, width)
    rows, columns = view.preprocessing.output_size(height, width)
    top, left = (tall - rows) // 2, (wide - columns) // 2
    return Box(top / tall, left / wide, (top + rows) / tall, (left + columns) / wide)


def common_box(boxes: Sequence[Box]) -> Box:
    """What all see. Errors: it is nothing."""
    box = functools.reduce(operator.and_, boxes)
    if box.empty:
        raise ExegesisError("picture: the models look at parts of it that do not overlap. Compare fewer models.")
    return box


def picture_sheet(maps: Sequence[Explanation], boxes: Sequence[Box]) -> Sheet:
    """The maps of one picture by common patches, row by row. `boxes`: what each map's model sees of the picture."""
    box = common_box(boxes)
    grids = [made.on_grid.shape for made in maps]
    rows = _cells([(one.top, one.bottom, grid[0]) for one, grid in zip(boxes, grids, strict=True)], box.top, box.bottom)
    columns = _cells(
        [(one.left, one.right, grid[1]) for one, grid in zip(boxes, grids, strict=True)], box.left, box.right
    )
    parts = [Part(f"row {at // columns + 1}, column {at % columns + 1}", at, at + 1) for at in range(rows * columns)]
    scores = [on_common(made.on_grid, own, box, rows, columns).ravel() for made, own in zip(maps, boxes, strict=True)]
    apart = any((own, grid) != (box, (rows, columns)) for own, grid in zip(boxes, grids, strict=True))
    return Sheet(tuple(parts), np.array(scores), rows * columns * apart, (rows, columns))


def on_common(
    scores: Float[np.ndarray, "row column"], own: Box, box: Box, rows: int, columns: int
) -> Float[np.ndarray, "common_row common_column"]:
    """A model's patches, which fill its `own` box, as the common ones of `box`."""
    if own == box and scores.shape == (rows, columns):
        return scores
    down = shares(own.top, own.bottom, scores.shape[0], box.top, box.bottom, rows)
    across = shares(own.left, own.right, scores.shape[1], box.left, box.right, columns)
    if (scores == scores.flat[0]).all():
        return np.full((rows, columns), float(scores.flat[0]))
    summed = down @ scores @ across.T
    largest = np.abs(summed).max() or 1.0
    return np.round(summed / largest, DIGITS) * largest


def shares(
    start: int | float, end: int | float, patches: int, first: int | float, last: int | float, cells: int
) -> Float[np.ndarray, "cell patch"]:
    """Which share of each patch, of `patches` of one length from `start` to `end`, lies in each of the cells."""
    old, new = np.linspace(start, end, patches + 1), np.linspace(first, last, cells + 1)
    low, high = np.maximum.outer(new[:-1], old[:-1]), np.minimum.outer(new[1:], old[1:])
    return np.clip(high - low, 0.0, None) / ((end - start) / patches)


def _cells(sides: Sequence[tuple[float, float, int]], first: float, last: float) -> int:
    """How many of the largest patches fit between two edges."""
    largest = max((end - start) / patches for start, end, patches in sides)
    return max(1, round((last - first) / largest))
