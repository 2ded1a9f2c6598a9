"""A linear classifier of pictures: logits = sum over patches of W (x_i + p_i) + b, so attributions have closed forms.

It is an `ImageClassifier` like any other: only its block differs, which adds up what is visible instead of attending.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import scipy.ndimage
import torch
from torch import Tensor, nn

from engine.request import Picture
from engine.vision.adapters import IMAGE_ADAPTERS
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import EncodedPicture, Preprocessing

HEIGHT, WIDTH, PATCH, DEPTH = 12, 16, 4, 6
GRID = (HEIGHT // PATCH, WIDTH // PATCH)
PATCHES = GRID[0] * GRID[1]


class SumOfPatches(nn.Module):
    """A block that puts the sum of the visible patches where the head reads."""

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        seen = torch.ones_like(hidden[..., 0]) if mask is None else (mask[:, 0, 0] == 0).to(hidden.dtype)
        total = (hidden * seen[..., None])[:, 1:].sum(1, keepdim=True)
        return torch.cat([total, hidden[:, 1:]], dim=1)


class LinearPatches(nn.Module):
    """Its parts have the names of a ViT's."""

    def __init__(self, labels: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.vit = nn.Module()
        self.vit.embeddings = embeddings = nn.Module()
        embeddings.cls_token = nn.Parameter(torch.randn(1, 1, DEPTH, generator=generator))
        embeddings.position_embeddings = nn.Parameter(torch.randn(1, 1 + PATCHES, DEPTH, generator=generator))
        embeddings.patch_embeddings = nn.Module()
        embeddings.patch_embeddings.projection = nn.Conv2d(3, DEPTH, PATCH, stride=PATCH)
        self.vit.layers = nn.ModuleList([SumOfPatches()])
        self.vit.layernorm = nn.Identity()
        self.classifier = nn.Linear(DEPTH, labels)
        for part in (embeddings.patch_embeddings.projection, self.classifier):
            for parameter in part.parameters():
                parameter.data = torch.randn(parameter.shape, generator=generator) / 3
        self.config = SimpleNamespace(
            image_size=(HEIGHT, WIDTH), patch_size=PATCH, num_channels=3, hidden_size=DEPTH, num_hidden_layers=1,
            num_attention_heads=1,
        )  # fmt: skip


def linear_patches(labels: int = 1, seed: int = 0) -> ImageClassifier:
    """In double precision; one score by default instead of classes, so that m = f and closed forms hold for both."""
    module = LinearPatches(labels, seed).double().eval().requires_grad_(False)
    names = tuple(f"LABEL_{i}" for i in range(labels))
    preprocessing = Preprocessing((HEIGHT, WIDTH), None, 2, 1 / 255, (0.4, 0.5, 0.6), (0.2, 0.25, 0.3))
    return ImageClassifier(
        "linear patches", f"seed-{seed}", module, preprocessing, IMAGE_ADAPTERS[0], names, torch.float64,
        torch.device("cpu"), regression=labels == 1,
    )  # fmt: skip


def noise(seed: int = 0, height: int = HEIGHT, width: int = WIDTH) -> Picture:
    """A picture in which no two patches are alike."""
    return Picture(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


@dataclass(frozen=True)
class PatchLine:
    """The linear model on one picture, taken apart in NumPy: score = b + sum_i w . (x_i + p_i)."""

    model: ImageClassifier
    encoded: EncodedPicture
    target: int

    @property
    def w(self) -> np.ndarray:
        return self.model.module.classifier.weight[self.target].numpy()

    @property
    def x(self) -> np.ndarray:
        """The embedding of each patch."""
        return self._embedded(self.encoded.values.astype(np.float64))

    @property
    def pixel_weights(self) -> np.ndarray:
        """d score / d pixel, the same in every patch: channel, row, column."""
        return np.tensordot(self.w, self._kernel, axes=1)

    def blank(self, operator: str) -> np.ndarray:
        """What stands for each patch once it is removed."""
        if operator == "zero":
            return np.zeros_like(self.x)
        values = self.encoded.values.astype(np.float64)
        if operator == "blur":
            blur = [scipy.ndimage.gaussian_filter(v, PATCH, mode="nearest", truncate=3) for v in values]
            return self._embedded(np.stack(blur))
        return self._embedded(np.zeros_like(values))

    def change(self, operator: str) -> np.ndarray:
        """What the score loses with each patch: what every removal-based method must find."""
        if operator == "drop":
            places = self.model.module.vit.embeddings.position_embeddings[0, 1:].numpy()
            return (self.x + places) @ self.w
        return (self.x - self.blank(operator)) @ self.w

    @property
    def _kernel(self) -> np.ndarray:
        return self.model.embedding.weight.numpy()

    def _embedded(self, values: np.ndarray) -> np.ndarray:
        bias = self.model.embedding.bias.numpy()
        corners = [(row * PATCH, column * PATCH) for row in range(GRID[0]) for column in range(GRID[1])]
        patches = [values[:, y : y + PATCH, x : x + PATCH] for y, x in corners]
        return np.stack([np.tensordot(self._kernel, patch, axes=3) + bias for patch in patches])
