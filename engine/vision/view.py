"""A model's view of pictures, from the files beside its weights: preprocessing, sizes, patches, labels.

Nothing is loaded, and torch is not needed.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image

from engine.errors import ExegesisError, excerpt
from engine.models import catalog
from engine.models.catalog import PROCESSOR, config_labels
from engine.vision.adapters import find_adapter
from engine.vision.picture import both_sides, patch_mask

RESAMPLING = tuple(kind.value for kind in Image.Resampling)
HALVES = (0.5, 0.5, 0.5)
CONFIG_DEFAULTS = {"image_size": 224, "patch_size": 16, "num_channels": 3, "num_labels": 2}
"""The defaults of transformers for ViT and DeiT, where a config.json does not state them."""


@dataclass(frozen=True)
class Preprocessing:
    """Resize, then crop the middle, then scale and normalize; each step only where it is stated.

    `resize` is (height, width), or (shortest side,) which keeps the aspect ratio; `crop` is (height, width).
    """

    resize: tuple[int, ...]
    crop: tuple[int, int] | None
    resample: int
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def transform(self, pixels: UInt8[np.ndarray, "height width 3"]) -> UInt8[np.ndarray, "new_height new_width 3"]:
        """Resize and crop a picture, still in colors that people can look at."""
        return np.asarray(self._place(Image.fromarray(pixels), self.resample))

    def transform_mask(self, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "new_height new_width"]:
        """Resize and crop a mask like its picture: True where at least half of a pixel is covered."""
        levels = Image.fromarray(mask.astype(np.uint8) * 255)
        return np.asarray(self._place(levels, Image.Resampling.BOX.value)) >= 128

    def normalize(self, pixels: UInt8[np.ndarray, "height width 3"]) -> Float[np.ndarray, "3 height width"]:
        """The numbers that the model reads, float32, of a transformed picture."""
        scaled = pixels.astype(np.float64) * self.scale
        values = (scaled - np.array(self.mean)) / np.array(self.std)
        return values.transpose(2, 0, 1).astype(np.float32)

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of a transformed picture of that size."""
        return self.crop or self._target(height, width) or (height, width)

    def _place(self, image: Image.Image, resample: int) -> Image.Image:
        target = self._target(image.height, image.width)
        if target and target != (image.height, image.width):
            image = image.resize((target[1], target[0]), Image.Resampling(resample))
        return image if self.crop is None else _crop_middle(image, *self.crop)

    def _target(self, height: int, width: int) -> tuple[int, int] | None:
        if len(self.resize) != 1:
            return self.resize or None  # type: ignore[return-value]
        short, long = sorted((height, width))
        length = int(self.resize[0] * long / short)
        return (self.resize[0], length) if height <= width else (length, self.resize[0])


def read_preprocessing(folder: Path, model: str) -> Preprocessing:
    """Read the preprocessing of a checkpoint's folder. Errors: there is none, or its values are not valid."""
    file = folder / PROCESSOR
    if not file.is_file():
        raise ExegesisError(
            f"model {model}: no {PROCESSOR} in its folder, so its preprocessing is unknown. "
            "Save its image processor in that folder with save_pretrained."
        )
    try:
        return _parse(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ExegesisError(
            f"model {model}: its {PROCESSOR} is invalid ({type(error).__name__}: {excerpt(str(error))}). "
            "Download or save it again."
        ) from error


def check_sizes(model: str, preprocessing: Preprocessing, size: tuple[int, int], channels: int) -> None:
    """Refuse a model whose preprocessing does not give pictures of the size that it reads."""
    if channels != 3:
        raise ExegesisError(f"model {model}: reads pictures of {channels} channels; 3 (red, green, blue) are needed.")
    # With only the shortest side stated the aspect ratio is kept: then only a crop makes all pictures of one size.
    for height, width in ((100, 100), (100, 150)):
        got = preprocessing.output_size(height, width)
        if got != size:
            raise ExegesisError(
                f"model {model}: reads {_size_text(size)} pixels, but its preprocessing gives {_size_text(got)}. "
                f"Correct size and crop_size in its {PROCESSOR}."
            )


def _parse(stated: Mapping[str, Any]) -> Preprocessing:
    """Parse a config. Steps without mention are done, as transformers does for ViT and DeiT, except for a crop."""
    normalizes = stated.get("do_normalize", True)
    return Preprocessing(
        resize=_parse_sides(stated.get("size", 224)) if stated.get("do_resize", True) else (),
        crop=_parse_crop(stated),
        resample=_parse_resample(stated.get("resample", Image.Resampling.BILINEAR.value)),
        scale=float(stated.get("rescale_factor", 1 / 255)) if stated.get("do_rescale", True) else 1.0,
        mean=_parse_three(stated.get("image_mean", HALVES)) if normalizes else (0.0, 0.0, 0.0),
        std=_parse_three(stated.get("image_std", HALVES)) if normalizes else (1.0, 1.0, 1.0),
    )


def _parse_sides(size: Any) -> tuple[int, ...]:
    if isinstance(size, int):
        return size, size
    if "shortest_edge" in size:
        return (int(size["shortest_edge"]),)
    return int(size["height"]), int(size["width"])


def _parse_crop(stated: Mapping[str, Any]) -> tuple[int, int] | None:
    if not stated.get("do_center_crop", str(stated.get("image_processor_type", "")).startswith("DeiT")):
        return None
    sides = _parse_sides(stated.get("crop_size", 224))
    return sides[0], sides[-1]


def _parse_resample(kind: int) -> int:
    if kind not in RESAMPLING:
        raise ValueError(f"resample: must be one of {RESAMPLING}, got {kind}")
    return kind


def _parse_three(values: Any) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if len(numbers) != 3 or not np.isfinite(numbers).all():
        raise ValueError(f"image_mean and image_std: must be three numbers, got {values}")
    return numbers


def _crop_middle(image: Image.Image, height: int, width: int) -> Image.Image:
    """The middle of the picture; a picture that is too small gets a black border."""
    top, left = (image.height - height) // 2, (image.width - width) // 2
    return image.crop((left, top, left + width, top + height))


def _size_text(size: tuple[int, int]) -> str:
    return f"{size[1]} x {size[0]}"


@dataclass(frozen=True)
class ModelView:
    """The preprocessing of one model's pictures.

    `size` and `patch` are height and width in pixels, `grid` rows and columns of patches.
    """

    model: str
    revision: str
    preprocessing: Preprocessing
    size: tuple[int, int]
    patch: tuple[int, int]
    grid: tuple[int, int]
    specials: int
    """The number of positions before the patches."""
    labels: tuple[str, ...]

    def transform(self, pixels: UInt8[np.ndarray, "height width 3"]) -> UInt8[np.ndarray, "new_height new_width 3"]:
        """A picture as the model sees it."""
        return self.preprocessing.transform(pixels)

    def transform_mask(self, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "new_height new_width"]:
        """A picture's mask in the coordinates of the picture as the model sees it."""
        return self.preprocessing.transform_mask(mask)

    def patches(self, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "row column"]:
        """The patches that belong to a mask of the original picture, before preprocessing."""
        return patch_mask(self.transform_mask(mask), self.patch)

    def describe(self) -> dict[str, str]:
        """The sizes of pictures and patches in words."""
        (rows, columns), (height, width) = self.grid, self.patch
        return {
            "picture": f"{self.size[1]} x {self.size[0]} pixels",
            "patches": f"{rows} rows x {columns} columns of {width} x {height} pixels",
        }


def read_view(model: str) -> ModelView:
    """Read the view of an embedded model, a folder or a hub id; it is read again when its files change.

    Errors: those of `load_image_model`, except for faults of the weights.
    """
    return _cached_view(model, catalog.revision(model))


@functools.lru_cache(maxsize=64)
def _cached_view(model: str, revision: str) -> ModelView:
    source = catalog.locate(model)
    config = CONFIG_DEFAULTS | catalog.config(source)
    adapter = find_adapter(config.get("model_type", ""), config.get("architectures") or [], source.id)
    preprocessing = read_preprocessing(source.folder, source.id)
    with config_errors(source.id):
        size, patch = both_sides(config["image_size"]), both_sides(config["patch_size"])
        grid = size[0] // patch[0], size[1] // patch[1]
        channels, labels = int(config["num_channels"]), config_labels(config)
    check_sizes(source.id, preprocessing, size, channels)
    return ModelView(model, revision, preprocessing, size, patch, grid, len(adapter.specials), labels)


@contextlib.contextmanager
def config_errors(model: str) -> Iterator[None]:
    """Turn the errors of an invalid config.json into one sentence."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise ExegesisError(
            f"model {model}: its config.json is invalid ({type(error).__name__}: {excerpt(str(error))}). "
            "Download or save it again."
        ) from error
