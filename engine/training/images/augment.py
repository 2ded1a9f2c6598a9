"""Changes to training pictures that leave their label as it is. They draw from torch's own generator."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from engine.training.images.config import ImageTrainConfig

Unit = Float[Tensor, "batch 3 height width"]
GREY = (0.299, 0.587, 0.114)
"""Weights of the channels in luminance (ITU-R BT.601)."""


def augmented(pixels: Unit, config: ImageTrainConfig) -> Unit:
    """The batch with each picture mirrored, moved and recoloured by chance; pixels in 0 to 1."""
    if config.flip:
        pixels = flipped(pixels)
    if config.turn:
        pixels = turned(pixels, config.turn)
    if config.shift:
        pixels = shifted(pixels, config.shift)
    return jittered(pixels, config.jitter) if config.jitter else pixels


def flipped(pixels: Unit) -> Unit:
    """Half of the pictures, by chance, mirrored left to right."""
    chosen = _draw(pixels, 1) < 0.5
    return torch.where(chosen, pixels.flip(3), pixels)


def turned(pixels: Unit, most: int | float) -> Unit:
    """Each picture turned about its middle by up to `most` degrees to either side; the gap repeats its edge."""
    angle = math.radians(most) * (2 * torch.rand(len(pixels)) - 1)
    cos, sin, none = angle.cos(), angle.sin(), torch.zeros(len(pixels))
    rows = torch.stack([torch.stack([cos, -sin, none], 1), torch.stack([sin, cos, none], 1)], 1).to(pixels.device)
    grid = functional.affine_grid(rows, list(pixels.shape), align_corners=False)
    return functional.grid_sample(pixels, grid, padding_mode="border", align_corners=False)


def shifted(pixels: Unit, most: int) -> Unit:
    """Each picture moved by up to `most` pixels in both directions; the gap repeats its edge."""
    count, _, height, width = pixels.shape
    padded = functional.pad(pixels, (most, most, most, most), mode="replicate")
    down, right = torch.randint(0, 2 * most + 1, (2, count))
    rows = (down[:, None] + torch.arange(height)).to(pixels.device)
    columns = (right[:, None] + torch.arange(width)).to(pixels.device)
    each = torch.arange(count, device=pixels.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()


def jittered(pixels: Unit, strength: float) -> Unit:
    """Brightness, contrast and saturation of each picture times factors in 1 - strength to 1 + strength."""
    bright, contrast, colour = (1 + strength * (2 * _draw(pixels, 1) - 1) for _ in range(3))
    pixels = pixels * bright
    pixels = pixels.mean((1, 2, 3), keepdim=True).lerp(pixels, contrast)
    grey = (pixels * torch.tensor(GREY, device=pixels.device).view(1, 3, 1, 1)).sum(1, keepdim=True)
    return grey.lerp(pixels, colour).clamp(0, 1)


@contextlib.contextmanager
def patches_dropped(embeddings: nn.Module, share: float) -> Iterator[None]:
    """While training, each picture loses this share of its patch tokens (PatchDropout, Liu et al., 2023).

    A step costs less, and the model gets to know pictures with patches missing: the removal `drop`.
    """
    handle = embeddings.register_forward_hook(lambda module, _, tokens: _fewer(tokens, share, module.training))
    try:
        yield
    finally:
        handle.remove()


def _fewer(tokens: Tensor, share: float, training: bool) -> Tensor:
    count, length, width = tokens.shape
    kept = max(1, round((length - 1) * (1 - share)))
    if not training or kept == length - 1:
        return tokens
    # The first token is the class token, which stays.
    places = torch.rand(count, length - 1).argsort(1)[:, :kept].sort(1).values.to(tokens.device) + 1
    places = torch.cat([torch.zeros_like(places[:, :1]), places], dim=1)
    return tokens.gather(1, places[..., None].expand(-1, -1, width))


def _draw(pixels: Unit, channels: int) -> Float[Tensor, "batch channels 1 1"]:
    return torch.rand(len(pixels), channels, 1, 1).to(pixels.device)
