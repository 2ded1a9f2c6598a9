"""Features of empirical explainers, from one forward and backward pass of the explained model."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from engine.errors import UsageError
from engine.explainers.gradients import PLACES
from engine.lazy import torch
from engine.models.classifier import EMBEDDING, AnyClassifier, as_float64
from engine.task import Task

VERSION = 1
"""Version of the features; raised whenever they change."""
LOWEST = {"image": PLACES[0]}
"""The first level by kind of input, if it is not the word embeddings: normalized pixels for images."""
SHARING = ("image",)
"""Kinds of input for which hidden states have the same weights for all classes.

Image models have too many classes to learn each one from a few hundred maps: with separate weights per class, the error
on `scenes-vit` is larger.
"""
ROUNDING = 1e-5
"""A sum of products below this share of the sum of its absolute terms is a rounding error and counts as zero."""
DEPTH = 2 / 3
"""The share of blocks after which hidden states are read. The error is slightly larger after half or all blocks."""


def count_shared(model: AnyClassifier, features: int) -> int:
    """Return the number of leading features that have one weight for all classes.

    Two per level of the model for texts, all features for images.
    """
    return features if model.kind in SHARING else 2 * (len(model.blocks) + 1)


def token_features(task: Task) -> list[Float[np.ndarray, "_ feature"]]:
    """Return the features of each position of each item.

    1. Gradient x input at each level: the word embeddings or normalized pixels of a patch, and the input of each block.
       It is the sum over dimensions of the state times the gradient of the target's logit. It is 0 at the last block of
       a ViT, where patches reach the class token only through a LayerNorm, which is invariant to scale.
    2. The same values as shares: divided by the sum of absolute values over the positions that are not special tokens,
       0 if that sum is 0. Like the first ones, they depend on the class through the gradient.
    3. For texts: a constant 1 and the hidden state after two thirds of the blocks, for each class; 0 for classes other
       than the target.
       For images: the features 1 and 2 times the probability of the target, because maps of a probability shrink with
       it; then the constant and the hidden state once, times the margin of the target: its logit minus the mean logit
       of the other classes.
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
    if any(state.shape[:2] != points.shape[:2] for state in states):
        raise UsageError(
            f"method: empirical needs a state for each part of the input. {model.id} merges patches or reads the text "
            "once per label. Use another method."
        )
    targets = torch.tensor(task.targets, device=model.device)
    slopes = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), states)
    terms = [state.detach() * slope for state, slope in zip(states, slopes, strict=True)]
    products = as_float64(torch.stack([one.sum(-1) for one in terms], -1))
    sizes = as_float64(torch.stack([one.abs().sum(-1) for one in terms], -1))
    hidden = as_float64(states[min(1 + round(DEPTH * len(model.blocks)), len(model.blocks))])
    rows = []
    chances = as_float64(torch.softmax(logits.double(), -1))
    for at, (item, own_logits) in enumerate(zip(task.items, as_float64(logits), strict=True)):
        length = len(item.encoded)
        whole = np.abs(products[at, item.encoded.features]).sum(0)
        present = whole > ROUNDING * sizes[at, item.encoded.features].sum(0)
        scalars = np.where(present, products[at, :length], 0)
        shares = np.divide(scalars, whole, out=np.zeros_like(scalars), where=present)
        first = np.concatenate([scalars, shares], axis=1)
        own = np.concatenate([np.ones((length, 1)), hidden[at, :length]], axis=1)
        if model.kind in SHARING:
            last = [chances[at, item.target] * first, margin(own_logits, item.target) * own]
        else:
            by_class = np.zeros((length, len(model.labels), own.shape[1]))
            by_class[:, item.target] = own
            last = [by_class.reshape(length, -1)]
        rows.append(np.concatenate([first, *last], axis=1))
    return rows


def margin(logits: Float[np.ndarray, "label"], target: int) -> float:
    """Return the logit of a class minus the mean logit of the other classes; the logit itself if there are none."""
    others = np.delete(logits, target)
    return float(logits[target] - (others.mean() if len(others) else 0))
