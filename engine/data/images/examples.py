"""A labelled picture and a data set of them: read one at a time, free of any model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, UInt8

from engine.data.cards import Card
from engine.errors import UsageError, not_allowed, shown

Box = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels; x1 and y1 lie just outside."""


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
            wanted, got = _size(self.pixels), _size(self.mask)
            raise UsageError(f"mask: must have the size of its picture, {wanted}, got {got}. Give one of that size.")
        for array in (self.pixels, self.mask):
            if array is not None:
                array.setflags(write=False)


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Pictures of one task under one id. `revision` stands for the content they are read or drawn from.

    `labels` are known without reading a picture. Folders and generated sets are mixed by class, so that their first n
    are balanced. `splits` are those that can be asked for, the usual one first; empty where there is no choice.
    """

    id: str
    title: str
    label_names: tuple[str, ...]
    labels: tuple[int | None, ...]
    read: Callable[[int], ImageExample] = field(repr=False)
    card: Card
    revision: str
    split: str = "all"
    notes: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> ImageExample:
        if type(index) is not int or not 0 <= index < len(self.labels):
            raise UsageError(f"index: must be 0 to {len(self.labels) - 1} in {self.id}, got {shown(index)}.")
        return self.read(index)

    def __iter__(self) -> Iterator[ImageExample]:
        return (self.read(index) for index in range(len(self.labels)))


def box_mask(boxes: Sequence[Box], height: int, width: int) -> Bool[np.ndarray, "height width"]:
    """True inside any of the boxes; each must hold a pixel and lie in the picture."""
    mask = np.zeros((height, width), dtype=bool)
    for x0, y0, x1, y1 in boxes:
        if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
            allowed = f"x0 < x1 <= {width} and y0 < y1 <= {height}, none below 0"
            raise not_allowed("box", allowed, [x0, y0, x1, y1], "Boxes are in pixels of their picture.")
        mask[y0:y1, x0:x1] = True
    return mask


def _size(array: np.ndarray) -> str:
    return f"{array.shape[1]} x {array.shape[0]}"
