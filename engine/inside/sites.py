"""Sites of a transformer that can be read and replaced: the residual stream and what each block adds to it.

Depths of the residual stream are counted from the embedding: depth 0 is the input of the first block, depth `l + 1` the
output of block `l`. Attention outputs, MLP outputs and head outputs belong to a block.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from engine.errors import ExegesisError, unknown
from engine.heads.scaling import layers_and_heads
from engine.lazy import torch
from engine.models.classifier import AnyClassifier

RESIDUAL, ATTENTION, MLP, HEADS = "residual", "attention", "mlp", "heads"
SITES = (RESIDUAL, ATTENTION, MLP, HEADS)


@dataclass(frozen=True)
class BlockParts:
    """Paths of modules inside a block.

    projection: maps the concatenated heads to the stream. attention, mlp: their outputs are added to the stream.
    middle: in a block with a norm after each sum, the module whose input is the stream between attention and MLP.
    parallel: whether the MLP reads the input of the block, or the name of the config's entry that says so.
    """

    projection: str
    attention: str
    mlp: str
    middle: str = ""
    parallel: bool | str = False


_BERT = BlockParts("attention.output.dense", "attention.output.dense", "output.dense", "intermediate")
_LLAMA = BlockParts("self_attn.o_proj", "self_attn.o_proj", "mlp.down_proj")
_GEMMA = BlockParts("self_attn.o_proj", "post_attention_layernorm", "post_feedforward_layernorm")

PARTS: dict[str, BlockParts] = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "electra", "camembert", "deberta-v2"), _BERT),
    "modernbert": BlockParts("attn.Wo", "attn.Wo", "mlp.Wo"),
    "albert": BlockParts(
        "albert_layers.0.attention.dense",
        "albert_layers.0.attention.dense",
        "albert_layers.0.ffn_output",
        "albert_layers.0.ffn",
    ),
    "mpnet": BlockParts("attention.attn.o", "attention.attn.o", "output.dense", "intermediate"),
    "distilbert": BlockParts("attention.out_lin", "attention.out_lin", "ffn.lin2", "ffn"),
    "gpt2": BlockParts("attn.c_proj", "attn.c_proj", "mlp.c_proj"),
    "t5": BlockParts("layer.0.SelfAttention.o", "layer.0.SelfAttention.o", "layer.1.DenseReluDense.wo"),
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3"), _LLAMA),
    **dict.fromkeys(("gemma2", "gemma3_text"), _GEMMA),
    "gpt_neox": BlockParts("attention.dense", "attention.dense", "mlp", parallel="use_parallel_residual"),
}
"""Parts of the blocks by the `model_type` of a checkpoint's config."""


@dataclass(frozen=True)
class Tap:
    """A tensor that flows through a module: its output, or its first input (`before`)."""

    module: torch.nn.Module
    before: bool = False


def block_parts(model: AnyClassifier) -> BlockParts:
    """Return the parts of the model's blocks. Errors: a model with a decoder; a family without an entry."""
    model_type = str(model.module.config.model_type)  # type: ignore[union-attr]
    if model.adapter.reading == "decoder":
        raise ExegesisError(
            f"model {model.id}: its head reads a decoder, so what its encoder's blocks compute cannot be read as the "
            "head's input. Use a model without a decoder."
        )
    if model_type not in PARTS:
        raise ExegesisError(
            f"model {model.id}: the parts of its blocks ({model_type}) are not listed. Families: {', '.join(PARTS)}."
        )
    return PARTS[model_type]


def is_parallel(model: AnyClassifier) -> bool:
    """Whether attention and MLP of a block read the same input."""
    parallel = block_parts(model).parallel
    return bool(getattr(model.module.config, parallel)) if isinstance(parallel, str) else parallel


def taps(model: AnyClassifier, site: str) -> list[Tap]:
    """Return the taps at which a site is read and replaced, one per depth or layer."""
    parts, blocks = block_parts(model), list(model.blocks)
    if site == RESIDUAL:
        return [Tap(blocks[0], before=True), *map(Tap, blocks)]
    if site == ATTENTION:
        return [Tap(block.get_submodule(parts.attention)) for block in blocks]
    if site == MLP:
        return [Tap(block.get_submodule(parts.mlp)) for block in blocks]
    if site == HEADS:
        return [Tap(block.get_submodule(parts.projection), before=True) for block in blocks]
    raise unknown("site", site, SITES)


@contextlib.contextmanager
def rewriting(points: Sequence[Tap], change: Callable[[int, torch.Tensor], torch.Tensor]) -> Iterator[None]:
    """Pass the tensor at each tap through `change(index, tensor)` in the block. The caller holds the device."""

    def before(index: int) -> Callable[..., Any]:
        return lambda _, args: (change(index, args[0]), *args[1:])

    def after(index: int) -> Callable[..., Any]:
        return lambda _, args, output: (
            (change(index, output[0]), *output[1:]) if isinstance(output, tuple) else change(index, output)
        )

    hooks = [
        tap.module.register_forward_pre_hook(before(index)) if tap.before
        else tap.module.register_forward_hook(after(index))
        for index, tap in enumerate(points)
    ]  # fmt: skip
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def recording(points: Sequence[Tap]) -> Iterator[list[torch.Tensor]]:
    """Record the tensor at each tap during one pass in the block, in the order of the taps."""
    values: list[torch.Tensor] = []

    def keep(_: int, value: torch.Tensor) -> torch.Tensor:
        values.append(value)
        return value

    with rewriting(points, keep):
        yield values


def replacement(
    site: str, heads: int, where: Bool[np.ndarray, "row index place"], values: Sequence[torch.Tensor]
) -> Callable[[int, torch.Tensor], torch.Tensor]:
    """Return a change for `rewriting` that inserts recorded values at each row's places.

    `where`: the places of each row, by depth or layer; a place is a position, or for head outputs a head, which is
    replaced at all positions. `values`: one recorded tensor per depth or layer, of a single row.
    """

    def change(index: int, now: torch.Tensor) -> torch.Tensor:
        own = where[:, index]
        if not own.any():
            return now
        mask = torch.from_numpy(own).to(now.device)
        if site == HEADS:
            wide = mask.repeat_interleave(now.shape[-1] // heads, dim=1)[:, None]
            return torch.where(wide, values[index], now)
        return torch.where(mask[..., None], values[index], now)

    return change


def place_count(model: AnyClassifier, site: str, length: int) -> tuple[int, int]:
    """Return the number of depths or layers of a site, and of places in each: heads, or `length` positions."""
    layers, heads = layers_and_heads(model)
    return (layers + (site == RESIDUAL), heads if site == HEADS else length)
