"""Context manager for a model with some of its heads scaled."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

from engine import runtime
from engine.lazy import torch
from engine.models.attention import scale_heads
from engine.models.classifier import AnyClassifier
from engine.request import HeadScales
from engine.vision.windows import no_attention


@contextlib.contextmanager
def scaled_model(model: AnyClassifier, heads: HeadScales) -> Iterator[AnyClassifier]:
    """Yield a view of the model with scaled heads and its own memo. Without scales, it is the model itself.

    The shared model is not changed. The caller holds the device.
    """
    if not heads:
        yield model
        return
    scales = torch.from_numpy(heads.grid(*layers_and_heads(model))).to(model.device, model.dtype)
    view = copy.copy(model)
    view.memo = {}  # results of the plain model and of this one must not be mixed up
    with runtime.unlent(), scale_heads(model.module, model.blocks, scales[None]):
        yield view


def layers_and_heads(model: AnyClassifier) -> tuple[int, int]:
    """Return the number of layers, and of heads per layer. Errors: a model without attention between all positions."""
    if getattr(model.adapter, "windows", False):
        raise no_attention(model.id)
    config = model.module.config
    return len(model.blocks), int(config.num_attention_heads)  # type: ignore[union-attr, arg-type]
