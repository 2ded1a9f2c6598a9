"""Registry of picture sets, and `load_images`, for registered names, zips, folders, `.npz` and parquet files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from engine import access
from engine.data.examples import ImageDataset, ImageExample
from engine.data.generation import hash_values
from engine.data.hub import HUB_PREFIX
from engine.data.image_readers import (
    PICTURE_SUFFIXES,
    find_shards,
    has_picture_column,
    is_arrays,
    list_folder,
    list_zip,
    read_arrays,
    read_class_folders,
    read_picture_shards,
    walk_files,
)
from engine.data.registry import (
    DatasetRegistry,
    LoadRequest,
    choose_split,
    data_root,
    order_splits,
    parse_options,
    read_card,
    reject_options,
)
from engine.data.scenes import load_marked_scenes, load_scenes, read_surface
from engine.data.slices import load_slice, split_slice, whole_name
from engine.errors import ExegesisError, UsageError, excerpt, unknown
from engine.lazy import skimage, sklearn

Pixels = UInt8[np.ndarray, "height width 3"]

DIGIT_SPLITS: Mapping[str, slice] = {"train": slice(0, 1297), "test": slice(1297, None)}
"""Contiguous, not random: the digits are ordered by writer, so that most test writers are unseen in training."""
DIGIT_SCALE = 4
"""Side in pixels of the square drawn for each of the 8 x 8 gray values: one patch of digits-vit."""


@dataclass(frozen=True)
class Photo:
    """A sample photograph of scikit-learn or scikit-image, with a description."""

    library: str
    name: str
    shows: str


PHOTOS = (
    Photo("skimage", "cat", "Chelsea the cat"),
    Photo("skimage", "astronaut", "the astronaut Eileen Collins before a model of the Space Shuttle"),
    Photo("skimage", "coffee", "a cup of coffee and a spoon"),
    Photo("skimage", "rocket", "a Falcon 9 rocket on its pad at dusk"),
    Photo("sklearn", "flower", "a dahlia"),
    Photo("sklearn", "china", "a temple in China"),
    Photo("skimage", "camera", "a man with a camera on a tripod"),
    Photo("skimage", "motorcycle", "a motorcycle in a garage"),
    Photo("skimage", "coins", "Greek coins from Pompeii"),
    Photo("skimage", "clock", "a clock, blurred by motion"),
    Photo("skimage", "hubble_deep_field", "galaxies of the Hubble Deep Field"),
    Photo("skimage", "moon", "the surface of the moon"),
)
"""The descriptions are part of the revision of `photos`."""

ImageLoader = Callable[[LoadRequest], ImageDataset]
_LOADERS: DatasetRegistry[ImageLoader] = DatasetRegistry()
register = _LOADERS.register
image_names = _LOADERS.sorted_names
image_card = _LOADERS.card
registered_name = _LOADERS.registered_name


def is_images(name_or_path: str | Path) -> bool:
    """Whether a data set contains pictures, by its name or its files; parquet files are opened."""
    access.check_dataset(str(name_or_path))
    name = whole_name(str(name_or_path))
    path = Path(name)
    if registered_name(name):
        return True
    if not name:
        return False
    if name.startswith(HUB_PREFIX):
        return has_picture_column(name)
    try:
        if _has_parquet(path):
            return has_picture_column(name)
        if path.is_dir():
            return is_arrays(path) or any(file.suffix.lower() in PICTURE_SUFFIXES for file in walk_files(path))
        return path.is_file() and path.suffix.lower() in (".zip", ".npz")
    except OSError:  # not a valid file name
        return False


def _has_parquet(path: Path) -> bool:
    """Whether the path is a parquet file or a folder of them."""
    if path.is_file():
        return path.suffix.lower() == ".parquet"
    return path.is_dir() and not is_arrays(path) and any(file.suffix == ".parquet" for file in walk_files(path))


def load_images(
    name_or_path: str | Path,
    split: str | None = None,
    limit: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> ImageDataset:
    """Load a data set of pictures by name, file, folder, or hub id (`hub:owner/name[/config][@revision]`).

    A registered name may have options (`scenes:seed=7,count=500`). Files are a zip of class folders, a `.npz` or a
    parquet file; folders hold class folders, `.npz` or parquet files. A slice of any data set can be loaded
    (`scenes:slice=hard,rows=3+7-9`).

    `columns` maps image, label and mask to columns of parquet files. `limit` is the maximum number of examples. The
    default split is validation, else test, else train.
    """
    name, path = str(name_or_path), Path(name_or_path)
    request = LoadRequest(split, columns, limit)
    access.check_dataset(name)
    whole, part = split_slice(name)
    if part:
        return load_slice(name, part, functools.partial(load_images, whole, split, None, columns), limit)
    registered = registered_name(name)
    try:
        if not registered and name and (name.startswith(HUB_PREFIX) or _has_parquet(path)):
            return read_picture_shards(find_shards(name, split), columns, limit)
        if columns:
            raise UsageError("columns: only parquet files have columns. Leave columns out.")
        if registered:
            return replace(_LOADERS[registered](replace(request, options=parse_options(name))), id=name)
        if not name or not path.exists():
            other = "Or name a zip, a folder with class folders, a .npz or hub:owner/name."
            raise UsageError(f"{unknown('dataset', name, _LOADERS)} {other}")
        if is_arrays(path):
            return replace(read_arrays(path, split, limit), id=name)
        listing = list_folder(path) if path.is_dir() else list_zip(path)
        return replace(read_class_folders(listing, split, limit), id=name)
    except OSError as error:
        raise ExegesisError(f"dataset: {excerpt(name)} cannot be read ({error.strerror}). Check the path.") from None


register("scenes")(load_scenes)
register("scenes-marked")(load_marked_scenes)


@register("digits")
def _load_digits(request: LoadRequest) -> ImageDataset:
    """Load scikit-learn's handwritten digits, light on dark, 32 x 32 pixels."""
    reject_options("digits", request.options)
    split = choose_split(request.split, DIGIT_SPLITS)
    levels, targets = _read_digits()
    images, labels = levels[DIGIT_SPLITS[split]][: request.limit], targets[DIGIT_SPLITS[split]][: request.limit]

    def read(i: int) -> ImageExample:
        # Gray levels range from 0 to 16.
        gray = (images[i] * 255 / 16).round().astype(np.uint8).repeat(DIGIT_SCALE, 0).repeat(DIGIT_SCALE, 1)
        return ImageExample(np.repeat(gray[..., None], 3, axis=2), int(labels[i]), name=f"{split} {i}")

    card = read_card("digits")
    revision = hash_values("digits", images.tobytes(), labels.tobytes())
    names, splits = tuple(str(i) for i in range(10)), order_splits(DIGIT_SPLITS)
    return ImageDataset("digits", card.title, names, tuple(labels.tolist()), read, card, revision, split, splits=splits)


@functools.cache
def _read_digits() -> tuple[np.ndarray, np.ndarray]:
    digits = sklearn.datasets.load_digits()
    return digits.images, digits.target


@register("photos")
def _load_photos(request: LoadRequest) -> ImageDataset:
    """Load photographs without labels, for models of natural pictures."""
    reject_options("photos", request.options)
    if request.split not in (None, "all"):
        raise UsageError(f"split: photos has no splits, got {request.split!r}. Leave split out.")
    photos = PHOTOS[: request.limit]

    def read(i: int) -> ImageExample:
        return ImageExample(_read_photo(photos[i]), name=photos[i].name, extra={"shows": photos[i].shows})

    card = read_card("photos")
    return ImageDataset("photos", card.title, (), (None,) * len(photos), read, card, hash_values("photos", 1, photos))


@functools.cache
def _read_photo(photo: Photo) -> Pixels:
    if photo.library == "sklearn":
        return np.array(sklearn.datasets.load_sample_image(f"{photo.name}.jpg"))
    if photo.name == "motorcycle":  # half of a stereo pair, whose loader would download a third file
        return skimage.io.imread(f"{skimage.data.__path__[0]}/motorcycle_left.png")
    return read_surface(photo.name)


@register("cifar10")
def _load_cifar10(request: LoadRequest) -> ImageDataset:
    """Load CIFAR-10 from a zip of class folders in `EXEGESIS_DATA`."""
    reject_options("cifar10", request.options)
    path = data_root() / "cifar10.zip"
    if not path.is_file():
        raise ExegesisError(
            f"cifar10: is not in {path.parent}. Put cifar10.zip there (train and test folders of class folders), "
            "or set EXEGESIS_DATA to the folder that holds it."
        )
    card = read_card("cifar10")
    data = read_class_folders(list_zip(path), request.split, request.limit)
    return replace(data, id="cifar10", title=card.title, card=card)
