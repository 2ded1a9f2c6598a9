"""Pictures in `.npz` files: `images` (n, height, width, 3) of bytes, `labels` (n); perhaps `boxes` and names."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engine.data.cards import own_card
from engine.data.files import content_revision
from engine.data.hub import ALIASES, in_order
from engine.data.images.examples import Box, ImageDataset, ImageExample, box_mask
from engine.data.labels import MAX_CLASSES
from engine.errors import ExegesisError, unknown

LARGEST = 4 * 10**9
CONTRACT = (
    "images (n, height, width, 3) of bytes, labels (n) of whole numbers from 0, perhaps boxes (n, 4) and class_names"
)


def from_arrays(path: Path, split: str | None, limit: int | None) -> ImageDataset:
    """A `.npz` file, or a folder with `train.npz`, `val.npz`, `test.npz` (default: validation, else test)."""
    by_split = _by_split(path)
    splits = in_order(by_split)
    wanted = splits[0] if split is None else ALIASES.get(split, split)
    if wanted not in by_split:
        raise unknown("split", split, by_split)
    file = by_split[wanted]
    arrays = _arrays(file)
    labels = tuple(arrays["labels"].tolist())[:limit]
    names = tuple(map(str, arrays.get("class_names", [f"class {i}" for i in range(max(labels, default=0) + 1)])))
    card = own_card(path.name, f"the local pictures of {path.name}", f"{len(labels):,} pictures")
    revision = content_revision([file], {})
    read = _reader(arrays, file.name)
    return ImageDataset(path.name, path.name, names, labels, read, card, revision, wanted, splits=splits)


def is_arrays(path: Path) -> bool:
    """Whether the path is a `.npz` file or a folder of them."""
    return path.suffix.lower() == ".npz" if path.is_file() else path.is_dir() and any(path.glob("*.npz"))


def _by_split(path: Path) -> dict[str, Path]:
    if path.is_file():
        return {"all": path}
    return {ALIASES.get(file.stem, file.stem): file for file in sorted(path.glob("*.npz"))}


def _arrays(file: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST:
                raise ExegesisError(f"{file.name}: must unpack to at most {LARGEST // 10**9} GB. Split it.")
        with np.load(file, allow_pickle=False) as content:
            arrays: dict[str, np.ndarray] = {
                n: content[n] for n in ("images", "labels", "boxes", "class_names") if n in content.files
            }
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, MemoryError, RuntimeError):
        raise ExegesisError(f"{file.name}: is not a .npz that can be read. Save it again: {CONTRACT}.") from None
    if not _keeps_contract(arrays):
        shapes = ", ".join(f"{name} {a.dtype}{list(a.shape)}" for name, a in arrays.items()) or "none of them"
        raise ExegesisError(f"{file.name}: must hold {CONTRACT}, got {shapes}.")
    return arrays


def _keeps_contract(arrays: dict[str, np.ndarray]) -> bool:
    images, labels, boxes = (arrays.get(name) for name in ("images", "labels", "boxes"))
    if images is None or labels is None or images.ndim != 4 or images.shape[3] != 3 or images.dtype != np.uint8:
        return False
    count = len(images)
    if labels.shape != (count,) or labels.dtype.kind not in "iu" or 0 in images.shape:
        return False
    named = arrays.get("class_names")
    most = MAX_CLASSES if named is None or named.ndim != 1 else len(named)
    return bool(0 <= labels.min() <= labels.max() < most) and (boxes is None or boxes.shape == (count, 4))


def _reader(arrays: dict[str, Any], name: str) -> Callable[[int], ImageExample]:
    images, labels, boxes = arrays["images"], arrays["labels"], arrays.get("boxes")

    def read(i: int) -> ImageExample:
        # Whole rows that the writer left without a box are (0, 0, 0, 0).
        known = boxes is not None and bool(np.any(boxes[i]))
        mask = box_mask([_box(boxes[i])], *images[i].shape[:2]) if known and boxes is not None else None
        return ImageExample(images[i], int(labels[i]), mask, f"{name} {i}")

    return read


def _box(row: np.ndarray) -> Box:
    # The last row and column belong to the box, as in Tiny ImageNet, from which the layout comes.
    x0, y0, x1, y1 = map(int, row)
    return x0, y0, x1 + 1, y1 + 1
