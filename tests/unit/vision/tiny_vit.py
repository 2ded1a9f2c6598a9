"""Tiny random vision transformers with their preprocessing, and pictures, for the tests of models and of explainers."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.ndimage
import torch
import transformers
from torch import Tensor

from engine.home import home
from engine.models.loading import load_image_model
from engine.request import Picture
from engine.vision.classifier import ImageClassifier

SIZE = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}
ARCHITECTURES = ("ViTForImageClassification", "DeiTForImageClassification", "DeiTForImageClassificationWithTeacher")


def save_vit(
    folder: Path,
    architecture: str = ARCHITECTURES[0],
    image: int | tuple[int, int] = 24,
    patch: int = 8,
    processor: dict[str, Any] | None = None,
    **settings: Any,
) -> Path:
    """A random classifier of three classes. Weights are scaled up so that predictions differ."""
    torch.manual_seed(0)
    kind = transformers.DeiTConfig if architecture.startswith("DeiT") else transformers.ViTConfig
    names = {"id2label": {0: "cat", 1: "dog", 2: "eel"}, "label2id": {"cat": 0, "dog": 1, "eel": 2}}
    config = kind(image_size=image, patch_size=patch, **{**SIZE, **names, **settings})
    module = getattr(transformers, architecture)(config)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.25)
    module.save_pretrained(str(folder))
    side = image if isinstance(image, int) else image[0]
    other = image if isinstance(image, int) else image[1]
    stated = {"do_resize": True, "size": {"height": side, "width": other}, "resample": 2}
    stated |= {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]} | (processor or {})
    (folder / "preprocessor_config.json").write_text(json.dumps(stated))
    return folder


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
    """The same as transformers has it, in double precision, from normalized pixels to logits."""
    kind = getattr(transformers, architecture)
    return kind.from_pretrained(str(vit_folder(architecture, image))).double().eval().requires_grad_(False)


def blobs(seed: int = 0, height: int = 24, width: int = 32) -> Picture:
    """A picture of a few soft spots of color, on which superpixels are worth having."""
    noise = np.random.default_rng(seed).normal(size=(height, width, 3))
    soft = scipy.ndimage.gaussian_filter(noise, (4, 4, 0))
    scaled = (soft - soft.min()) / np.ptp(soft) * 255
    return Picture(scaled.round().astype(np.uint8))


def values_of(model: ImageClassifier, picture: Picture) -> Tensor:
    """The normalized pixels that the model reads, a batch of one in double precision."""
    return torch.from_numpy(model.encode(picture).values).double()[None]


def pixel_baseline(model: ImageClassifier, picture: Picture, operator: str) -> Tensor:
    """What `mean` and `blur` put in the place of each pixel."""
    values = values_of(model, picture)
    if operator == "mean":
        return torch.zeros_like(values)
    blur = [scipy.ndimage.gaussian_filter(v, SIDE, mode="nearest", truncate=3) for v in values[0].numpy()]
    return torch.from_numpy(np.stack(blur))[None]


def pixel_parts(of_patch: np.ndarray, grid: tuple[int, int]) -> Tensor:
    """The number of its part for each pixel, of all three colors."""
    tall = of_patch.reshape(grid).repeat(SIDE, axis=0).repeat(SIDE, axis=1)
    return torch.from_numpy(tall)[None, None].repeat(1, 3, 1, 1)


def patch_sums(pixels: Tensor, grid: tuple[int, int]) -> np.ndarray:
    """Scores of pixels, summed in each patch, row by row."""
    return pixels[0].reshape(3, grid[0], SIDE, grid[1], SIDE).sum(dim=(0, 2, 4)).reshape(-1).numpy()
