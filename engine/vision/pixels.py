"""Normalised pixels on a device: cut into patches, and blurred."""

from __future__ import annotations

import math

from jaxtyping import Float

from engine.late import torch


def patches(
    values: Float[torch.Tensor, "batch 3 height width"], patch: tuple[int, int]
) -> Float[torch.Tensor, "batch patch pixel"]:
    """Each patch's pixels in the order of the weights that read them: channel, row, column. What is over is cut off."""
    rows, columns = values.shape[2] // patch[0], values.shape[3] // patch[1]
    cut = values[:, :, : rows * patch[0], : columns * patch[1]]
    apart = cut.reshape(len(values), 3, rows, patch[0], columns, patch[1])
    return apart.permute(0, 2, 4, 1, 3, 5).reshape(len(values), rows * columns, -1)


def blurred(
    values: Float[torch.Tensor, "batch 3 height width"], sigma: int | float
) -> Float[torch.Tensor, "batch 3 height width"]:
    """A Gaussian of that standard deviation, in pixels, cut at three of them; the edge's pixels go on beyond it.

    In double precision: half would be coarse, and a CPU can take minutes for its convolution; of single precision a
    GPU rounds to 10 bits (TF32).
    """
    reach = math.ceil(3 * sigma)
    steps = torch.arange(-reach, reach + 1, device=values.device, dtype=torch.float64)
    weights = torch.softmax(-(steps**2) / (2 * sigma**2), dim=0)
    once = _along(values.double(), weights.view(1, 1, 1, -1), (reach, reach, 0, 0))
    return _along(once, weights.view(1, 1, -1, 1), (0, 0, reach, reach)).to(values.dtype)


def _along(values: torch.Tensor, weights: torch.Tensor, pad: tuple[int, int, int, int]) -> torch.Tensor:
    wide = torch.nn.functional.pad(values, pad, mode="replicate")
    return torch.nn.functional.conv2d(wide, weights.expand(3, 1, -1, -1), groups=3)
