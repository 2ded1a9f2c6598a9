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
from jaxtyping import Bool, UInt8

from engine.data.cards import own_card
from engine.data.hub import ALIASES, SPLITS, in_order
from engine.data.images.examples import Box, ImageDataset, ImageExample, box_mask
from engine.data.images.listing import BOXES, SUFFIXES, Listing
from engine.data.images.opening import open_picture
from engine.data.labels import MAX_CLASSES
from engine.errors import ExegesisError, shown, unknown

Pixels = UInt8[np.ndarray, "height width 3"]
MASKS = "masks"


@dataclass(frozen=True)
class _Found:
    """The files of a listing by what they are; pictures by split and class, masks by the place of their picture."""

    listing: Listing
    pictures: Mapping[str, Mapping[str, Sequence[PurePosixPath]]]
    masks: Mapping[PurePosixPath, PurePosixPath]
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
        return _example(rows[i][1], labels[i], found)

    card = own_card(listing.name, f"the local pictures of {listing.name}", f"{len(rows):,} pictures")
    splits = in_order(found.pictures)
    return ImageDataset(
        listing.name, listing.name, names, labels, read, card, listing.revision(), chosen, splits=splits
    )


def _sorted_out(listing: Listing) -> _Found:
    by_folder: dict[PurePosixPath, list[PurePosixPath]] = defaultdict(list)
    boxes: dict[PurePosixPath, list[Box]] = {}
    for path in listing.paths:
        if path.name == BOXES:
            boxes |= _read_boxes(listing, path)
        elif path.suffix.lower() in SUFFIXES:
            by_folder[path.parent].append(path)
    pictures: dict[str, dict[str, list[PurePosixPath]]] = defaultdict(lambda: defaultdict(list))
    masks: dict[PurePosixPath, PurePosixPath] = {}
    for folder, paths in by_folder.items():
        if MASKS in folder.parts:
            masks |= {_without_masks(path).with_suffix(""): path for path in paths}
        else:
            pictures[_split_of(folder)][folder.name] += paths
    return _Found(listing, pictures, masks, boxes)


def _without_masks(path: PurePosixPath) -> PurePosixPath:
    parts = list(path.parts)
    parts.remove(MASKS)
    return PurePosixPath(*parts)


def _split_of(folder: PurePosixPath) -> str:
    above = folder.parent.name.lower()
    name = ALIASES.get(above, above)
    return name if name in SPLITS else "all"


def _chosen(pictures: Mapping[str, Mapping[str, object]], split: str | None) -> str:
    if split is None:
        return in_order(pictures)[0]
    wanted = ALIASES.get(split, split)
    if wanted not in pictures:
        raise unknown("split", split, pictures)
    return wanted


def _mixed(by_class: Mapping[str, Sequence[PurePosixPath]]) -> list[tuple[str, PurePosixPath]]:
    """One picture of each class in turn, so that the first n are balanced."""
    names = sorted(by_class)
    rounds = zip_longest(*(by_class[name] for name in names))
    return [(name, path) for row in rounds for name, path in zip(names, row, strict=True) if path is not None]


def _example(path: PurePosixPath, label: int | None, found: _Found) -> ImageExample:
    pixels = _opened(found.listing, path)
    return ImageExample(pixels, label, _mask(path, pixels, found), str(path))


def _mask(path: PurePosixPath, pixels: Pixels, found: _Found) -> Bool[np.ndarray, "mask_height mask_width"] | None:
    place = found.masks.get(path.with_suffix(""))
    if place is not None:
        return _opened(found.listing, place).mean(axis=2) >= 128
    return box_mask(found.boxes[path], *pixels.shape[:2]) if path in found.boxes else None


def _opened(listing: Listing, path: PurePosixPath) -> Pixels:
    return open_picture(listing.read(path), f"{listing.name}: {path}")


def _read_boxes(listing: Listing, path: PurePosixPath) -> dict[PurePosixPath, list[Box]]:
    boxes: dict[PurePosixPath, list[Box]] = defaultdict(list)
    for number, row in enumerate(_rows(listing, path), start=2):
        try:
            box = (int(row["x0"]), int(row["y0"]), int(row["x1"]), int(row["y1"]))
            boxes[path.parent / row["file"]].append(box)
        except (KeyError, TypeError, ValueError):
            wanted = "the columns file, x0, y0, x1, y1 with whole numbers"
            raise ExegesisError(f"{path}, line {number}: must have {wanted}, got {shown(row)}.") from None
    return boxes


def _rows(listing: Listing, path: PurePosixPath) -> Iterable[dict[str, str]]:
    try:
        return list(csv.DictReader(io.StringIO(listing.read(path).decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error):
        raise ExegesisError(f"{path}: is not a CSV in UTF-8. Save it as one.") from None
