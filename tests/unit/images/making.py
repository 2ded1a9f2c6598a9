"""Tiny vision transformers and pictures, for the tests of what explains them."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.ndimage
import torch
import transformers
from torch import Tensor

from engine.home import home
from engine.request import Picture
from engine.vision.classifier import ImageClassifier
from engine.vision.loader import load_image_model
from tests.unit.images.checkpoints import ARCHITECTURES, save_vit

SIDE = 8
"""Pixels of a patch."""


@functools.cache
def vit_folder(architecture: str = ARCHITECTURES[0], image: tuple[int, int] = (24, 32)) -> Path:
    """A tiny random checkpoint of 3 x 4 patches, written once a run."""
    place = home() / "tiny"
    place.mkdir(parents=True, exist_ok=True)
    return save_vit(Path(tempfile.mkdtemp(prefix="vit-", dir=place)), architecture, image=image, patch=SIDE)


@functools.cache
def vit(architecture: str = ARCHITECTURES[0], image: tuple[int, int] = (24, 32), dtype: str = "float64") -> Any:
    """That checkpoint, loaded by the engine."""
    return load_image_model(str(vit_folder(architecture, image)), dtype)


@functools.cache
def plain_vit(architecture: str = ARCHITECTURES[0], image: tuple[int, int] = (24, 32)) -> Any:
    """The same as transformers has it, in double precision, from normalised pixels to logits."""
    kind = getattr(transformers, architecture)
    return kind.from_pretrained(str(vit_folder(architecture, image))).double().eval().requires_grad_(False)


def blobs(seed: int = 0, height: int = 24, width: int = 32) -> Picture:
    """A picture of a few soft spots of colour, on which superpixels are worth having."""
    drawn = np.random.default_rng(seed).normal(size=(height, width, 3))
    soft = scipy.ndimage.gaussian_filter(drawn, (4, 4, 0))
    scaled = (soft - soft.min()) / np.ptp(soft) * 255
    return Picture(scaled.round().astype(np.uint8))


def values_of(model: ImageClassifier, picture: Picture) -> Tensor:
    """The normalised pixels that the model reads, a batch of one in double precision."""
    return torch.from_numpy(model.encode(picture).values).double()[None]


def pixel_baseline(model: ImageClassifier, picture: Picture, operator: str) -> Tensor:
    """What `mean` and `blur` put in the place of each pixel."""
    values = values_of(model, picture)
    if operator == "mean":
        return torch.zeros_like(values)
    blur = [scipy.ndimage.gaussian_filter(v, SIDE, mode="nearest", truncate=3) for v in values[0].numpy()]
    return torch.from_numpy(np.stack(blur))[None]


def pixel_parts(of_patch: np.ndarray, grid: tuple[int, int]) -> Tensor:
    """The number of its part for each pixel, of all three colours."""
    tall = of_patch.reshape(grid).repeat(SIDE, axis=0).repeat(SIDE, axis=1)
    return torch.from_numpy(tall)[None, None].repeat(1, 3, 1, 1)


def patch_sums(pixels: Tensor, grid: tuple[int, int]) -> np.ndarray:
    """Scores of pixels, summed in each patch, row by row."""
    return pixels[0].reshape(3, grid[0], SIDE, grid[1], SIDE).sum(dim=(0, 2, 4)).reshape(-1).numpy()
