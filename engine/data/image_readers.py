"""Readers of picture sets: class folders in a folder or a zip, `.npz` arrays, and parquet files.

Class folders are `[split/]class/name.jpg`, with optional masks or boxes. Masks are in a folder `masks` with the same
layout, white where the object is. Boxes are in `boxes.csv` with the columns file, x0, y0, x1, y1; a picture with
several boxes has several rows.

Arrays are `images` (n, height, width, 3) of bytes and `labels` (n), optionally `boxes` and `class_names`.
Parquet files, on the hub, in a local folder with the same layout, or a single one, have a column of encoded pictures,
and optionally one of masks.
"""

from __future__ import annotations

import csv
import functools
import io
import os
import stat
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from jaxtyping import Bool, UInt8

from engine.data.examples import Box, ImageDataset, ImageExample, box_mask, interleave
from engine.data.hub import (
    HUB_PREFIX,
    ParquetShards,
    find_file_shards,
    find_folder_shards,
    find_hub_shards,
    open_parquet,
    read_class_names,
)
from engine.data.labels import MAX_CLASSES, read_labels
from engine.data.picture_files import MAX_FILE_SIZE, open_picture
from engine.data.registry import DEFAULT_SPLITS, SPLIT_ALIASES, choose_split, external_card, order_splits
from engine.data.tables import content_revision
from engine.errors import ExegesisError, UsageError, excerpt, unknown
from engine.format import size_text
from engine.lazy import pyarrow

Pixels = UInt8[np.ndarray, "height width 3"]

MAX_FILES = 500_000
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
BOXES_FILE = "boxes.csv"
MASKS_FOLDER = "masks"
MAX_UNPACKED = 4 * 10**9
"""Largest unpacked size of a `.npz`, in bytes."""
ARRAY_CONTRACT = (
    "images (n, height, width, 3) of bytes, labels (n) of whole numbers from 0, and optionally boxes (n, 4) and "
    "class_names"
)
CACHED_GROUPS = 2
"""Number of row groups of encoded pictures held in memory, so that reading in order reads each group once."""
PICTURE_ROLES = ("image", "label", "mask")
MASK_COLUMN = "object_mask"
"""Column of masks in pushed data sets. Other data sets use "mask" for many things, so theirs must be mapped."""


@dataclass(frozen=True)
class FileListing:
    """All files in a folder or archive: their sorted relative paths, and a function to read one.

    `revision` hashes names and content.
    """

    name: str
    paths: tuple[PurePosixPath, ...]
    read: Callable[[PurePosixPath], bytes]
    revision: Callable[[], str]


def list_folder(folder: Path) -> FileListing:
    """List a folder and its subfolders. A link to a picture outside of it is an error; other such links are skipped."""
    root = folder.resolve()
    paths = sorted(path for path in walk_files(folder) if path.is_file())
    outside = {path for path in paths if not path.resolve().is_relative_to(root)}
    pictures = (path for path in outside if path.suffix.lower() in PICTURE_SUFFIXES or path.name == BOXES_FILE)
    if refused := min(pictures, default=None):
        raise ExegesisError(f"{folder.name}: {refused.name} is a link out of the folder. Put the file itself there.")
    paths = [path for path in paths if path not in outside]
    places = tuple(PurePosixPath(path.relative_to(folder).as_posix()) for path in paths)
    names = {"names": [str(place) for place in places]}

    def read(place: PurePosixPath) -> bytes:
        try:
            return (folder / place).read_bytes()
        except OSError as error:
            raise ExegesisError(f"{place.name}: cannot be read ({error.strerror}). Check its permissions.") from None

    return FileListing(folder.name, places, read, lambda: content_revision(paths, names))


def walk_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders, except hidden ones. Errors: too many files."""
    count, name = 0, folder.name or str(folder)
    try:
        for above, _, files in os.walk(folder):
            count += len(files)
            _check_count(name, count)
            yield from (Path(above, file) for file in files if not file.startswith("."))
    except OSError as error:
        raise ExegesisError(f"{name}: cannot be read ({error.strerror}). Give a folder with pictures only.") from None


def _check_count(name: str, count: int) -> None:
    if count > MAX_FILES:
        raise ExegesisError(f"{name}: must hold at most {MAX_FILES:,} files, got {count:,} or more. Split it.")


def list_zip(path: Path) -> FileListing:
    """List a zip file, whose members are read into memory one by one.

    Errors: a member with a path outside the zip, an encrypted or too large member.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError):
        wrong = "cannot be read as a zip file. Save or download it again."
        if path.suffix.lower() != ".zip":
            wrong = "holds no pictures. Name a zip, a folder, a .npz or a .parquet."
        raise ExegesisError(f"{path.name}: {wrong}") from None
    members = [m for m in archive.infolist() if not m.is_dir() and not PurePosixPath(m.filename).name.startswith(".")]
    _check_count(path.name, len(members))
    for member in members:
        _check_member(path.name, member)
    # A zip may have two members of one name; the last one counts, as for unzip.
    by_place = {PurePosixPath(member.filename): member for member in members}
    return FileListing(
        path.name,
        tuple(sorted(by_place)),
        lambda place: _read_from_zip(archive, by_place[place], path.name),
        lambda: content_revision([path], {}),
    )


def _check_member(name: str, member: zipfile.ZipInfo) -> None:
    place = PurePosixPath(member.filename.replace("\\", "/"))
    link = stat.S_ISLNK(member.external_attr >> 16)
    if place.is_absolute() or ".." in place.parts or ":" in place.parts[0] or link:
        raise ExegesisError(
            f"{name}: {member.filename!r} points outside the zip file and is refused. Create the zip file again."
        )
    if member.flag_bits & 1:
        raise ExegesisError(
            f"{name}: {member.filename!r} is password-protected. Create the zip file without a password."
        )
    if member.file_size > MAX_FILE_SIZE:
        sizes = f"must unpack to at most {size_text(MAX_FILE_SIZE)}, got {size_text(member.file_size)}. Leave it out."
        raise ExegesisError(f"{name}: {member.filename!r} {sizes}")


def _read_from_zip(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    try:
        with archive.open(member) as file:
            # One byte more than the stated size: a member that unpacks to more is a zip bomb.
            data = file.read(member.file_size + 1)
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError):
        raise ExegesisError(f"{name}: {member.filename!r} is damaged. Save or download the zip again.") from None
    if len(data) > member.file_size:
        raise ExegesisError(f"{name}: {member.filename!r} is larger than it declares and is refused.")
    return data


def read_class_folders(listing: FileListing, split: str | None, limit: int | None) -> ImageDataset:
    """Read the pictures of one split, which defaults to validation, else test, else train, else all."""
    pictures, masks, boxes = _sort_files(listing)
    if not pictures:
        raise ExegesisError(f"{listing.name}: holds no PNG, JPEG, WebP or GIF pictures. Choose one that does.")
    chosen = choose_split(split, pictures)
    # The class folders of all splits; a single folder is not a class.
    folders = tuple(sorted({name for by_class in pictures.values() for name in by_class}))
    names = folders if len(folders) > 1 else ()
    if len(names) > MAX_CLASSES:
        raise ExegesisError(f"{listing.name}: {len(names):,} class folders are too many (at most {MAX_CLASSES:,}).")
    by_class = sorted(pictures[chosen].items())
    rows = interleave([(name, path) for path in paths] for name, paths in by_class)[:limit]
    index = {name: i for i, name in enumerate(names)}
    labels = tuple(index.get(name) for name, _ in rows)

    def open_file(path: PurePosixPath) -> Pixels:
        return open_picture(listing.read(path), f"{listing.name}: {path}")

    def read(i: int) -> ImageExample:
        path = rows[i][1]
        pixels = open_file(path)
        mask: Bool[np.ndarray, "mask_height mask_width"] | None = None
        if (place := masks.get(path.with_suffix(""))) is not None:
            mask = open_file(place).mean(axis=2) >= 128
        elif path in boxes:
            mask = box_mask(boxes[path], *pixels.shape[:2])
        return ImageExample(pixels, labels[i], mask, str(path))

    card = external_card(listing.name, f"the local pictures of {listing.name}", f"{len(rows):,} pictures")
    splits = order_splits(pictures)
    return ImageDataset(
        listing.name, listing.name, names, labels, read, card, listing.revision(), chosen, splits=splits
    )


SortedPictures = dict[str, dict[str, list[PurePosixPath]]]
"""Paths of the pictures by split and class."""


def _sort_files(
    listing: FileListing,
) -> tuple[SortedPictures, dict[PurePosixPath, PurePosixPath], dict[PurePosixPath, list[Box]]]:
    """Sort the files into (pictures, masks by the path of their picture, boxes by picture)."""
    by_folder: dict[PurePosixPath, list[PurePosixPath]] = defaultdict(list)
    boxes: dict[PurePosixPath, list[Box]] = {}
    for path in listing.paths:
        if path.name == BOXES_FILE:
            boxes |= _read_boxes(listing, path)
        elif path.suffix.lower() in PICTURE_SUFFIXES:
            by_folder[path.parent].append(path)
    pictures: SortedPictures = defaultdict(lambda: defaultdict(list))
    masks: dict[PurePosixPath, PurePosixPath] = {}
    for folder, paths in by_folder.items():
        if MASKS_FOLDER in folder.parts:
            parts = list(folder.parts)
            parts.remove(MASKS_FOLDER)
            masks |= {PurePosixPath(*parts, path.stem): path for path in paths}
        else:
            above = folder.parent.name.lower()
            split = SPLIT_ALIASES.get(above, above)
            pictures[split if split in DEFAULT_SPLITS else "all"][folder.name] += paths
    return pictures, masks, boxes


def _read_boxes(listing: FileListing, path: PurePosixPath) -> dict[PurePosixPath, list[Box]]:
    try:
        rows = list(csv.DictReader(io.StringIO(listing.read(path).decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error):
        raise ExegesisError(f"{path}: is not a UTF-8 CSV file. Save it as one.") from None
    boxes: dict[PurePosixPath, list[Box]] = defaultdict(list)
    for number, row in enumerate(rows, start=2):
        try:
            box = (int(row["x0"]), int(row["y0"]), int(row["x1"]), int(row["y1"]))
            boxes[path.parent / row["file"]].append(box)
        except (KeyError, TypeError, ValueError):
            allowed = "the columns file, x0, y0, x1, y1 with whole numbers"
            raise ExegesisError(f"{path}, line {number}: must have {allowed}, got {excerpt(row)}.") from None
    return boxes


def read_arrays(path: Path, split: str | None, limit: int | None) -> ImageDataset:
    """Read a `.npz` file, or a folder with `train.npz`, `val.npz`, `test.npz` (default: validation, else test)."""
    by_split = {"all": path}
    if not path.is_file():
        by_split = {SPLIT_ALIASES.get(file.stem, file.stem): file for file in sorted(path.glob("*.npz"))}
    chosen = choose_split(split, by_split)
    file = by_split[chosen]
    arrays = _load_arrays(file)
    images, boxes = arrays["images"], arrays.get("boxes")
    labels = tuple(arrays["labels"].tolist())[:limit]
    names = tuple(map(str, arrays.get("class_names", [f"class {i}" for i in range(max(labels, default=0) + 1)])))

    def read(i: int) -> ImageExample:
        mask = None
        # A row of zeros means that the picture has no box.
        if boxes is not None and np.any(boxes[i]):
            # Boxes include their last row and column, as in Tiny ImageNet, where the layout comes from.
            x0, y0, x1, y1 = map(int, boxes[i])
            mask = box_mask([(x0, y0, x1 + 1, y1 + 1)], *images[i].shape[:2])
        return ImageExample(images[i], int(labels[i]), mask, f"{file.name} {i}")

    card = external_card(path.name, f"the local pictures of {path.name}", f"{len(labels):,} pictures")
    revision = content_revision([file], {})
    splits = order_splits(by_split)
    return ImageDataset(path.name, path.name, names, labels, read, card, revision, chosen, splits=splits)


def is_arrays(path: Path) -> bool:
    """Whether the path is a `.npz` file or a folder of `.npz` files."""
    return path.suffix.lower() == ".npz" if path.is_file() else path.is_dir() and any(path.glob("*.npz"))


def _load_arrays(file: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_UNPACKED:
                raise ExegesisError(f"{file.name}: must unpack to at most {MAX_UNPACKED // 10**9} GB. Split it.")
        with np.load(file, allow_pickle=False) as content:
            arrays: dict[str, np.ndarray] = {
                n: content[n] for n in ("images", "labels", "boxes", "class_names") if n in content.files
            }
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, MemoryError, RuntimeError):
        raise ExegesisError(f"{file.name}: cannot be read as a .npz file. Save it again: {ARRAY_CONTRACT}.") from None
    if not _keeps_contract(arrays):
        shapes = ", ".join(f"{name} {a.dtype}{list(a.shape)}" for name, a in arrays.items()) or "none of them"
        raise ExegesisError(f"{file.name}: must hold {ARRAY_CONTRACT}, got {shapes}.")
    return arrays


def _keeps_contract(arrays: dict[str, np.ndarray]) -> bool:
    images, labels, boxes = (arrays.get(name) for name in ("images", "labels", "boxes"))
    if images is None or labels is None or images.ndim != 4 or images.shape[3] != 3 or images.dtype != np.uint8:
        return False
    count = len(images)
    if labels.shape != (count,) or labels.dtype.kind not in "iu" or 0 in images.shape:
        return False
    names = arrays.get("class_names")
    classes = MAX_CLASSES if names is None or names.ndim != 1 else len(names)
    return bool(0 <= labels.min() <= labels.max() < classes) and (boxes is None or boxes.shape == (count, 4))


def find_shards(name: str, split: str | None) -> ParquetShards:
    """Find the parquet files of `hub:owner/name[/config][@revision]` or of a local folder, or a single one."""
    if name.startswith(HUB_PREFIX):
        return find_hub_shards(name.removeprefix(HUB_PREFIX), split)
    if Path(name).is_file():
        return find_file_shards(Path(name), split)
    return find_folder_shards(Path(name), split)


def has_picture_column(name: str) -> bool:
    """Whether the first parquet file, which is downloaded if on the hub, has a column of pictures."""
    shards = find_shards(name, None)
    with open_parquet(shards.fetch(shards.files[0])) as file:
        return bool(_picture_columns(file.schema_arrow))


@dataclass(frozen=True)
class _RowGroup:
    """A row group: its file, its number in the file, and the index of its first row in the split."""

    file: str
    number: int
    first: int


def read_picture_shards(shards: ParquetShards, columns: Mapping[str, str] | None, limit: int | None) -> ImageDataset:
    """Read the pictures of a split in order. All labels are read at once, each picture when it is needed.

    `columns` maps `image`, `label` and `mask`; the defaults are the first column of pictures, the column `label` or
    else the first with named classes, and the column `object_mask`. Masks are pictures, white where the object is.
    """
    roles = _resolve_columns(shards, columns or {})
    label = roles.get("label")
    groups, raw = _read_groups(shards, label, limit)
    if not raw:
        raise ExegesisError(f"{shards.source}: has no examples. Give a file with at least one picture.")
    names = read_class_names(shards).get(label) if label else None
    # On the hub, -1 marks an unknown class.
    known = [None if value == -1 else value for value in raw]
    labels = read_labels(known, [f"{shards.source}, row {i}" for i in range(len(known))], names)
    if labels.task != "classification":
        raise ExegesisError(f"{shards.source}: its column {label!r} holds scores. Map label to a column of classes.")
    values = tuple(None if value is None else int(value) for value in labels.values)
    cells = {
        role: functools.lru_cache(maxsize=CACHED_GROUPS)(functools.partial(_read_cells, shards, roles[role]))
        for role in ("image", "mask")
        if role in roles
    }

    def read(i: int) -> ImageExample:
        group = next(g for g in reversed(groups) if g.first <= i)
        name = f"{shards.source}, {shards.split} row {i}"
        encoded, masked = (cells[role](group)[i - group.first] if role in cells else None for role in ("image", "mask"))
        pixels, mask = _decode(encoded, name), _decode(masked, f"{name}: mask")
        if pixels is None:
            raise ExegesisError(f"{name}: has no picture in it, got {excerpt(encoded)}.")
        return ImageExample(pixels, values[i], None if mask is None else mask.mean(axis=2) >= 128, name=name)

    card = external_card(shards.source, shards.source, f"{len(values):,} pictures of {shards.split}")
    return ImageDataset(
        shards.source, shards.source, labels.names, values, read, card, shards.revision, shards.split,
        splits=shards.splits,
    )  # fmt: skip


def _resolve_columns(shards: ParquetShards, columns: Mapping[str, str]) -> dict[str, str]:
    """Complete the mapping of roles to columns. Errors: an unknown role or column; a column without pictures."""
    for role in columns:
        if role not in PICTURE_ROLES:
            raise unknown("columns", role, PICTURE_ROLES)
    with open_parquet(shards.fetch(shards.files[0])) as file:
        schema = file.schema_arrow
    for column in columns.values():
        if column not in schema.names:
            raise unknown("columns", column, schema.names)
    pictures = _picture_columns(schema)
    if not pictures:
        raise ExegesisError(f"{shards.source}: has no column of pictures among {', '.join(schema.names)}.")
    for role in ("image", "mask"):
        if columns.get(role, pictures[0]) not in pictures:
            raise UsageError(
                f"columns: {columns[role]!r} holds no pictures. Columns with pictures: {', '.join(pictures)}."
            )
    masks = columns.get("mask", MASK_COLUMN)
    usual = {"image": next((name for name in pictures if name != masks), masks)}
    if named := [name for name in ("label", *read_class_names(shards)) if name in schema.names]:
        usual["label"] = named[0]
    if masks in pictures and masks != columns.get("image", usual["image"]):
        usual["mask"] = masks
    return usual | dict(columns)


def _picture_columns(schema: pyarrow.Schema) -> list[str]:
    """Return the names of the columns of bytes, or of records with a field `bytes`, as the hub stores pictures."""

    def of_bytes(kind: Any) -> bool:
        if pyarrow.types.is_struct(kind):
            place = kind.get_field_index("bytes")
            return place >= 0 and of_bytes(kind.field(place).type)
        return bool(pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind))

    return [field.name for field in schema if of_bytes(field.type)]


def _read_groups(shards: ParquetShards, label: str | None, limit: int | None) -> tuple[list[_RowGroup], list[object]]:
    """Read (row groups, label of every row) up to the limit; later files are not fetched."""
    groups: list[_RowGroup] = []
    labels: list[object] = []
    for name in shards.files:
        if limit is not None and len(labels) >= limit:
            break
        with open_parquet(shards.fetch(name)) as file:
            for number in range(file.num_row_groups):
                rows = file.metadata.row_group(number).num_rows
                groups.append(_RowGroup(name, number, len(labels)))
                labels += file.read_row_group(number, [label])[label].to_pylist() if label else [None] * rows
    return groups, labels[:limit]


def _decode(cell: Any, name: str) -> Pixels | None:
    """Decode the picture of a cell: bytes, or a record with a field `bytes`; None if it has none."""
    data = cell.get("bytes") if isinstance(cell, dict) else cell
    return open_picture(data, name) if isinstance(data, bytes) else None


def _read_cells(shards: ParquetShards, column: str, group: _RowGroup) -> list[Any]:
    with open_parquet(shards.fetch(group.file)) as file:
        return file.read_row_group(group.number, [column])[column].to_pylist()
