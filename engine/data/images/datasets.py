"""The registry of picture sets, and `load_images`: by registered name, zip, folder or `.npz`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine import access
from engine.data.cards import read_card
from engine.data.images import generated
from engine.data.images.arrays import from_arrays, is_arrays
from engine.data.images.carried import digits, photos
from engine.data.images.class_folders import from_listing
from engine.data.images.examples import ImageDataset, ImageExample
from engine.data.images.generated import MarkedParams, SceneParams
from engine.data.images.listing import SUFFIXES, files_below, list_folder, list_zip
from engine.data.images.parquet import HUB, from_shards, holds_pictures, shards_of
from engine.data.named import Named, options_of, without_options
from engine.data.sst2 import data_root
from engine.errors import ExegesisError, UsageError, not_allowed, shown, unknown
from engine.params import from_mapping

__all__ = [
    "HUB",
    "Asked",
    "ImageDataset",
    "ImageExample",
    "image_card",
    "image_names",
    "is_images",
    "load_images",
    "register",
]


@dataclass(frozen=True)
class Asked:
    """What the caller of `load_images` asked for; None means the data set's own."""

    split: str | None = None
    limit: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


Loader = Callable[[Asked], ImageDataset]
_LOADERS: Named[Loader] = Named()
register = _LOADERS.enter
image_names = _LOADERS.names
image_card = _LOADERS.card
registered = _LOADERS.registered


def is_images(name_or_path: str | Path) -> bool:
    """Whether a data set is one of pictures: by its name or its files; parquet files are looked into."""
    access.check_dataset(str(name_or_path))
    if registered(str(name_or_path)):
        return True
    path = Path(name_or_path)
    if str(name_or_path).startswith(HUB):
        return holds_pictures(str(name_or_path))
    try:
        return _holds_pictures(path)
    except OSError:  # a name that no file can have
        return False


def _holds_pictures(path: Path) -> bool:
    if _only_parquet(path):
        return holds_pictures(str(path))
    if path.is_dir():
        return is_arrays(path) or any(file.suffix.lower() in SUFFIXES for file in files_below(path))
    return path.is_file() and path.suffix.lower() in (".zip", ".npz")


def load_images(
    name_or_path: str | Path,
    split: str | None = None,
    limit: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> ImageDataset:
    """A registered picture set, perhaps with options (`scenes:seed=7,count=500`), a zip or folder with class folders,
    a `.npz`, or parquet files of pictures: a folder of them or `hub:owner/name[/config][@revision]`.

    `columns` maps image and label to columns of parquet files. `limit` keeps the first examples. Without a split:
    validation, else test, else train.
    """
    if limit is not None and (type(limit) is not int or limit < 1):
        raise not_allowed("limit", "a whole number of 1 or more", limit)
    name = str(name_or_path)
    access.check_dataset(name)
    if known := registered(name):
        _without_columns(columns)
        return replace(_LOADERS[known](Asked(split, limit, options_of(name))), id=name)
    try:
        if name.startswith(HUB) or _only_parquet(Path(name)):
            return from_shards(shards_of(name, split), columns, limit)
        _without_columns(columns)
        return replace(_from_path(name, split, limit), id=name)
    except OSError as error:
        raise ExegesisError(f"dataset: {shown(name)} cannot be read ({error.strerror}). Check the path.") from None


def _without_columns(columns: Mapping[str, str] | None) -> None:
    if columns:
        raise UsageError("columns: only parquet files have columns. Leave columns out.")


def _only_parquet(path: Path) -> bool:
    return path.is_dir() and not is_arrays(path) and any(file.suffix == ".parquet" for file in files_below(path))


def _from_path(name: str, split: str | None, limit: int | None) -> ImageDataset:
    path = Path(name)
    if not name or not path.exists():
        other = "Or name a zip, a folder with class folders, a .npz or hub:owner/name."
        raise UsageError(f"{unknown('dataset', name, _LOADERS)} {other}")
    if is_arrays(path):
        return from_arrays(path, split, limit)
    return from_listing(list_folder(path) if path.is_dir() else list_zip(path), split, limit)


@register("scenes")
def _scenes(asked: Asked) -> ImageDataset:
    return generated.scenes(from_mapping(SceneParams, asked.options, "scenes"), asked.split, asked.limit)


@register("scenes-marked")
def _scenes_marked(asked: Asked) -> ImageDataset:
    params = from_mapping(MarkedParams, asked.options, "scenes-marked")
    return generated.scenes_marked(params, asked.split, asked.limit)


@register("digits")
def _digits(asked: Asked) -> ImageDataset:
    without_options("digits", asked.options)
    return digits(asked.split, asked.limit)


@register("photos")
def _photos(asked: Asked) -> ImageDataset:
    without_options("photos", asked.options)
    return photos(asked.split, asked.limit)


@register("cifar10")
def _cifar10(asked: Asked) -> ImageDataset:
    without_options("cifar10", asked.options)
    path = data_root() / "cifar10.zip"
    if not path.is_file():
        raise ExegesisError(
            f"cifar10: is not in {path.parent}. Put cifar10.zip there (train and test folders of class folders), "
            "or set EXEGESIS_DATA to the folder that holds it."
        )
    card = read_card("cifar10")
    found = from_listing(list_zip(path), asked.split, asked.limit)
    return replace(found, id="cifar10", title=card.title, card=card)
