"""How a model sees pictures, known from the files beside its weights: nothing is loaded, torch is not needed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, UInt8

from engine.errors import ExegesisError, shown
from engine.models import catalog
from engine.models.catalog import config_labels
from engine.vision.adapters import adapter_for
from engine.vision.picture import both_sides, patch_mask
from engine.vision.preprocessing import Preprocessing, check_sizes, read_preprocessing

STATED_BY_NOBODY = {"image_size": 224, "patch_size": 16, "num_channels": 3, "num_labels": 2}
"""What transformers takes for ViT and DeiT where a config.json does not say."""


@dataclass(frozen=True)
class View:
    """The eyes of one model. `size` and `patch` are height and width in pixels, `grid` rows and columns of patches."""

    model: str
    revision: str
    preprocessing: Preprocessing
    size: tuple[int, int]
    patch: tuple[int, int]
    grid: tuple[int, int]
    specials: int
    """How many positions come before the patches."""
    labels: tuple[str, ...]

    def seen(self, pixels: UInt8[np.ndarray, "height width 3"]) -> UInt8[np.ndarray, "seen_height seen_width 3"]:
        """A picture as the model sees it."""
        return self.preprocessing.seen(pixels)

    def seen_mask(self, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "seen_height seen_width"]:
        """Where the pixels of a picture's mask are in what the model sees."""
        return self.preprocessing.seen_mask(mask)

    def patches(self, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "row column"]:
        """The patches that belong to a picture's mask: of the picture as it came, not as the model sees it."""
        return patch_mask(self.seen_mask(mask), self.patch)

    def as_told(self) -> dict[str, str]:
        """What it reads, in words."""
        (rows, columns), (height, width) = self.grid, self.patch
        return {
            "picture": f"{self.size[1]} x {self.size[0]} pixels",
            "patches": f"{rows} rows x {columns} columns of {width} x {height} pixels",
        }


def view_of(model: str) -> View:
    """The view of an embedded model, a folder or a hub id; read again when its files change.

    Errors: as of `load_image_model`, but for what only the weights can tell.
    """
    return _view(model, catalog.revision(model))


@functools.lru_cache(maxsize=64)
def _view(model: str, revision: str) -> View:
    source = catalog.locate(model)
    config = STATED_BY_NOBODY | catalog.config(source)
    adapter = adapter_for(config.get("model_type", ""), config.get("architectures") or [], source.id)
    preprocessing = read_preprocessing(source.folder, source.id)
    with sense_of(source.id):
        size, patch = both_sides(config["image_size"]), both_sides(config["patch_size"])
        grid = size[0] // patch[0], size[1] // patch[1]
        channels, labels = int(config["num_channels"]), config_labels(config)
    check_sizes(source.id, preprocessing, size, channels)
    return View(model, revision, preprocessing, size, patch, grid, len(adapter.specials), labels)


@contextlib.contextmanager
def sense_of(model: str) -> Iterator[None]:
    """What a config.json that makes no sense raises, as one sentence."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise ExegesisError(
            f"model {model}: its config.json makes no sense ({type(error).__name__}: {shown(str(error))}). "
            "Download or save it again."
        ) from error
