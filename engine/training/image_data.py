"""Images for training: splits of a data set, pixels in memory, normalization, and augmentation."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from engine.data.examples import ImageDataset
from engine.data.image_datasets import image_card, image_names, load_images
from engine.data.registry import parse_names
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.progress import CancelToken, Report
from engine.training.config import ImageTrainConfig
from engine.training.measured_sets import measured_name, refuse_trained_set

MEASURED_SPLITS = ("validation", "test", "unmarked")
LUMINANCE = (0.299, 0.587, 0.114)
"""Luminance weights of the channels (ITU-R BT.601)."""
Pixels = Float[Tensor, "batch 3 height width"]


@dataclass(frozen=True)
class ImageCorpus:
    """The training split, and the other available splits for the final evaluation."""

    name: str
    labels: tuple[str, ...]
    train: ImageDataset
    others: dict[str, ImageDataset]


def read_image_corpus(dataset: str) -> ImageCorpus:
    """Load the training split and the other splits; a data set without splits is all training data."""
    try:
        train = load_images(dataset, split="train")
    except UsageError:
        train = load_images(dataset)
        if train.split != "all":
            raise
    others = {} if train.split == "all" else _load_other_splits(dataset, train)
    if len(train.label_names) < 2:
        raise ExegesisError(
            f"dataset: {dataset} has fewer than two classes. Put the images of each class into a folder of their own."
        )
    return ImageCorpus(dataset, train.label_names, train, others)


def load_further_images(names: str, corpus: ImageCorpus) -> dict[str, ImageDataset]:
    """Load further image sets with the same labels for the final evaluation.

    Errors: a set that is trained on, has other labels or has none.
    """
    sets: dict[str, ImageDataset] = {}
    for name in dict.fromkeys(parse_names(names)):
        data = load_images(name)
        refuse_trained_set(name, data, [corpus.name], corpus.train.revision)
        if data.label_names != corpus.labels:
            raise not_allowed(f"measure {name}", f"labeled {', '.join(corpus.labels)}", ", ".join(data.label_names))
        if not labeled_places(data):
            raise not_allowed("measure", "data sets with labels", name)
        sets[measured_name(name, [*corpus.others, *sets])] = data
    return sets


def labeled_places(data: ImageDataset) -> list[int]:
    """Return the indices of the images with a label."""
    return [place for place, label in enumerate(data.labels) if label is not None]


def split_held_out_images(corpus: ImageCorpus, config: ImageTrainConfig) -> tuple[list[int], list[int]]:
    """Split the training split by seed into indices (train, held out); at most a fifth is held out."""
    places = labeled_places(corpus.train)
    if len(places) < 10:
        raise ExegesisError(f"dataset: {corpus.name} has {len(places)} labeled images; at least 10 are needed.")
    random.Random(config.seed).shuffle(places)
    count = min(config.held_out, max(1, len(places) // 5))
    held_out, train = places[:count], places[count:]
    return train[: config.train_size or None], held_out


def image_source(dataset: str) -> dict[str, str]:
    """Return title, source and license of a data set for the card; for a file, its name without the path."""
    name = dataset.partition(":")[0]
    if name in image_names():
        card = image_card(name)
        return {"name": card.title, "source": card.source, "licence": card.licence}
    file = Path(dataset).name
    return {"name": file, "source": file, "licence": "as its source states; not known to Exegesis"}


def _load_other_splits(dataset: str, train: ImageDataset) -> dict[str, ImageDataset]:
    splits = {}
    for split in MEASURED_SPLITS:
        try:
            other = load_images(dataset, split=split)
        except UsageError:
            continue
        if other.label_names != train.label_names:
            raise ExegesisError(
                f"dataset: {dataset} has other classes in {split} than in train. Use the same classes in both."
            )
        if labeled_places(other):
            splits[split] = other
    return splits


@dataclass(frozen=True)
class Normalization:
    """Mean and standard deviation of each channel, for pixels in 0 to 1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def apply(self, pixels: Pixels) -> Pixels:
        mean, std = (torch.tensor(value, device=pixels.device).view(1, 3, 1, 1) for value in (self.mean, self.std))
        return (pixels - mean) / std


@dataclass(frozen=True)
class PixelSet:
    """Labeled images of one size in memory. All `lengths` are equal, so that batches are random."""

    pixels: UInt8[Tensor, "example 3 height width"]
    labels: list[float]
    normalization: Normalization

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> list[int]:
        return [1] * len(self)

    def unit(self, indices: Sequence[int], device: torch.device) -> Pixels:
        """Return the images with pixels in 0 to 1."""
        return self.pixels[list(indices)].to(device).float() / 255

    def batch(self, indices: Sequence[int], device: torch.device) -> dict[str, Tensor]:
        return {"pixel_values": self.normalization.apply(self.unit(indices, device))}


def read_pixels(
    data: ImageDataset, places: Sequence[int], size: int, report: Report, cancel: CancelToken
) -> UInt8[Tensor, "example 3 size size"]:
    """Read the images at the indices `places`, each resized to `size` x `size`."""
    pixels = np.empty((len(places), size, size, 3), dtype=np.uint8)
    for row, place in enumerate(places):
        if row % 256 == 0:
            cancel.check()
            report(0, 1, f"reading {data.id}: {row:,} of {len(places):,} images")
        pixels[row] = resize_to_square(data[place].pixels, size)
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def resize_to_square(pixels: UInt8[np.ndarray, "height width 3"], size: int) -> UInt8[np.ndarray, "size size 3"]:
    """Resize to a square (bilinear, with antialiasing)."""
    if pixels.shape[:2] == (size, size):
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR))


def measure_normalization(pixels: UInt8[Tensor, "example 3 height width"]) -> Normalization:
    """Return mean and standard deviation of a training set per channel, rounded to four decimals."""
    wide = pixels.transpose(0, 1).flatten(1)
    # Integer sums do not depend on the order in which threads add them.
    counts = torch.stack([torch.bincount(channel.int(), minlength=256) for channel in wide]).double()
    levels = torch.arange(256, dtype=torch.float64) / 255
    mean = (counts @ levels) / wide.shape[1]
    std = ((counts @ levels**2) / wide.shape[1] - mean**2).clamp(min=1e-4).sqrt()
    return Normalization(*(tuple(round(value, 4) for value in values.tolist()) for values in (mean, std)))


def augment(pixels: Pixels, config: ImageTrainConfig) -> Pixels:
    """Randomly flip, rotate, shift and recolor each image, with pixels in 0 to 1. Uses torch's generator."""
    if config.flip:
        pixels = flip_images(pixels)
    if config.turn:
        pixels = turn_images(pixels, config.turn)
    if config.shift:
        pixels = shift_images(pixels, config.shift)
    return jitter_images(pixels, config.jitter) if config.jitter else pixels


def flip_images(pixels: Pixels) -> Pixels:
    """Randomly flip half of the images horizontally."""
    return torch.where(_random_column(pixels) < 0.5, pixels.flip(3), pixels)


def turn_images(pixels: Pixels, most: int | float) -> Pixels:
    """Randomly rotate each image about its center by up to `most` degrees; gaps repeat the edge."""
    angle = math.radians(most) * (2 * torch.rand(len(pixels)) - 1)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros(len(pixels))
    rows = torch.stack([torch.stack([cos, -sin, zero], 1), torch.stack([sin, cos, zero], 1)], 1).to(pixels.device)
    grid = functional.affine_grid(rows, list(pixels.shape), align_corners=False)
    return functional.grid_sample(pixels, grid, padding_mode="border", align_corners=False)


def shift_images(pixels: Pixels, most: int) -> Pixels:
    """Randomly shift each image by up to `most` pixels in both directions; gaps repeat the edge."""
    count, _, height, width = pixels.shape
    padded = functional.pad(pixels, (most, most, most, most), mode="replicate")
    down, right = torch.randint(0, 2 * most + 1, (2, count))
    rows = (down[:, None] + torch.arange(height)).to(pixels.device)
    columns = (right[:, None] + torch.arange(width)).to(pixels.device)
    each = torch.arange(count, device=pixels.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()


def jitter_images(pixels: Pixels, strength: float) -> Pixels:
    """Randomly scale brightness, contrast and saturation by factors in 1 - strength to 1 + strength."""
    brightness, contrast, saturation = (1 + strength * (2 * _random_column(pixels) - 1) for _ in range(3))
    pixels = pixels * brightness
    pixels = pixels.mean((1, 2, 3), keepdim=True).lerp(pixels, contrast)
    gray = (pixels * torch.tensor(LUMINANCE, device=pixels.device).view(1, 3, 1, 1)).sum(1, keepdim=True)
    return gray.lerp(pixels, saturation).clamp(0, 1)


def _random_column(pixels: Pixels) -> Float[Tensor, "batch 1 1 1"]:
    return torch.rand(len(pixels), 1, 1, 1).to(pixels.device)


@contextlib.contextmanager
def drop_patches(embeddings: nn.Module, share: float) -> Iterator[None]:
    """Drop a share of each image's patch tokens while training (PatchDropout, Liu et al., 2023).

    Steps are cheaper, and the model learns from images with missing patches, as with the removal operator `drop`.
    """
    handle = embeddings.register_forward_hook(
        lambda module, _, tokens: drop_tokens(tokens, share) if module.training else tokens
    )
    try:
        yield
    finally:
        handle.remove()


def drop_tokens(tokens: Float[Tensor, "batch seq d_model"], share: float) -> Float[Tensor, "batch fewer d_model"]:
    """Keep the class token, which comes first, and a random choice of each image's patch tokens."""
    count, length, width = tokens.shape
    remaining = max(1, round((length - 1) * (1 - share)))
    if remaining == length - 1:
        return tokens
    places = torch.rand(count, length - 1).argsort(1)[:, :remaining].sort(1).values.to(tokens.device) + 1
    places = torch.cat([torch.zeros_like(places[:, :1]), places], dim=1)
    return tokens.gather(1, places[..., None].expand(-1, -1, width))
