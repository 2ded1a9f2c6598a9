"""Pictures of the hub, and of local folders laid out the same way: parquet files with a column of encoded pictures."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.data.cards import own_card
from engine.data.hub import Shards, class_names, folder_shards, hub_shards, opened
from engine.data.images.examples import ImageDataset, ImageExample
from engine.data.images.opening import open_picture
from engine.data.labels import read_labels
from engine.errors import ExegesisError, UsageError, shown, unknown

if TYPE_CHECKING:
    import pyarrow

HUB = "hub:"
GROUPS_KEPT = 2
"""Row groups whose encoded pictures stay in memory: whoever reads in order reads each group once."""
ROLES = ("image", "label")


@dataclass(frozen=True)
class _Group:
    """One row group: its file, its number there, and the place of its first row in the whole."""

    file: str
    number: int
    first: int


def shards_of(name: str, split: str | None) -> Shards:
    """The parquet files of `hub:owner/name[/config][@revision]` or of a local folder."""
    if name.startswith(HUB):
        return hub_shards(name.removeprefix(HUB), split)
    return folder_shards(Path(name), split)


def holds_pictures(name: str) -> bool:
    """Whether its first parquet file has a column of pictures; on the hub that file is fetched."""
    shards = shards_of(name, None)
    with opened(shards.fetch(shards.files[0])) as file:
        return bool(_picture_columns(file.schema_arrow))


def from_shards(
    shards: Shards, columns: Mapping[str, str] | None, limit: int | None, names: Sequence[str] | None = None
) -> ImageDataset:
    """The pictures of a split in their own order; only labels are read until a picture is asked for.

    `columns` says which column is `image` and which `label`; else the first with pictures, and `label` or the first
    with named classes. `names`: the classes, where the files do not name them.
    """
    image, label = _columns(shards, columns or {})
    groups, raw = _groups(shards, label, limit)
    known = names or (class_names(shards).get(label) if label else None)
    # The hub writes -1 where a class is not known.
    told = [None if value == -1 else value for value in raw]
    labels = read_labels(told, [f"{shards.source}, row {i}" for i in range(len(told))], known)
    if labels.task != "classification":
        raise ExegesisError(f"{shards.source}: its column {label!r} holds scores. Map label to a column of classes.")
    values = tuple(None if value is None else int(value) for value in labels.values)
    pictures = functools.lru_cache(maxsize=GROUPS_KEPT)(functools.partial(_pictures, shards, image))

    def read(i: int) -> ImageExample:
        group = next(g for g in reversed(groups) if g.first <= i)
        name = f"{shards.source}, {shards.split} row {i}"
        return ImageExample(open_picture(_encoded(pictures(group)[i - group.first], name), name), values[i], name=name)

    card = own_card(shards.source, shards.source, f"{len(values):,} pictures of {shards.split}")
    return ImageDataset(
        shards.source, shards.source, labels.names, values, read, card, shards.revision, shards.split,
        splits=shards.splits,
    )  # fmt: skip


def _columns(shards: Shards, asked: Mapping[str, str]) -> tuple[str, str | None]:
    for role in asked:
        if role not in ROLES:
            raise unknown("columns", role, ROLES)
    with opened(shards.fetch(shards.files[0])) as file:
        schema = file.schema_arrow
    for column in asked.values():
        if column not in schema.names:
            raise unknown("columns", column, schema.names)
    pictures = _picture_columns(schema)
    if not pictures:
        raise ExegesisError(f"{shards.source}: has no column of pictures among {', '.join(schema.names)}.")
    if asked.get("image", pictures[0]) not in pictures:
        raise UsageError(f"columns: {asked['image']!r} holds no pictures. Of pictures: {', '.join(pictures)}.")
    named = [name for name in ("label", *class_names(shards)) if name in schema.names]
    return asked.get("image", pictures[0]), asked.get("label", named[0] if named else None)


def _picture_columns(schema: pyarrow.Schema) -> list[str]:
    """Columns of bytes, or of records with a field `bytes`, as the hub stores pictures."""
    from pyarrow import types

    def of_bytes(kind: Any) -> bool:
        if types.is_struct(kind):
            place = kind.get_field_index("bytes")
            return place >= 0 and of_bytes(kind.field(place).type)
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    return [field.name for field in schema if of_bytes(field.type)]


def _groups(shards: Shards, label: str | None, limit: int | None) -> tuple[list[_Group], list[object]]:
    """The row groups up to the limit, and the label of every row; files beyond it are not fetched."""
    groups: list[_Group] = []
    labels: list[object] = []
    for name in shards.files:
        if limit is not None and len(labels) >= limit:
            break
        with opened(shards.fetch(name)) as file:
            for number in range(file.num_row_groups):
                rows = file.metadata.row_group(number).num_rows
                groups.append(_Group(name, number, len(labels)))
                labels += file.read_row_group(number, [label])[label].to_pylist() if label else [None] * rows
    return groups, labels[:limit]


def _pictures(shards: Shards, column: str, group: _Group) -> list[Any]:
    with opened(shards.fetch(group.file)) as file:
        return file.read_row_group(group.number, [column])[column].to_pylist()


def _encoded(value: Any, name: str) -> bytes:
    data = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(data, bytes):
        raise ExegesisError(f"{name}: has no picture in it, got {shown(value)}.")
    return data
