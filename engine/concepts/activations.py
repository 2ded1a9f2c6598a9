"""Activations of examples at every layer, and gradients of a class's logit with respect to them.

The activation of an example at a layer is the mean over its tokens, or patches, of the block's output. The directional
derivative along a vector is that of the logit when the vector is added to the block's output at every token: the sum
of the gradient over tokens, times the vector. One backward pass gives the gradients at all layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float

from engine import runtime
from engine.inside.sites import Tap, rewriting
from engine.lazy import torch
from engine.models.classifier import AnyClassifier, EncodedInput, as_float64

VERSION = 1
"""Raised whenever the numbers change."""
Layers = list[Float[np.ndarray, "example _"]]
"""One array per layer with a row per example; the width may differ between layers."""


def activations(model: AnyClassifier, examples: Sequence[EncodedInput]) -> Layers:
    """Return the mean over tokens of each block's output. The caller must hold the device."""

    def compute(part: Sequence[EncodedInput]) -> Layers:
        read: list[torch.Tensor] = []

        def record(_: int, value: torch.Tensor) -> torch.Tensor:
            read.append(value)
            return value

        batch = model.collate(part)
        with torch.inference_mode(), rewriting(list(map(Tap, model.blocks)), record):
            model.logits(batch)
        return [as_float64(_summed(value, batch.visible, mean=True)) for value in read]

    return _in_chunks(model, examples, compute, gradients=False)


def gradients(model: AnyClassifier, examples: Sequence[EncodedInput], target: int) -> Layers:
    """Return the gradient of the class's logit by each block's output, summed over tokens.

    The caller must hold the device.
    """

    def compute(part: Sequence[EncodedInput]) -> Layers:
        read: list[torch.Tensor] = []

        def record(_: int, value: torch.Tensor) -> torch.Tensor:
            read.append(value if value.requires_grad else value.detach().requires_grad_())
            return read[-1]

        batch = model.collate(part)
        with torch.enable_grad(), rewriting(list(map(Tap, model.blocks)), record):
            chosen = model.logits(batch)[:, target].sum()
            slopes = torch.autograd.grad(chosen, read)
        return [as_float64(_summed(value, batch.visible, mean=False)) for value in slopes]

    return _in_chunks(model, examples, compute, gradients=True)


def _in_chunks(
    model: AnyClassifier,
    examples: Sequence[EncodedInput],
    compute: Callable[[Sequence[EncodedInput]], Layers],
    gradients: bool,
) -> Layers:
    """Return the layers of all examples, in their order; examples of similar length share a pass."""
    order = sorted(range(len(examples)), key=lambda at: len(examples[at]))
    in_order = [examples[at] for at in order]
    rows = runtime.rows_at_once(model, max(map(len, examples)), gradients=gradients)
    parts: list[Layers] = runtime.in_chunks(lambda part: compute(in_order[part]), len(examples), rows)
    back = np.argsort(order)
    return [np.concatenate(layer)[back] for layer in zip(*parts, strict=True)]


def _summed(
    values: Float[torch.Tensor, "batch *place d_model"], visible: Bool[torch.Tensor, "batch seq"], mean: bool
) -> Float[torch.Tensor, "batch d_model"]:
    """Return the sum or mean over tokens, without padding. Merging patches leaves other positions, all visible."""
    flat = values.flatten(1, -2).double()
    mask = visible if flat.shape[1] == visible.shape[1] else torch.ones_like(flat[..., 0], dtype=torch.bool)
    total = (flat * mask[..., None]).sum(1)
    return total / mask.sum(1, keepdim=True) if mean else total
