"""A sanity check as a plain loop: a whole copy of the model a stage, one text at a time, and SciPy's correlation."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.stats
import torch

from engine.models.text_classifier import TextClassifier
from engine.request import Example

Weights = Mapping[str, torch.Tensor]


def gradient_x_input(model: TextClassifier, text: str, target: int) -> np.ndarray:
    """By autograd, of the tokens that are no special ones."""
    batch = model.collate([model.encode(Example(text))])
    embeds = model.embed(batch).detach().requires_grad_()
    model.logits(batch, embeds)[0, target].backward()
    assert embeds.grad is not None
    special = [token.special for token in model.encode(Example(text)).tokens]
    return (embeds * embeds.grad).sum(-1)[0].detach().numpy()[~np.array(special)]


def probabilities(model: TextClassifier, text: str) -> np.ndarray:
    return torch.softmax(model.logits(model.collate([model.encode(Example(text))]))[0].double(), 0).numpy()


def with_weights(model: TextClassifier, weights: Weights) -> TextClassifier:
    """A full copy into which the weights are loaded."""
    module = copy.deepcopy(model.module)
    module.load_state_dict({**module.state_dict(), **weights})
    return dataclasses.replace(model, module=module, memo={})


def slow_check(model: TextClassifier, texts: Sequence[str], stages: Sequence[Weights]) -> tuple[np.ndarray, np.ndarray]:
    """Spearman's rho and the probability of the original class, `[stage text]` each."""
    rho, likely = np.empty((len(stages), len(texts))), np.empty((len(stages), len(texts)))
    targets = [int(probabilities(model, text).argmax()) for text in texts]
    before = [gradient_x_input(model, text, target) for text, target in zip(texts, targets, strict=True)]
    for row, weights in enumerate(stages):
        other = with_weights(model, weights)
        for column, (text, target) in enumerate(zip(texts, targets, strict=True)):
            rho[row, column] = scipy.stats.spearmanr(before[column], gradient_x_input(other, text, target)).statistic
            likely[row, column] = probabilities(other, text)[target]
    return rho, likely
