"""Pictures as a model reads them: preprocessing, patches, batches and superpixels.

Preprocessing, sizes and labels are read from the files next to the weights, which are not loaded.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from PIL import Image

from engine.errors import ExegesisError, UsageError, excerpt, unknown
from engine.lazy import skimage, torch
from engine.models import catalog, checkpoint_files
from engine.removal import FeatureGroups, singletons
from engine.result import Token
from engine.vision.adapters import ImageAdapter, image_adapter_for

SPECIALS = ("[CLS]", "[DIST]")
"""Names of the special tokens before the patches: class, and (DeiT) distillation."""
REGISTER = "[REG {}]"
"""Name of a register token, which follows the class token."""
SEGMENTS = ("patch", "slic")
COMPACTNESS = 10.0
"""Weight of spatial proximity relative to color similarity in SLIC; the default of its authors and scikit-image."""
RESAMPLING = tuple(kind.value for kind in Image.Resampling)
BY_SHORTEST_SIDE = ("CLIP", "Bit")
"""Prefixes of the types of processors that take a single number as the shortest side, and crop."""
HALVES = (0.5, 0.5, 0.5)
TRIAL_SIZES = ((100, 100), (100, 150))
"""Sizes (height, width) of pictures with which it is tested that a preprocessing always gives the same size."""
CONFIG_DEFAULTS = {"image_size": 224, "patch_size": 16, "num_channels": 3, "num_labels": 2}
"""Defaults of the library `transformers` for ViT and DeiT, for values that a config.json does not state."""


@dataclass(frozen=True)
class Preprocessing:
    """Resize, then crop the middle, then scale and normalize. Each step is optional.

    `resize` is (height, width), or (shortest side,) to keep the aspect ratio, or (); `crop` is (height, width) or None.
    """

    resize: tuple[int, ...]
    crop: tuple[int, int] | None
    resample: int
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def transform(self, pixels: UInt8[np.ndarray, "height width 3"]) -> UInt8[np.ndarray, "new_height new_width 3"]:
        """Resize and crop a picture; its colors are not normalized, so it can be displayed."""
        return np.asarray(self._place(Image.fromarray(pixels), self.resample))

    def transform_mask(self, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "new_height new_width"]:
        """Resize and crop a mask like its picture: a pixel is True if at least half of it is covered."""
        levels = Image.fromarray(mask.astype(np.uint8) * 255)
        return np.asarray(self._place(levels, Image.Resampling.BOX.value)) >= 128

    def normalize(self, pixels: UInt8[np.ndarray, "height width 3"]) -> Float[np.ndarray, "3 height width"]:
        """Return the values of a transformed picture that the model reads, in float32."""
        scaled = pixels.astype(np.float64) * self.scale
        values = (scaled - np.array(self.mean)) / np.array(self.std)
        return values.transpose(2, 0, 1).astype(np.float32)

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """Return (height, width) of a picture of the given size after `transform`."""
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
    file, section = folder / checkpoint_files.PROCESSOR, ""
    if not file.is_file() and (folder / checkpoint_files.NESTED_PROCESSOR[0]).is_file():
        file, section = folder / checkpoint_files.NESTED_PROCESSOR[0], checkpoint_files.NESTED_PROCESSOR[1]
    if not file.is_file():
        raise ExegesisError(
            f"model {model}: no {checkpoint_files.PROCESSOR} in its folder, so its preprocessing is unknown. "
            "Save its image processor in that folder with save_pretrained."
        )
    try:
        stated = json.loads(file.read_text(encoding="utf-8"))
        return _parse(stated[section] if section else stated)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ExegesisError(
            f"model {model}: its {file.name} is invalid ({type(error).__name__}: {excerpt(str(error))}). "
            "Download or save it again."
        ) from error


def check_labels(source: catalog.ModelSource, adapter: ImageAdapter) -> None:
    """Raise an error for a zero-shot model without labels."""
    if adapter.prompts and source.prompts is None:
        raise UsageError(
            f"labels: {source.id} matches pictures with texts and has no classes of its own. Give it two or more "
            f"labels (--labels 'a cat, a dog'), or write them after its name: {source.id}?labels=a cat|a dog."
        )


def read_size(preprocessing: Preprocessing, adapter: ImageAdapter, config: Mapping[str, Any]) -> tuple[int, int]:
    """Return (height, width) of the pictures that a model reads.

    If positions are interpolated, the preprocessing determines it, else the config.
    """
    return preprocessing.output_size(*TRIAL_SIZES[0]) if adapter.interpolated else both_sides(config["image_size"])


def check_sizes(model: str, preprocessing: Preprocessing, size: tuple[int, int], channels: int) -> None:
    """Raise an error if the channels are not red, green and blue, or the preprocessing does not give `size`."""
    if channels != 3:
        raise ExegesisError(f"model {model}: reads pictures of {channels} channels; 3 (red, green, blue) are needed.")
    # If only the shortest side is stated, the aspect ratio is kept, and only a crop gives all pictures the same size.
    for height, width in TRIAL_SIZES:
        got = preprocessing.output_size(height, width)
        if got != size:
            raise ExegesisError(
                f"model {model}: reads {_size_text(size)} pixels, but its preprocessing gives {_size_text(got)}. "
                f"Correct size and crop_size in its {checkpoint_files.PROCESSOR}."
            )


def _parse(stated: Mapping[str, Any]) -> Preprocessing:
    """Parse the config of an image processor. Steps that it does not mention are applied, as in `transformers`.

    Whether to crop by default depends on the type of the processor.
    """
    normalizes, size = stated.get("do_normalize", True), stated.get("size", 224)
    if isinstance(size, int) and _processor_type(stated).startswith(BY_SHORTEST_SIDE):
        size = {"shortest_edge": size}
    return Preprocessing(
        resize=_parse_sides(size) if stated.get("do_resize", True) else (),
        crop=_parse_crop(stated),
        resample=_parse_resample(stated.get("resample", Image.Resampling.BILINEAR.value)),
        scale=float(stated.get("rescale_factor", 1 / 255)) if stated.get("do_rescale", True) else 1.0,
        mean=_parse_three(stated.get("image_mean", HALVES)) if normalizes else (0.0, 0.0, 0.0),
        std=_parse_three(stated.get("image_std", HALVES)) if normalizes else (1.0, 1.0, 1.0),
    )


def _processor_type(stated: Mapping[str, Any]) -> str:
    return str(stated.get("image_processor_type") or stated.get("feature_extractor_type") or "")


def _parse_sides(size: Any) -> tuple[int, ...]:
    if isinstance(size, int):
        return size, size
    if "shortest_edge" in size:
        return (int(size["shortest_edge"]),)
    return int(size["height"]), int(size["width"])


def _parse_crop(stated: Mapping[str, Any]) -> tuple[int, int] | None:
    if not stated.get("do_center_crop", _processor_type(stated).startswith(("DeiT", *BY_SHORTEST_SIDE))):
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
    """Crop the middle of a picture; a picture that is too small gets a black border."""
    top, left = (image.height - height) // 2, (image.width - width) // 2
    return image.crop((left, top, left + width, top + height))


def _size_text(size: tuple[int, int]) -> str:
    return f"{size[1]} x {size[0]}"


@dataclass(frozen=True)
class ModelView:
    """How a model sees pictures: preprocessing, sizes, patches and labels.

    `size` and `patch` are (height, width) in pixels, `grid` is (rows, columns) of patches.
    """

    model: str
    revision: str
    preprocessing: Preprocessing
    size: tuple[int, int]
    patch: tuple[int, int]
    grid: tuple[int, int]
    specials: int
    """Number of positions before the patches."""
    labels: tuple[str, ...]
    windows: bool = False
    """Whether attention is limited to windows, so that no head attends to all patches."""

    def transform(self, pixels: UInt8[np.ndarray, "height width 3"]) -> UInt8[np.ndarray, "new_height new_width 3"]:
        """Return a picture as the model sees it."""
        return self.preprocessing.transform(pixels)

    def transform_mask(self, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "new_height new_width"]:
        """Return a mask of a picture in the coordinates of the transformed picture."""
        return self.preprocessing.transform_mask(mask)

    def patches(self, mask: Bool[np.ndarray, "height width"]) -> Bool[np.ndarray, "row column"]:
        """Return the patches that belong to a mask of the original picture, before preprocessing."""
        return patch_mask(self.transform_mask(mask), self.patch)

    def describe(self) -> dict[str, str]:
        """Describe the sizes of pictures and patches in words."""
        (rows, columns), (height, width) = self.grid, self.patch
        return {
            "picture": f"{self.size[1]} x {self.size[0]} pixels",
            "patches": f"{rows} rows x {columns} columns of {width} x {height} pixels",
        }


def read_view(model: str) -> ModelView:
    """Read the view of an embedded model, a folder or a hub id. It is cached until the model's files change.

    Errors: those of `load_image_model`, except for faults of the weights.
    """
    return _cached_view(model, catalog.revision(model))


@functools.lru_cache(maxsize=64)
def _cached_view(model: str, revision: str) -> ModelView:
    source = catalog.locate(model)
    stated = catalog.config(source)
    adapter = image_adapter_for(stated.get("model_type", ""), stated.get("architectures") or [], source.id)
    check_labels(source, adapter)
    config = CONFIG_DEFAULTS | stated
    preprocessing = read_preprocessing(source.folder, source.id)
    with config_errors(source.id):
        size, patch = read_size(preprocessing, adapter, config), both_sides(config["patch_size"])
        grid = size[0] // patch[0], size[1] // patch[1]
        channels, labels = int(config["num_channels"]), catalog.model_labels(model)
    check_sizes(source.id, preprocessing, size, channels)
    return ModelView(
        model, revision, preprocessing, size, patch, grid, adapter.special_tokens(config), labels, adapter.windows
    )


@contextlib.contextmanager
def config_errors(model: str) -> Iterator[None]:
    """Convert the errors of an invalid config.json to an `ExegesisError` for users."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise ExegesisError(
            f"model {model}: its config.json is invalid ({type(error).__name__}: {excerpt(str(error))}). "
            "Download or save it again."
        ) from error


@dataclass(frozen=True, eq=False)
class EncodedPicture:
    """A picture of the size that the model reads. Positions are the special tokens, then the patches row by row.

    `ids` are not read by the model: they are integers from a hash of `values`, one for each position, that identify the
    input in caches and seeds.
    """

    kind: ClassVar[str] = "image"
    pixels: UInt8[np.ndarray, "height width 3"]
    values: Float[np.ndarray, "3 height width"]
    grid: tuple[int, int]
    patch: tuple[int, int]
    """Height and width of a patch in pixels."""
    specials: int
    registers: int = 0
    """Number of register tokens, which are the last special tokens."""

    def __len__(self) -> int:
        return self.specials + self.grid[0] * self.grid[1]

    @cached_property
    def special(self) -> Bool[np.ndarray, "seq"]:
        return np.arange(len(self)) < self.specials

    @cached_property
    def features(self) -> Int[np.ndarray, "feature"]:
        """Positions of the patches, which may be removed and ranked."""
        return np.arange(self.specials, len(self))

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The special tokens, then the patches, named by row and column."""
        rows, columns = self.grid
        names = [f"row {row + 1}, column {column + 1}" for row in range(rows) for column in range(columns)]
        registers = (REGISTER.format(number + 1) for number in range(self.registers))
        names_before = (*SPECIALS[: self.specials - self.registers], *registers)
        specials = [Token(name, 0, 0, -1, True) for name in names_before]
        return (*specials, *(Token(name, 0, 0, 0, False) for name in names))

    @property
    def truncated(self) -> int:
        """Always 0: a picture is resized to fit, so no patch is cut off."""
        return 0

    @cached_property
    def key(self) -> bytes:
        """Identifier of this input among those of the same model."""
        return self.ids.tobytes()

    @cached_property
    def ids(self) -> Int[np.ndarray, "seq"]:
        digest = hashlib.shake_256(self.values.tobytes()).digest(4 * len(self))
        return np.frombuffer(digest, dtype="<u4").astype(np.int64)

    def on_grid(self, scores: Float[np.ndarray, "seq"]) -> Float[np.ndarray, "row column"]:
        """Arrange the scores of the patches as they are in the picture."""
        return scores[self.features].reshape(self.grid)


@dataclass(frozen=True, eq=False)
class PictureBatch:
    """Pictures on a device, each stored once, and the index of the picture of each row.

    `visible`: whether each position may be attended to. `whole`: whether all positions are visible.
    """

    pictures: Float[torch.Tensor, "picture 3 height width"]
    index: Int[torch.Tensor, "batch"]
    visible: Bool[torch.Tensor, "batch seq"]
    whole: bool
    specials: int = 1
    """Number of positions before the patches."""

    @property
    def lengths(self) -> Int[torch.Tensor, "batch"]:
        """Number of positions of each row, which is the same for all."""
        return torch.full(self.visible.shape[:1], self.visible.shape[1], device=self.visible.device)


def collate(pictures: Sequence[EncodedPicture], dtype: torch.dtype, device: torch.device) -> PictureBatch:
    """Batch pictures of one size; a picture that occurs in several rows is stored once."""
    unique = {id(picture): picture for picture in pictures}
    place = {name: number for number, name in enumerate(unique)}
    values = torch.from_numpy(np.stack([picture.values for picture in unique.values()])).to(device=device, dtype=dtype)
    index = torch.tensor([place[id(picture)] for picture in pictures], device=device)
    visible = torch.ones(len(pictures), len(pictures[0]), dtype=torch.bool, device=device)
    return PictureBatch(values, index, visible, True, pictures[0].specials)


def both_sides(size: int | Sequence[int]) -> tuple[int, int]:
    """Return (height, width) of a size, which a config may state as one number for squares."""
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def patch_mask(mask: Bool[np.ndarray, "height width"], patch: tuple[int, int]) -> Bool[np.ndarray, "row column"]:
    """Return the patches that belong to a mask of the preprocessed picture: those that it covers at least by half.

    If there are none, the patch that it covers most, the first one if several tie. An empty mask has no patches.
    """
    rows, columns = mask.shape[0] // patch[0], mask.shape[1] // patch[1]
    cut = mask[: rows * patch[0], : columns * patch[1]]
    shares = cut.reshape(rows, patch[0], columns, patch[1]).mean(axis=(1, 3))
    inside = shares >= 0.5
    if not inside.any() and cut.any():
        inside.flat[int(shares.argmax())] = True
    return inside


def segment_picture(picture: EncodedPicture, kind: str, n_segments: int) -> FeatureGroups:
    """Divide a picture into parts: `patch`, every patch by itself, or `slic`, about `n_segments` superpixels."""
    if kind == "patch":
        return singletons(len(picture.features))
    if kind == "slic":
        return assign_patches(superpixels(picture.pixels, n_segments), picture.patch)
    raise unknown("segments", kind, SEGMENTS)


def superpixels(pixels: UInt8[np.ndarray, "height width 3"], n_segments: int) -> Int[np.ndarray, "height width"]:
    """Compute the SLIC superpixels of the preprocessed picture: regions of similar color. Deterministic.

    Source: Achanta et al. (2012), SLIC superpixels compared to state-of-the-art superpixel methods, algorithm 1.
    """
    return skimage.segmentation.slic(
        pixels, n_segments=n_segments, compactness=COMPACTNESS, start_label=0, channel_axis=-1
    )


def assign_patches(labels: Int[np.ndarray, "height width"], patch: tuple[int, int]) -> FeatureGroups:
    """Assign each patch to the superpixel that covers most of it; in a tie, to the one with the lowest number.

    The operators that remove patches can then remove superpixels. Superpixels without a patch are left out.
    """
    rows, columns = labels.shape[0] // patch[0], labels.shape[1] // patch[1]
    tiles = labels[: rows * patch[0], : columns * patch[1]].reshape(rows, patch[0], columns, patch[1])
    pixels = tiles.transpose(0, 2, 1, 3).reshape(rows * columns, -1)
    fullest = [int(np.bincount(inside).argmax()) for inside in pixels]
    return FeatureGroups(np.unique(fullest, return_inverse=True)[1])
