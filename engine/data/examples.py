"""Labeled texts and pictures, and data sets of them: frozen, validated, free of any model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Bool, UInt8

from engine.data.registry import DatasetCard
from engine.errors import UsageError, excerpt, not_allowed
from engine.request import Example

Span = tuple[int, int]
DatasetTask = Literal["classification", "regression"]
Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels; x1 and y1 lie just outside."""


@dataclass(frozen=True)
class LabeledExample:
    """One text or pair with its label and its rationale: the words that a human marked as the reason.

    Spans are [start, end) in characters (Unicode code points), in order, never overlapping. `label` is a
    class index, a score for regression, or None where it is not known.
    """

    text: str
    text_pair: str | None = None
    label: int | float | None = None
    rationale: tuple[Span, ...] = ()
    rationale_pair: tuple[Span, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rationale", validate_spans("rationale", self.rationale, self.text))
        pair = validate_spans("rationale_pair", self.rationale_pair, self.text_pair)
        object.__setattr__(self, "rationale_pair", pair)

    @property
    def example(self) -> Example:
        """The texts alone, as a request holds them."""
        return Example(self.text, self.text_pair)


@dataclass(frozen=True)
class Dataset:
    """Texts of one task under one id. `revision` is the SHA-256 of the content they were read from.

    `exact`: the examples, all alike, and their rationales follow from a rule; else humans marked them. `faults`: why
    rows are no examples, by their places among all rows; empty unless the set was loaded tolerantly.
    """

    id: str
    title: str
    task: DatasetTask
    label_names: tuple[str, ...]
    examples: Sequence[LabeledExample]
    card: DatasetCard
    revision: str
    split: str = "all"
    notes: tuple[str, ...] = ()
    exact: bool = False
    faults: Mapping[int, str] = field(default_factory=dict, hash=False)

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> LabeledExample:
        _check_index(index, len(self), self.id)
        return self.examples[index]

    @property
    def pairs(self) -> bool:
        """Whether the examples are text pairs."""
        checked = self.examples[:1] if self.exact else self.examples
        return any(example.text_pair is not None for example in checked)


@dataclass(frozen=True, eq=False)
class ImageExample:
    """One picture with its label and the pixels that show what the label names.

    `pixels` are sRGB, 0 to 255. `label` is a class index or None where it is not known. `mask` is None where the
    truth is not known; a box is a mask too (`box_mask`). `extra` holds plain values such as the seed of a scene.
    """

    pixels: UInt8[np.ndarray, "height width 3"]
    label: int | None = None
    mask: Bool[np.ndarray, "mask_height mask_width"] | None = None
    name: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mask is not None and self.mask.shape != self.pixels.shape[:2]:
            allowed, got = (f"{array.shape[1]} x {array.shape[0]}" for array in (self.pixels, self.mask))
            raise UsageError(f"mask: must have the size of its picture, {allowed}, got {got}. Give one of that size.")
        for array in (self.pixels, self.mask):
            if array is not None:
                array.setflags(write=False)


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Pictures of one task under one id. `revision` stands for the content they are read or generated from.

    `labels` are known without reading a picture. Folders and generated sets are mixed by class, so that their first n
    are balanced. `splits`: the splits to choose from, the default first; empty where there is no choice.
    """

    id: str
    title: str
    label_names: tuple[str, ...]
    labels: tuple[int | None, ...]
    read: Callable[[int], ImageExample] = field(repr=False)
    card: DatasetCard
    revision: str
    split: str = "all"
    notes: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> ImageExample:
        _check_index(index, len(self), self.id)
        return self.read(index)

    def __iter__(self) -> Iterator[ImageExample]:
        return (self.read(index) for index in range(len(self.labels)))


def _check_index(index: int, count: int, dataset: str) -> None:
    if type(index) is not int or not 0 <= index < count:
        raise UsageError(f"index: must be 0 to {count - 1} in {dataset}, got {excerpt(index)}.")


def validate_spans(name: str, spans: object, text: str | None) -> tuple[Span, ...]:
    """Sort spans. Each must lie inside its text; none may be empty, reversed or overlapping."""
    if not isinstance(spans, Sequence) or isinstance(spans, str):
        raise UsageError(f"{name}: must be a list of [start, end] pairs, got {excerpt(spans)}.")
    pairs = sorted(_parse_span(name, span) for span in spans)
    if pairs and text is None:
        raise UsageError(f"{name}: marks a text_pair, but there is none. Add text_pair or drop {name}.")
    length = len(text or "")
    for start, end in pairs:
        if start >= end:
            raise UsageError(f"{name}: a span must end after it starts, got [{start}, {end}].")
        if start < 0 or end > length:
            raise UsageError(f"{name}: [{start}, {end}] lies outside its text of {length} characters.")
    for (a, b), (c, d) in pairwise(pairs):
        if c < b:
            raise UsageError(f"{name}: [{a}, {b}] and [{c}, {d}] overlap. Join them or move one.")
    return tuple(pairs)


def _parse_span(name: str, span: object) -> Span:
    if isinstance(span, (list, tuple)) and len(span) == 2 and all(type(value) is int for value in span):
        return int(span[0]), int(span[1])
    raise UsageError(f"{name}: a span must be two whole numbers [start, end], got {excerpt(span)}.")


def box_mask(boxes: Sequence[Box], height: int, width: int) -> Bool[np.ndarray, "height width"]:
    """True inside any of the boxes; each must hold a pixel and lie in the picture."""
    mask = np.zeros((height, width), dtype=bool)
    for x0, y0, x1, y1 in boxes:
        if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
            allowed = f"x0 < x1 <= {width} and y0 < y1 <= {height}, none below 0"
            raise not_allowed("box", allowed, [x0, y0, x1, y1], "Boxes are in pixels of their picture.")
        mask[y0:y1, x0:x1] = True
    return mask
