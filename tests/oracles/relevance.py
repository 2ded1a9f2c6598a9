"""Relevancy through attention once more, in loops over the attention that transformers' own eager layers give back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.oracles.text import World

ATTENTION = ("BertSelfAttention", "RobertaSelfAttention", "XLMRobertaSelfAttention", "ElectraSelfAttention",
             "DistilBertSelfAttention", "GPT2Attention", "T5Attention", "ViTAttention", "DeiTAttention")  # fmt: skip


def attention_x_gradient(world: World) -> np.ndarray:
    n = len(world.ids)
    rows = {"gpt2": [n - 1], "t5": list(range(n))}.get(world.family, [0])
    point = world.embedded().requires_grad_()
    return np.array(relevancy(world.module, lambda: world.logit(point), rows))


def relevancy(module: Any, logit: Callable[[], Tensor], rows: list[int]) -> list[float]:
    """The mean of those rows of R - I, with `R <- R + mean_h((dA * A)+) R`."""
    grid = [attention * slope for attention, slope in _attention_and_slope(module, logit)]
    n = len(grid[0][0])
    reached = [[float(i == j) for j in range(n)] for i in range(n)]
    for layer in grid:
        heads = layer.tolist()
        mean = [[sum(max(0.0, head[i][j]) for head in heads) / len(heads) for j in range(n)] for i in range(n)]
        added = [[sum(mean[i][k] * reached[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
        reached = [[reached[i][j] + added[i][j] for j in range(n)] for i in range(n)]
    return [sum(reached[i][j] - (i == j) for i in rows) / len(rows) for j in range(n)]


def _attention_and_slope(module: Any, logit: Callable[[], Tensor]) -> list[tuple[Tensor, Tensor]]:
    """`[head query key]` twice, a layer each."""
    seen: list[Tensor] = []
    layers = [part for part in module.modules() if type(part).__name__ in ATTENTION]
    hooks = [layer.register_forward_hook(lambda _layer, _given, made: seen.append(made[-1])) for layer in layers]
    try:
        slopes = torch.autograd.grad(logit(), seen)
    finally:
        for hook in hooks:
            hook.remove()
    return [(attention[0].detach(), slope[0]) for attention, slope in zip(seen, slopes, strict=True)]
