"""`digits` and `photos`: pictures that scikit-learn and scikit-image bring along."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from engine.data.cards import read_card
from engine.data.images.examples import ImageDataset, ImageExample
from engine.data.sized import digest
from engine.errors import UsageError, unknown

Pixels = UInt8[np.ndarray, "height width 3"]

DIGIT_SPLITS: Mapping[str, slice] = {"train": slice(0, 1297), "test": slice(1297, None)}
"""By place, not by chance: the digits stand writer after writer, so that most test writers are new."""
DIGITS_SHOWN = ("test", "train")
"""The splits, the usual one first."""
ENLARGED = 4
"""Each of the 8 x 8 grey values becomes a square of so many pixels: one patch of digits-vit."""


@dataclass(frozen=True)
class Photo:
    """One carried photograph: where it is and what it shows."""

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


def digits(split: str | None, limit: int | None) -> ImageDataset:
    """Scikit-learn's handwritten digits, light on dark, 32 x 32 pixels."""
    chosen = DIGITS_SHOWN[0] if split is None else split
    if chosen not in DIGIT_SPLITS:
        raise unknown("split", split, DIGIT_SPLITS)
    levels, targets = _digits()
    images, labels = levels[DIGIT_SPLITS[chosen]][:limit], targets[DIGIT_SPLITS[chosen]][:limit]

    def read(i: int) -> ImageExample:
        # Levels run from 0 to 16.
        grey = (images[i] * 255 / 16).round().astype(np.uint8).repeat(ENLARGED, 0).repeat(ENLARGED, 1)
        return ImageExample(np.repeat(grey[..., None], 3, axis=2), int(labels[i]), name=f"{chosen} {i}")

    card = read_card("digits")
    revision = digest("digits", images.tobytes(), labels.tobytes())
    names = tuple(str(i) for i in range(10))
    values = tuple(labels.tolist())
    return ImageDataset("digits", card.title, names, values, read, card, revision, chosen, splits=DIGITS_SHOWN)


def photos(split: str | None, limit: int | None) -> ImageDataset:
    """Photographs without labels, for looking at models of natural pictures."""
    if split not in (None, "all"):
        raise UsageError(f"split: photos has no splits, got {split!r}. Leave split out.")
    chosen = PHOTOS[:limit]

    def read(i: int) -> ImageExample:
        return ImageExample(_photo(chosen[i]), name=chosen[i].name, extra={"shows": chosen[i].shows})

    card = read_card("photos")
    return ImageDataset("photos", card.title, (), (None,) * len(chosen), read, card, digest("photos", 1, chosen))


@functools.cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    found = load_digits()
    return found.images, found.target


@functools.cache
def _photo(photo: Photo) -> Pixels:
    pixels = _LIBRARIES[photo.library](photo.name)
    return pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2)


def _of_skimage(name: str) -> np.ndarray:
    from skimage import data, io

    if name == "motorcycle":
        # Only as a stereo pair: `data.stereo_motorcycle` would ask for a third file that is not carried.
        return io.imread(f"{data.__path__[0]}/motorcycle_left.png")
    return np.array(getattr(data, name)())


def _of_sklearn(name: str) -> np.ndarray:
    from sklearn.datasets import load_sample_image

    return np.array(load_sample_image(f"{name}.jpg"))


_LIBRARIES: Mapping[str, Callable[[str], np.ndarray]] = {"skimage": _of_skimage, "sklearn": _of_sklearn}
