"""A model as if some of its heads were scaled, for as long as a `with` lasts."""

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
    """The model to use inside: its heads scaled, its memory its own. Without scales it is the model itself.

    Nothing of the shared model is changed. The caller holds the turn.
    """
    if not heads:
        yield model
        return
    scales = torch.from_numpy(heads.grid(*layers_and_heads(model))).to(model.device, model.dtype)
    view = copy.copy(model)
    view.memo = {}  # what the plain model answered must not be taken for what this one answers, nor the other way round
    with runtime.unlent(), scale_heads(model.module, model.blocks, scales[None]):
        yield view


def layers_and_heads(model: AnyClassifier) -> tuple[int, int]:
    """The numbers of layers, and of heads in each. Errors: a model without attention between all positions."""
    if getattr(model.adapter, "windows", False):
        raise no_attention(model.id)
    config = model.module.config
    return len(model.blocks), int(config.num_attention_heads)  # type: ignore[union-attr, arg-type]
