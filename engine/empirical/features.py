"""What an empirical explainer reads: one pass of the explained model, forward and back."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from engine.lazy import torch
from engine.models.classifier import AnyClassifier, as_float64
from engine.task import Task

VERSION = 1
"""Raised whenever the features change."""
DEPTH = 2 / 3
"""The share of blocks after which hidden states are read. After half or all of them the error is a little larger."""


def count_scalars(model: AnyClassifier) -> int:
    """How many features come first that all classes share: two for each level of the model."""
    return 2 * (len(model.blocks) + 1)


def token_features(task: Task) -> list[Float[np.ndarray, "_ feature"]]:
    """The features of each position of each item.

    First gradient x input at each level, the word embeddings and the input of each block: the sum over dimensions of
    the state times the gradient of the target's logit. Then the same as shares: divided by the sum of absolute values
    over the positions that are no special tokens, 0 where that is 0. They depend on the class through the gradient.
    Last, for each class, a constant 1 and the hidden state after two thirds of the blocks; 0 for classes other than the
    target.
    """
    return task.by_parts(_features)


def _features(task: Task) -> list[Float[np.ndarray, "_ feature"]]:
    model, batch = task.model, task.batch()
    embeds = model.embed(batch).detach().requires_grad_()
    states = [embeds]
    hooks = [block.register_forward_pre_hook(lambda _, args: states.append(args[0])) for block in model.blocks]
    try:
        logits = model.logits(batch, embeds)
    finally:
        for hook in hooks:
            hook.remove()
    targets = torch.tensor(task.targets, device=model.device)
    slopes = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), states)
    products = as_float64(torch.stack([(s * slope).sum(-1) for s, slope in zip(states, slopes, strict=True)], -1))
    hidden = as_float64(states[min(1 + round(DEPTH * len(model.blocks)), len(model.blocks))])
    rows = []
    for at, item in enumerate(task.items):
        length = len(item.encoded)
        scalars = products[at, :length]
        whole = np.abs(scalars[item.encoded.features]).sum(0)
        shares = np.divide(scalars, whole, out=np.zeros_like(scalars), where=whole > 0)
        own = np.concatenate([np.ones((length, 1)), hidden[at, :length]], axis=1)
        by_class = np.zeros((length, len(model.labels), own.shape[1]))
        by_class[:, item.target] = own
        rows.append(np.concatenate([scalars, shares, by_class.reshape(length, -1)], axis=1))
    return rows
