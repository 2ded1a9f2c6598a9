"""Grad-CAM on a vision transformer: the last block's patch tokens, weighted by the class's mean gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.lazy import torch
from engine.models.classifier import as_float64
from engine.params import option
from engine.registry import Axes, register
from engine.task import Attribution, Task


@dataclass(frozen=True)
class GradCamParams:
    sign: str = option(
        "positive", "Only evidence for the class, as published, or both signs", choices=("positive", "both")
    )


@register(
    "grad_cam",
    title="Grad-CAM",
    family="gradients",
    params=GradCamParams,
    inputs=("image",),
    axes=Axes("none", "logit of the class", "activation times mean gradient, at the last block"),
    differentiable=True,
    signed=lambda params: params.sign == "both",
    citation="Selvaraju et al. (2017), Grad-CAM, eq. 1 and 2",
    caution="It uses the last block, where a token may hold information from other patches.",
)
def grad_cam(task: Task, params: GradCamParams) -> list[Attribution]:
    """`ReLU(sum_k w_k A_ik)` with `w_k` the mean of df/dA_ik over patches i; unsigned, or without ReLU signed.

    A are the patch tokens that the last block reads, after its first LayerNorm: what that block puts out at the
    patches is not read by the class any more, so its gradient is zero. Special tokens get 0.
    """
    maps = task.by_parts(_weighted_activations)
    return [Attribution(np.maximum(scores, 0) if params.sign == "positive" else scores, 1) for scores in maps]


def _weighted_activations(task: Task) -> list[Float[np.ndarray, "seq"]]:
    model, items = task.model, task.items
    read: list[torch.Tensor] = []
    norm = model.blocks[-1].get_submodule(model.adapter.first_norm)
    batch = task.batch()
    points = model.embed(batch).detach().requires_grad_()
    with norm.register_forward_hook(lambda _module, _inputs, output: read.append(output)):
        logits = model.logits(batch, points)
    chosen = logits[torch.arange(len(items)), task.targets]
    (gradient,) = torch.autograd.grad(chosen.sum(), read[0])
    features = torch.from_numpy(items[0].encoded.features).to(model.device)
    weights = gradient[:, features].double().mean(1, keepdim=True)
    maps = torch.zeros(gradient.shape[:2], dtype=torch.float64, device=model.device)
    maps[:, features] = (weights * read[0][:, features].double()).sum(-1)
    return list(as_float64(maps))
