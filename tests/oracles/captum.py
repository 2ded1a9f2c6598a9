"""Captum called by hand on the plain module: what the bridge must give."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from captum.attr import (
    Deconvolution,
    DeepLift,
    DeepLiftShap,
    FeatureAblation,
    GradientShap,
    GuidedBackprop,
    ShapleyValueSampling,
)
from torch import Tensor, nn

from engine.removal_operators import BASELINES
from tests.oracles.text import World


class Logits(nn.Module):
    """Embeddings to logits."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.module = world.module

    def forward(self, embeds: Tensor) -> Tensor:
        return self.module(inputs_embeds=embeds).logits


def _baseline(world: World, name: str) -> Tensor:
    tokenizer, embeds = world.tokenizer, world.embedded()
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    blank = {
        "mask": world.table[world.stand_in],
        "pad": world.table[pad],
        "zero": torch.zeros_like(embeds[0]),
        "mean": world.table.mean(0),
    }[name]
    embeds[world.features] = blank
    return embeds[None]


def _all_baselines(world: World) -> Tensor:
    return torch.cat([_baseline(world, name) for name in BASELINES])


def _seed(world: World) -> None:
    seed = int(world.random().integers(2**31))
    torch.manual_seed(seed)
    np.random.seed(seed)


def _quietly(method: Any, *given: Any, **named: Any) -> np.ndarray:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return method.attribute(*given, **named)[0].detach().double()


def deep_lift(world: World) -> np.ndarray:
    start = _baseline(world, "mask")
    return _quietly(DeepLift(Logits(world)), world.embedded()[None], start, target=world.target).sum(-1).numpy()


def deep_lift_shap(world: World) -> np.ndarray:
    starts = _all_baselines(world)
    return _quietly(DeepLiftShap(Logits(world)), world.embedded()[None], starts, target=world.target).sum(-1).numpy()


def gradient_shap(world: World) -> np.ndarray:
    _seed(world)
    method, starts = GradientShap(Logits(world)), _all_baselines(world)
    return _quietly(method, world.embedded()[None], starts, n_samples=5, target=world.target).sum(-1).numpy()


def guided_backprop(world: World) -> np.ndarray:
    point = world.embedded()[None].requires_grad_()
    return _quietly(GuidedBackprop(Logits(world)), point, target=world.target).norm(dim=-1).numpy()


def deconvolution(world: World) -> np.ndarray:
    point = world.embedded()[None].requires_grad_()
    return _quietly(Deconvolution(Logits(world)), point, target=world.target).norm(dim=-1).numpy()


def _of_masks(world: World, method: type, **options: int) -> np.ndarray:
    def m(masks: Tensor) -> Tensor:
        return torch.tensor([world.probability(tuple(row)) for row in (masks > 0).tolist()], dtype=torch.float64)

    n = len(world.features)
    _seed(world)
    return world.spread(_quietly(method(m), torch.ones(1, n), torch.zeros(1, n), **options).tolist())


def feature_ablation(world: World) -> np.ndarray:
    return _of_masks(world, FeatureAblation)


def shapley_sampling(world: World) -> np.ndarray:
    return _of_masks(world, ShapleyValueSampling, n_samples=25)
