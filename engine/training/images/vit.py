"""New vision transformers: their shape, and a start from which little data goes a long way."""

from __future__ import annotations

import math
from typing import Any

import torch
import transformers
from jaxtyping import Float
from torch import Tensor, nn

from engine.errors import not_allowed
from engine.training.images.config import ImageTrainConfig

NOISE_QK, IDENTITY_QK = 0.7, 0.7
NOISE_VO, IDENTITY_VO = 0.4, 0.4


def new_vit(config: ImageTrainConfig, labels: tuple[str, ...]) -> nn.Module:
    """A `ViTForImageClassification` with new weights drawn from torch's generator; MLPs are four times as wide."""
    _check_shape(config)
    names: dict[str, Any] = {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
    }
    settings: Any = transformers.ViTConfig(
        image_size=config.size,
        patch_size=config.patch,
        num_hidden_layers=config.layers,
        hidden_size=config.width,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.width,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **names,
    )
    module = transformers.ViTForImageClassification(settings)
    if config.mimetic:
        _start_well(module, config)
    return module


def _check_shape(config: ImageTrainConfig) -> None:
    if config.size % config.patch:
        raise not_allowed("patch", f"a divisor of size, {config.size}", config.patch)
    if config.width % 4 or config.width % config.heads:
        raise not_allowed("width", f"a multiple of 4 and of the {config.heads} heads", config.width)


@torch.no_grad()
def _start_well(module: Any, config: ImageTrainConfig) -> None:
    side, width = config.size // config.patch, config.width
    module.vit.embeddings.position_embeddings[0, 1:] = sincos_positions(side, width)
    for block in module.vit.layers:
        attention = block.attention
        _start_queries(attention.q_proj.weight, attention.k_proj.weight, config.heads)
        left, right = _factors(near_identity(width, NOISE_VO, -IDENTITY_VO))
        attention.v_proj.weight.copy_(left.T)
        attention.o_proj.weight.copy_(right)


def _start_queries(query: Tensor, key: Tensor, heads: int) -> None:
    width = query.shape[1]
    size = width // heads
    for head in range(heads):
        left, right = _factors(near_identity(width, NOISE_QK, IDENTITY_QK))
        rows = slice(head * size, (head + 1) * size)
        query[rows] = left[:, :size].T
        key[rows] = right[:, :size].T


def near_identity(width: int, noise: float, identity: float) -> Float[Tensor, "width width"]:
    """Noise of variance `noise² / width` plus a multiple of the identity: how the products of trained attention
    weights look (Trockman and Kolter, 2023, Mimetic Initialization of Self-Attention Layers, section 4)."""
    return noise * torch.randn(width, width) / math.sqrt(width) + identity * torch.eye(width)


def _factors(product: Float[Tensor, "width width"]) -> tuple[Tensor, Tensor]:
    """(L, R) with `product = L R^T`, both columns by falling singular value."""
    left, values, right = torch.linalg.svd(product)
    root = values.sqrt()
    return left * root, right.T * root


def sincos_positions(side: int, width: int) -> Float[Tensor, "patch width"]:
    """Sines and cosines of row and column, a quarter of the width each (Vaswani et al., 2017, in two dimensions)."""
    quarter = width // 4
    rates = 10_000.0 ** -(torch.arange(quarter) / quarter)
    row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    angles = [place.flatten()[:, None] * rates for place in (row, column)]
    return torch.cat([wave(angle) for angle in angles for wave in (torch.sin, torch.cos)], dim=1)
