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
    twin = copy.copy(model)
    twin.module, twin.memo = copy.deepcopy(model.module), {}
    for name in ("embedding", "blocks"):
        twin.__dict__.pop(name, None)  # those of the shared module, remembered
    for layer, head, scale in scales:
        projection = twin.blocks[layer].get_submodule(OUTPUTS.get(family, "attention.output.dense"))
        width = twin.module.config.hidden_size // twin.module.config.num_attention_heads
        mine = slice(head * width, (head + 1) * width)
        with torch.no_grad():
            # Conv1D keeps its weight the other way round: inputs are rows.
            weight = projection.weight if family == "gpt2" else projection.weight.T
            weight[mine] *= scale
    return twin
