"""What an empirical explainer reads: one pass of the explained model, forward and back."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from engine.explainers.gradients import PLACES
from engine.lazy import torch
from engine.models.classifier import EMBEDDING, AnyClassifier, as_float64
from engine.task import Task

VERSION = 1
"""Raised whenever the features change."""
LOWEST = {"image": PLACES[0]}
"""By the kind of input, the place of the first level where it is not the embeddings: normalized pixels."""
SHARING = ("image",)
"""Kinds of input of which the hidden states have the same weights for all classes.

Image models have too many classes to learn each from some hundred maps: with weights of its own, the error on
`scenes-vit` is larger.
"""
ROUNDING = 1e-5
"""Products that cancel to a smaller share of their terms are zero but for rounding, and have no shares."""
DEPTH = 2 / 3
"""The share of blocks after which hidden states are read. After half or all of them the error is a little larger."""


def count_scalars(model: AnyClassifier) -> int:
    """How many features come first that all classes share: two for each level of the model."""
    return 2 * (len(model.blocks) + 1)


def token_features(task: Task) -> list[Float[np.ndarray, "_ feature"]]:
    """The features of each position of each item.

    First gradient x input at each level, the word embeddings or the normalized pixels of a patch and the input of each
    block: the sum over dimensions of the state times the gradient of the target's logit. Then the same as shares:
    divided by the sum of absolute values over the positions that are no special tokens, 0 where that is 0: at the last
    block of a ViT, of which only the normalized patches reach the class token. They depend on the class through the
    gradient.
    Last a constant 1 and the hidden state after two thirds of the blocks. Of texts once for each class, and 0 for
    classes other than the target. Of pictures once, times the margin of the target: its logit minus the mean logit of
    the other classes.
    """
    return task.by_parts(_features)


def _features(task: Task) -> list[Float[np.ndarray, "_ feature"]]:
    model, batch = task.model, task.batch()
    place = LOWEST.get(model.kind, EMBEDDING)
    points = model.points(batch, place).detach().requires_grad_()
    states = [points]
    hooks = [block.register_forward_pre_hook(lambda _, args: states.append(args[0])) for block in model.blocks]
    try:
        logits = model.logits(batch, model.embed_points(points, place))
    finally:
        for hook in hooks:
            hook.remove()
    targets = torch.tensor(task.targets, device=model.device)
    slopes = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), states)
    terms = [state.detach() * slope for state, slope in zip(states, slopes, strict=True)]
    products = as_float64(torch.stack([one.sum(-1) for one in terms], -1))
    sizes = as_float64(torch.stack([one.abs().sum(-1) for one in terms], -1))
    hidden = as_float64(states[min(1 + round(DEPTH * len(model.blocks)), len(model.blocks))])
    rows = []
    for at, (item, own_logits) in enumerate(zip(task.items, as_float64(logits), strict=True)):
        length = len(item.encoded)
        scalars = products[at, :length]
        whole = np.abs(scalars[item.encoded.features]).sum(0)
        least = ROUNDING * sizes[at, item.encoded.features].sum(0)
        shares = np.divide(scalars, whole, out=np.zeros_like(scalars), where=whole > least)
        own = np.concatenate([np.ones((length, 1)), hidden[at, :length]], axis=1)
        if model.kind in SHARING:
            own = margin(own_logits, item.target) * own
        else:
            by_class = np.zeros((length, len(model.labels), own.shape[1]))
            by_class[:, item.target] = own
            own = by_class.reshape(length, -1)
        rows.append(np.concatenate([scalars, shares, own], axis=1))
    return rows


def margin(logits: Float[np.ndarray, "label"], target: int) -> float:
    """The logit of a class minus the mean logit of the other ones; the logit itself where there are none."""
    others = np.delete(logits, target)
    return float(logits[target] - (others.mean() if len(others) else 0))
