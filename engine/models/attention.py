"""The one mechanism that reads attention, for every family.

Transformers calls a registered function with queries, keys, values, the scaling, the mask and T5's position bias.
Ours computes the same attention in plain, twice differentiable tensor operations and hands each layer's logits and
probabilities to a recorder. It is registered under the same name for the masks: without that the mask is silently
dropped, GPT-2 loses causality and BERT attends to padding.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from engine.late import torch

CAPTURE = "exegesis_capture"


@dataclass
class Recorder:
    """Attention of each layer in calling order, each `[batch head query key]`."""

    logits: list[torch.Tensor] = field(default_factory=list)
    probabilities: list[torch.Tensor] = field(default_factory=list)


_recorder: ContextVar[Recorder | None] = ContextVar("exegesis_attention_recorder", default=None)


def captured_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention as the model computes it, recorded. The recorded logits hold scaling and bias but no mask."""
    logits = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if position_bias is not None:
        logits = logits + position_bias
    masked = logits if attention_mask is None else logits + attention_mask
    probabilities = torch.softmax(masked, dim=-1)
    recorder = _recorder.get()
    if recorder is not None:
        recorder.logits.append(logits)
        recorder.probabilities.append(probabilities)
    dropped = torch.nn.functional.dropout(probabilities, p=dropout, training=module.training)
    return (dropped @ value).transpose(1, 2).contiguous(), probabilities


@functools.cache
def _register() -> None:
    # Here and not above: transformers takes seconds to import, and the list of explainers needs none of it.
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(CAPTURE, captured_attention)
    AttentionMaskInterface.register(CAPTURE, eager_mask)


@contextlib.contextmanager
def implementation(module: torch.nn.Module, name: str) -> Iterator[None]:
    """Every attention layer of `module` runs through `name` inside, and through its own again afterwards."""
    configs = _configs(module)
    before = [config._attn_implementation for config in configs]
    try:
        for config in configs:
            config._attn_implementation = name
        yield
    finally:
        for config, own in zip(configs, before, strict=True):
            config._attn_implementation = own


@contextlib.contextmanager
def capture(module: torch.nn.Module) -> Iterator[Recorder]:
    """A recorder of every attention layer that runs inside."""
    _register()
    recorder = Recorder()
    token = _recorder.set(recorder)
    try:
        with implementation(module, CAPTURE):
            yield recorder
    finally:
        _recorder.reset(token)


def _configs(module: torch.nn.Module) -> list[Any]:
    found = {id(m.config): m.config for m in module.modules() if hasattr(m, "config")}
    return [config for config in found.values() if hasattr(config, "_attn_implementation")]
