"""Pictures as the training reads them: all in memory, of one size, normalised batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from engine.data.images.examples import ImageDataset
from engine.progress import CancelToken, Report


@dataclass(frozen=True)
class Normalisation:
    """Mean and standard deviation a channel, of pixels in 0 to 1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def apply(self, pixels: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch 3 height width"]:
        shape = (1, 3, 1, 1)
        mean = torch.tensor(self.mean, device=pixels.device).view(shape)
        return (pixels - mean) / torch.tensor(self.std, device=pixels.device).view(shape)


@dataclass(frozen=True)
class Pictures:
    """Labelled pictures of one size; `lengths` is the same for all, so that batches are drawn at random."""

    pixels: UInt8[Tensor, "example 3 height width"]
    labels: list[float]
    normalisation: Normalisation

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> list[int]:
        return [1] * len(self)

    def unit(self, indices: Sequence[int], device: torch.device) -> Float[Tensor, "batch 3 height width"]:
        """The pictures with pixels in 0 to 1."""
        return self.pixels[list(indices)].to(device).float() / 255

    def batch(self, indices: Sequence[int], device: torch.device) -> dict[str, Tensor]:
        return {"pixel_values": self.normalisation.apply(self.unit(indices, device))}


def read_pixels(
    data: ImageDataset, places: Sequence[int], size: int, report: Report, cancel: CancelToken
) -> UInt8[Tensor, "example 3 size size"]:
    """The pictures at `places`, each made `size` x `size`."""
    pixels = np.empty((len(places), size, size, 3), dtype=np.uint8)
    for row, place in enumerate(places):
        if row % 256 == 0:
            cancel.check()
            report(0, 1, f"reading {data.id}: {row:,} of {len(places):,} pictures")
        pixels[row] = resized(data[place].pixels, size)
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def resized(pixels: UInt8[np.ndarray, "height width 3"], size: int) -> UInt8[np.ndarray, "size size 3"]:
    """Stretched or shrunk to a square, smoothed where it shrinks (bilinear)."""
    if pixels.shape[:2] == (size, size):
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR))


def measured(pixels: UInt8[Tensor, "example 3 height width"]) -> Normalisation:
    """Mean and deviation of a training set, rounded to four places."""
    wide = pixels.transpose(0, 1).flatten(1)
    # Sums of whole numbers do not depend on the order in which threads add them.
    counts = torch.stack([torch.bincount(channel.int(), minlength=256) for channel in wide]).double()
    levels = torch.arange(256, dtype=torch.float64) / 255
    mean = (counts @ levels) / wide.shape[1]
    variance = (counts @ levels**2) / wide.shape[1] - mean**2
    return Normalisation(_rounded(mean), _rounded(variance.clamp(min=1e-4).sqrt()))


def _rounded(values: Tensor) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in values.tolist())
