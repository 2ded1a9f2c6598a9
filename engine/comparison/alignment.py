"""Alignment of the maps of one input on common parts, to compare models with different tokenizers or patches.

Texts are aligned by character offsets, never by token strings. The parts are the finest pieces of the text that no map
splits: where tokenizers agree, their tokens or words; elsewhere, overlapping pieces form one part, whose score is the
sum of their scores.

Pictures: the common patches are as large as the largest patches of any model, and cover the area that all models see. A
patch's score is spread evenly over its area, so that the score of a common patch is a sum, as that of a word is the sum
over its tokens.
"""

from __future__ import annotations

import functools
import operator
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from engine.errors import ExegesisError
from engine.registry import explainer
from engine.request import Example, Input, Picture
from engine.result import Explanation
from engine.vision.picture import ModelView, read_view
from engine.word_units import BASELINE, Unit, units_of

DIGITS = 12
"""Significant digits of scores, so that scores which differ only by rounding tie."""
Span = tuple[int, int, int]
"""The segment (text of a pair), the first character, and the one after the last."""
PartScores = Float[np.ndarray, "part"]


@dataclass(frozen=True)
class AlignedPart:
    """A piece of the text, or a patch of a picture (`start` and `end` then count patches)."""

    text: str
    start: int
    end: int
    segment: int = 0
    blank: bool = False


@dataclass(frozen=True, eq=False)
class AlignedMaps:
    """The maps of one input on common parts: one row per map, NaN if its model does not read the part.

    White space that a model reads as a separate token is a part too, so that no score is lost. `joined`: number of
    parts that join several pieces of a map. `grid`: rows and columns of a picture's parts.
    """

    parts: tuple[AlignedPart, ...]
    scores: Float[np.ndarray, "map part"]
    joined: int = 0
    grid: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.scores.shape[1:] != (len(self.parts),):
            raise ValueError(f"scores: one per part, {len(self.parts)} expected, got shape {self.scores.shape}")
        self.scores.setflags(write=False)

    def unread(self, row: int) -> int:
        """Return the number of parts without a score in a map, except white space, which is often not a token."""
        return int(np.isnan(self.scores[row, [not part.blank for part in self.parts]]).sum())

    @property
    def blanks(self) -> int:
        """Number of parts that are white space."""
        return sum(part.blank for part in self.parts)


def align_maps(maps: Sequence[Explanation], example: Input, unit: str) -> AlignedMaps:
    """Align the maps of one text or picture on common parts."""
    if isinstance(example, Example):
        return align_text_maps(maps, example, unit)
    assert isinstance(example, Picture)
    height, width, _ = example.pixels.shape
    return align_picture_maps(
        maps, [visible_box(read_view(explanation.provenance.model), height, width) for explanation in maps]
    )


def align_text_maps(maps: Sequence[Explanation], example: Example, unit: str = "word") -> AlignedMaps:
    """Align the maps of one text on its common tokens or words. Only special tokens are left out."""
    all_units = [[one for one in units_of(explanation, example, unit) if not one.special] for explanation in maps]
    parts = _finest_parts(all_units, (example.text, example.text_pair or ""))
    indices = [_part_indices(parts, units) for units in all_units]
    rows = [
        _part_scores(units, own, len(parts), is_random=explainer(explanation.provenance.method).family == BASELINE)
        for explanation, units, own in zip(maps, all_units, indices, strict=True)
    ]
    scores = np.array(rows, dtype=np.float64).reshape(len(maps), len(parts))
    joined = {index for own in indices for index, pieces in Counter(own).items() if pieces > 1}
    return AlignedMaps(tuple(parts), scores, len(joined))


def _finest_parts(all_units: Iterable[Sequence[Unit]], texts: Sequence[str]) -> list[AlignedPart]:
    marks = {span_of(unit): unit.text for units in all_units for unit in units}
    parts: list[AlignedPart] = []
    for segment, start, end in sorted(marks):
        before = parts[-1] if parts else None
        if before is not None and before.segment == segment and start < before.end:
            parts[-1] = replace(before, end=max(before.end, end))
        else:
            parts.append(AlignedPart("", start, end, segment))
    return [_named_part(part, texts[part.segment], marks) for part in parts]


def _named_part(part: AlignedPart, text: str, marks: dict[Span, str]) -> AlignedPart:
    own = text[part.start : part.end]
    if own.strip():
        return replace(part, text=own)
    return replace(part, text=marks.get(span_of(part), own), blank=True)


def span_of(piece: Unit | AlignedPart) -> Span:
    """Return the place of a piece in the text."""
    return piece.segment, piece.start, piece.end


def _part_indices(parts: Sequence[AlignedPart], units: Sequence[Unit]) -> list[int]:
    """Return the index of the part that contains each unit."""
    exact = {span_of(part): index for index, part in enumerate(parts)}
    starts = [(part.segment, part.start) for part in parts]
    # A token of white space has no characters: it is its own part, not a piece of the word that begins there.
    return [exact.get(span_of(unit), bisect_right(starts, (unit.segment, unit.start)) - 1) for unit in units]


def _part_scores(units: Sequence[Unit], indices: Sequence[int], parts: int, is_random: bool) -> PartScores:
    scores = np.full(parts, np.nan)
    for unit, index in zip(units, indices, strict=True):
        if np.isnan(scores[index]):
            scores[index] = unit.score
        elif not is_random:
            scores[index] += unit.score
    return _as_ranks(scores) if is_random else scores


def _as_ranks(scores: PartScores) -> PartScores:
    """Return a random order as ranks of the parts, 1 for the lowest: summed ranks would put joined parts first."""
    read = np.flatnonzero(np.isfinite(scores))
    ranks = np.full(len(scores), np.nan)
    ranks[read[np.argsort(scores[read], kind="stable")]] = np.arange(1, len(read) + 1)
    return ranks


@dataclass(frozen=True)
class PictureBox:
    """A part of a picture, with sides as fractions of the picture's height and width; outside 0 to 1 it is black."""

    top: float
    left: float
    bottom: float
    right: float

    def __and__(self, other: PictureBox) -> PictureBox:
        return PictureBox(
            max(self.top, other.top), max(self.left, other.left),
            min(self.bottom, other.bottom), min(self.right, other.right),
        )  # fmt: skip

    @property
    def empty(self) -> bool:
        return self.top >= self.bottom or self.left >= self.right


def visible_box(view: ModelView, height: int, width: int) -> PictureBox:
    """Return the part that the model sees of a picture with that many pixels."""
    tall, wide = replace(view.preprocessing, crop=None).output_size(height, width)
    rows, columns = view.preprocessing.output_size(height, width)
    top, left = (tall - rows) // 2, (wide - columns) // 2
    return PictureBox(top / tall, left / wide, (top + rows) / tall, (left + columns) / wide)


def common_box(boxes: Sequence[PictureBox]) -> PictureBox:
    """Return the part that all models see. Errors: there is none."""
    box = functools.reduce(operator.and_, boxes)
    if box.empty:
        raise ExegesisError("picture: the models see parts of it that do not overlap. Compare fewer models.")
    return box


def align_picture_maps(maps: Sequence[Explanation], boxes: Sequence[PictureBox]) -> AlignedMaps:
    """Align the maps of one picture on common patches, row by row. `boxes`: the part that each map's model sees."""
    box = common_box(boxes)
    grids = [explanation.on_grid.shape for explanation in maps]
    rows = _cell_count(
        [(one.top, one.bottom, grid[0]) for one, grid in zip(boxes, grids, strict=True)], box.top, box.bottom
    )
    columns = _cell_count(
        [(one.left, one.right, grid[1]) for one, grid in zip(boxes, grids, strict=True)], box.left, box.right
    )
    parts = [
        AlignedPart(f"row {index // columns + 1}, column {index % columns + 1}", index, index + 1)
        for index in range(rows * columns)
    ]
    scores = [
        to_common_grid(explanation.on_grid, own, box, rows, columns).ravel()
        for explanation, own in zip(maps, boxes, strict=True)
    ]
    differ = any((own, grid) != (box, (rows, columns)) for own, grid in zip(boxes, grids, strict=True))
    return AlignedMaps(tuple(parts), np.array(scores), rows * columns * differ, (rows, columns))


def to_common_grid(
    scores: Float[np.ndarray, "row column"], own: PictureBox, box: PictureBox, rows: int, columns: int
) -> Float[np.ndarray, "common_row common_column"]:
    """Convert the scores of a model's patches, which fill its `own` box, to those of the common patches of `box`."""
    if own == box and scores.shape == (rows, columns):
        return scores
    down = patch_shares(own.top, own.bottom, scores.shape[0], box.top, box.bottom, rows)
    across = patch_shares(own.left, own.right, scores.shape[1], box.left, box.right, columns)
    if (scores == scores.flat[0]).all():
        return np.full((rows, columns), float(scores.flat[0]))
    summed = down @ scores @ across.T
    largest = np.abs(summed).max() or 1.0
    return np.round(summed / largest, DIGITS) * largest


def patch_shares(
    start: int | float, end: int | float, patches: int, first: int | float, last: int | float, cells: int
) -> Float[np.ndarray, "cell patch"]:
    """Return the share of each patch that is in each cell, along one axis.

    `patches` patches of equal length divide `start` to `end`, and `cells` cells divide `first` to `last`.
    """
    old, new = np.linspace(start, end, patches + 1), np.linspace(first, last, cells + 1)
    low, high = np.maximum.outer(new[:-1], old[:-1]), np.minimum.outer(new[1:], old[1:])
    return np.clip(high - low, 0.0, None) / ((end - start) / patches)


def _cell_count(sides: Sequence[tuple[float, float, int]], first: float, last: float) -> int:
    """Return the number of the largest patches that fit between two edges."""
    largest = max((end - start) / patches for start, end, patches in sides)
    return max(1, round((last - first) / largest))
