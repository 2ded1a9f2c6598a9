"""A head scaled slowly: a copy of the module in which the head's slice of the output projection is multiplied."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch

OUTPUTS = {
    "distilbert": "attention.out_lin",
    "gpt2": "attn.c_proj",
    "t5": "layer.0.SelfAttention.o",
    "vit": "attention.o_proj",
}
"""Where a block projects its heads' outputs, by family; BERT and those like it: `attention.output.dense`."""


def rescaled(model: Any, family: str, scales: Iterable[tuple[int, int, float]]) -> Any:
    """The same classifier on its own copy of the weights, which runs no code of ours in its attention."""
    twin = copied(model)
    for layer, head, scale in scales:
        with torch.no_grad():
            weight_of(twin, family, layer)[slice_of(twin, head)] *= scale
    return twin


def slopes(model: Any, family: str, batch: Any, target: int) -> list[list[float]]:
    """The derivative of a logit by each head's scale, by way of the weights: `sum w . df/dw` over the head's slice."""
    twin = copied(model)
    weights = [weight_of(twin, family, layer).detach() for layer in range(len(twin.blocks))]
    for parameter in twin.module.parameters():
        parameter.requires_grad_()
    twin.logits(batch)[0, target].backward()
    found = []
    for layer, weight in enumerate(weights):
        moved = weight * weight_of(twin, family, layer, gradient=True)
        heads = range(twin.module.config.num_attention_heads)
        found.append([float(moved[slice_of(twin, head)].sum()) for head in heads])
    return found


def copied(model: Any) -> Any:
    """A twin that shares no weight."""
    twin = copy.copy(model)
    twin.module, twin.memo = copy.deepcopy(model.module), {}
    for name in ("embedding", "blocks"):
        twin.__dict__.pop(name, None)  # those of the shared module, remembered
    return twin


def weight_of(model: Any, family: str, layer: int, gradient: bool = False) -> Any:
    """The output projection of a layer (or its gradient), a row an input: Conv1D has it so, Linear the other way."""
    projection = model.blocks[layer].get_submodule(OUTPUTS.get(family, "attention.output.dense"))
    weight = projection.weight.grad if gradient else projection.weight
    return weight if family == "gpt2" else weight.T


def slice_of(model: Any, head: int) -> slice:
    """The rows of a head."""
    width = model.module.config.hidden_size // model.module.config.num_attention_heads
    return slice(head * width, (head + 1) * width)
