"""Pictures in class folders, `[split/]class/name.jpg`, from a folder or a zip; optional masks or boxes.

A mask lies at the same place below a folder `masks` and is white where the thing is. Boxes stand in `boxes.csv`
with the columns file, x0, y0, x1, y1; a picture with several boxes has several rows.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePosixPath

import numpy as np
from jaxtyping import Bool

from engine.data.cards import own_card
from engine.data.hub import ALIASES, SPLITS
from engine.data.images.examples import Box, ImageDataset, ImageExample, box_mask
from engine.data.images.listing import File, Listing
from engine.data.images.opening import open_picture
from engine.data.labels import MAX_CLASSES
from engine.errors import ExegesisError, shown, unknown

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
MASKS, BOXES = "masks", "boxes.csv"


@dataclass(frozen=True)
class _Found:
    """The files of a listing by what they are; pictures by split and class."""

    pictures: Mapping[str, Mapping[str, Sequence[File]]]
    masks: Mapping[PurePosixPath, File]
    boxes: Mapping[PurePosixPath, Sequence[Box]]

    @property
    def classes(self) -> tuple[str, ...]:
        """The class folders of all splits; a single folder is no class."""
        names = {name for split in self.pictures.values() for name in split}
        return tuple(sorted(names)) if len(names) > 1 else ()


def from_listing(listing: Listing, split: str | None, limit: int | None) -> ImageDataset:
    """The pictures of one split: by default validation, else test, else train, else all."""
    found = _sorted_out(listing)
    if not found.pictures:
        raise ExegesisError(f"{listing.name}: holds no PNG, JPEG, WebP or GIF pictures. Give one that does.")
    chosen = _chosen(found.pictures, split)
    names = found.classes
    if len(names) > MAX_CLASSES:
        raise ExegesisError(f"{listing.name}: {len(names):,} class folders are too many (at most {MAX_CLASSES:,}).")
    rows = _mixed(found.pictures[chosen])[:limit]
    index = {name: i for i, name in enumerate(names)}
    labels = tuple(index.get(name) for name, _ in rows)

    def read(i: int) -> ImageExample:
        return _example(rows[i][1], labels[i], found, listing.name)

    card = own_card(listing.name, f"the local pictures of {listing.name}", f"{len(rows):,} pictures")
    return ImageDataset(listing.name, listing.name, names, labels, read, card, listing.revision(), chosen)


def _sorted_out(listing: Listing) -> _Found:
    pictures: dict[str, dict[str, list[File]]] = defaultdict(lambda: defaultdict(list))
    masks: dict[PurePosixPath, File] = {}
    boxes: dict[PurePosixPath, list[Box]] = {}
    for file in listing.files:
        if file.path.name == BOXES:
            boxes |= _read_boxes(file)
        elif file.path.suffix.lower() not in SUFFIXES:
            continue
        elif MASKS in file.path.parts[:-1]:
            parts = list(file.path.parts)
            parts.remove(MASKS)
            masks[PurePosixPath(*parts).with_suffix("")] = file
        else:
            pictures[_split_of(file.path)][file.path.parent.name].append(file)
    return _Found(pictures, masks, boxes)


def _split_of(path: PurePosixPath) -> str:
    above = path.parent.parent.name.lower()
    name = ALIASES.get(above, above)
    return name if name in SPLITS else "all"


def _chosen(pictures: Mapping[str, object], split: str | None) -> str:
    if split is None:
        return next(name for name in (*SPLITS, "all") if name in pictures)
    wanted = ALIASES.get(split, split)
    if wanted not in pictures:
        raise unknown("split", split, pictures)
    return wanted


def _mixed(by_class: Mapping[str, Sequence[File]]) -> list[tuple[str, File]]:
    """One picture of each class in turn, so that the first n are balanced."""
    names = sorted(by_class)
    rounds = zip_longest(*(by_class[name] for name in names))
    return [(name, file) for row in rounds for name, file in zip(names, row, strict=True) if file is not None]


def _example(file: File, label: int | None, found: _Found, source: str) -> ImageExample:
    pixels = open_picture(file.read(), f"{source}: {file.path}")
    height, width = pixels.shape[:2]
    mask = _mask(found.masks.get(file.path.with_suffix("")), source)
    if mask is None and file.path in found.boxes:
        mask = box_mask(found.boxes[file.path], height, width)
    return ImageExample(pixels, label, mask, str(file.path))


def _mask(file: File | None, source: str) -> Bool[np.ndarray, "height width"] | None:
    return None if file is None else open_picture(file.read(), f"{source}: {file.path}").mean(axis=2) >= 128


def _read_boxes(file: File) -> dict[PurePosixPath, list[Box]]:
    boxes: dict[PurePosixPath, list[Box]] = defaultdict(list)
    for number, row in enumerate(_rows(file), start=2):
        try:
            box = (int(row["x0"]), int(row["y0"]), int(row["x1"]), int(row["y1"]))
            boxes[file.path.parent / row["file"]].append(box)
        except (KeyError, TypeError, ValueError):
            wanted = "the columns file, x0, y0, x1, y1 with whole numbers"
            raise ExegesisError(f"{file.path}, line {number}: must have {wanted}, got {shown(row)}.") from None
    return boxes


def _rows(file: File) -> Iterable[dict[str, str]]:
    try:
        return list(csv.DictReader(io.StringIO(file.read().decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error):
        raise ExegesisError(f"{file.path}: is not a CSV in UTF-8. Save it as one.") from None
