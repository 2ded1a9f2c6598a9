"""From a picture to what the model sees, by the model's own `preprocessor_config.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image

from engine.errors import ExegesisError, shown

FILE = "preprocessor_config.json"
RESAMPLING = tuple(kind.value for kind in Image.Resampling)
HALVES = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Preprocessing:
    """Resize, then crop the middle, then scale and normalise; each step only where it is stated.

    `resize` is (height, width), or (shortest side,) which keeps the proportions; `crop` is (height, width).
    """

    resize: tuple[int, ...]
    crop: tuple[int, int] | None
    resample: int
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def seen(self, pixels: UInt8[np.ndarray, "height width 3"]) -> UInt8[np.ndarray, "seen_height seen_width 3"]:
        """The picture as the model sees it, still in colours that people can look at."""
        return np.asarray(self._placed(Image.fromarray(pixels), self.resample))

    def seen_mask(self, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "seen_height seen_width"]:
        """Where the pixels of a mask are in the picture as the model sees it: those covered at least by half."""
        levels = Image.fromarray(mask.astype(np.uint8) * 255)
        return np.asarray(self._placed(levels, Image.Resampling.BOX.value)) >= 128

    def normalised(self, seen: UInt8[np.ndarray, "height width 3"]) -> Float[np.ndarray, "3 height width"]:
        """The numbers that the model reads, float32."""
        scaled = seen.astype(np.float64) * self.scale
        values = (scaled - np.array(self.mean)) / np.array(self.std)
        return values.transpose(2, 0, 1).astype(np.float32)

    def restored(self, values: Float[np.ndarray, "3 height width"]) -> UInt8[np.ndarray, "height width 3"]:
        """The colours of such numbers: the inverse of `normalised`, cut to what can be shown."""
        scaled = values.transpose(1, 2, 0).astype(np.float64) * np.array(self.std) + np.array(self.mean)
        return (scaled / self.scale).round().clip(0, 255).astype(np.uint8)

    def size_of(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of what the model sees of a picture of that size."""
        return self.crop or self._target(height, width) or (height, width)

    def _placed(self, image: Image.Image, resample: int) -> Image.Image:
        target = self._target(image.height, image.width)
        if target and target != (image.height, image.width):
            image = image.resize((target[1], target[0]), Image.Resampling(resample))
        return image if self.crop is None else _middle(image, *self.crop)

    def _target(self, height: int, width: int) -> tuple[int, int] | None:
        if len(self.resize) != 1:
            return self.resize or None  # type: ignore[return-value]
        short, long = sorted((height, width))
        length = int(self.resize[0] * long / short)
        return (self.resize[0], length) if height <= width else (length, self.resize[0])


def read_preprocessing(folder: Path, model: str) -> Preprocessing:
    """The preprocessing that a checkpoint's folder states. Errors: none is there, or it makes no sense."""
    file = folder / FILE
    if not file.is_file():
        raise ExegesisError(
            f"model {model}: no {FILE} in its folder, so how it reads pictures is not known. "
            "Save its image processor beside it with save_pretrained."
        )
    try:
        stated = json.loads(file.read_text(encoding="utf-8"))
        return _parsed(stated)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ExegesisError(
            f"model {model}: its {FILE} makes no sense ({type(error).__name__}: {shown(str(error))}). "
            "Download or save it again."
        ) from error


def check_sizes(model: str, preprocessing: Preprocessing, size: tuple[int, int], channels: int) -> None:
    """Refuses a model whose preprocessing does not give the pictures that it reads."""
    if channels != 3:
        raise ExegesisError(f"model {model}: reads pictures of {channels} channels; 3 (red, green, blue) are needed.")
    # Proportions are kept where only the shortest side is stated: then only a crop makes all pictures of one size.
    for height, width in ((100, 100), (100, 150)):
        got = preprocessing.size_of(height, width)
        if got != size:
            raise ExegesisError(
                f"model {model}: reads {_told(size)} pixels, but its preprocessing gives {_told(got)}. "
                f"Correct size and crop_size in its {FILE}."
            )


def _parsed(stated: Mapping[str, Any]) -> Preprocessing:
    """Steps that are not mentioned are done, as transformers does for ViT and DeiT; a crop must be asked for."""
    normalises = stated.get("do_normalize", True)
    return Preprocessing(
        resize=_sides(stated.get("size", 224)) if stated.get("do_resize", True) else (),
        crop=_crop(stated),
        resample=_resample(stated.get("resample", Image.Resampling.BILINEAR.value)),
        scale=float(stated.get("rescale_factor", 1 / 255)) if stated.get("do_rescale", True) else 1.0,
        mean=_three(stated.get("image_mean", HALVES)) if normalises else (0.0, 0.0, 0.0),
        std=_three(stated.get("image_std", HALVES)) if normalises else (1.0, 1.0, 1.0),
    )


def _sides(size: Any) -> tuple[int, ...]:
    if isinstance(size, int):
        return size, size
    if "shortest_edge" in size:
        return (int(size["shortest_edge"]),)
    return int(size["height"]), int(size["width"])


def _crop(stated: Mapping[str, Any]) -> tuple[int, int] | None:
    asked = stated.get("do_center_crop", str(stated.get("image_processor_type", "")).startswith("DeiT"))
    if not asked:
        return None
    sides = _sides(stated.get("crop_size", 224))
    return sides[0], sides[-1]


def _resample(kind: int) -> int:
    if kind not in RESAMPLING:
        raise ValueError(f"resample: must be one of {RESAMPLING}, got {kind}")
    return kind


def _three(values: Any) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if len(numbers) != 3 or not np.isfinite(numbers).all():
        raise ValueError(f"image_mean and image_std: must be three numbers, got {values}")
    return numbers


def _middle(image: Image.Image, height: int, width: int) -> Image.Image:
    """The middle of the picture; where it is too small, black is added around it."""
    top, left = (image.height - height) // 2, (image.width - width) // 2
    return image.crop((left, top, left + width, top + height))


def _told(size: tuple[int, int]) -> str:
    return f"{size[1]} x {size[0]}"
