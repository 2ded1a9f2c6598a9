"""The learned explainer and its outer gradient once more: in loops, and by differentiating twice.

Nothing is shared with the engine but the loaded module and the normalization.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Weights = Mapping[str, Tensor]
Loss = Callable[[Weights, Tensor | None], Tensor]


def mean_logits(logits: Sequence[Tensor], lengths: Sequence[int], causal: bool) -> list[list[list[float]]]:
    """`s^h_i` for each [row][head][key] that is no padding."""
    rows = []
    for row, length in enumerate(lengths):
        heads = []
        for layer in logits:
            for head in layer[row].tolist():
                means = []
                for key in range(length):
                    seen = [head[query][key] for query in range(length) if not causal or query >= key]
                    means.append(sum(seen) / len(seen))
                heads.append(means)
        rows.append(heads)
    return rows


def explanation(weights: Sequence[float], heads: Sequence[Sequence[float]], features: Sequence[bool]) -> list[float]:
    """`E` of one row: 0 where a key is no feature."""
    scores = [sum(w * head[key] for w, head in zip(weights, heads, strict=True)) for key in range(len(features))]
    total = sum(math.exp(score) for score, is_one in zip(scores, features, strict=True) if is_one)
    return [math.exp(score) / total if is_one else 0.0 for score, is_one in zip(scores, features, strict=True)]


def stepped(weights: Sequence[Tensor], loss: Tensor, rate: float, clip: float, again: bool) -> list[Tensor]:
    """`θ - η clip(∇_θ loss)`; `again`: it can be differentiated once more."""
    gradients = torch.autograd.grad(loss, weights, create_graph=again, allow_unused=True)
    norm = torch.stack([(g * g).sum() for g in gradients if g is not None]).sum().sqrt()
    factor = clip / norm if clip and norm > clip else torch.ones_like(norm)
    return [w if g is None else w - rate * factor * g for w, g in zip(weights, gradients, strict=True)]


def pilot_loss(student: Any, inner: Loss, outer: Loss, phi_t: Tensor, rate: float, clip: float, again: bool) -> Tensor:
    """The outer loss after the pilot step (eq. 8 and 9) as a function of φ_T.

    `inner(weights, φ_T)` and `outer(weights, None)`: the two losses of a student with those weights, by name.
    """
    named = {name: p.detach().requires_grad_() for name, p in student.named_parameters() if p.requires_grad}
    moved = stepped(list(named.values()), inner(named, phi_t), rate, clip, again)
    return outer(dict(zip(named, moved, strict=True)), None)


def central(function: Callable[[Tensor], Tensor], at: Tensor, direction: Tensor, step: float = 1e-5) -> float:
    """The slope in a direction by central differences."""
    return float((function(at + step * direction) - function(at - step * direction)).item() / (2 * step))
