"""Attention capture: one mechanism for every family.

Transformers calls a registered function with queries, keys, values, the scaling, the mask and T5's position bias.
Ours computes the same attention in plain, twice differentiable tensor operations, passes each layer's logits and
probabilities to the active recorder (without one, it calls torch's faster kernel), and scales the outputs of heads if
scales are set. It is also registered for masks under the same name: otherwise the mask is silently dropped, GPT-2 loses
causality and BERT attends to padding.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from jaxtyping import Float

from engine.lazy import torch, transformers

CAPTURE = "exegesis_capture"
PLAIN = "exegesis_plain"


class RecordingComplete(Exception):
    """Raised to end a pass when the requested layers are recorded."""


@dataclass
class AttentionRecorder:
    """Attention of each layer in calling order, each `[batch head query key]`.

    `max_layers`: number of layers after which `RecordingComplete` ends the pass; None for all layers.
    """

    logits: list[torch.Tensor] = field(default_factory=list)
    probabilities: list[torch.Tensor] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)
    """Values that the layer's heads mix, each `[batch head key d_head]`."""
    scales: list[torch.Tensor | None] = field(default_factory=list)
    """Factors of the outputs of the layer's heads, each `[#batch head]`; None if no head is scaled."""
    max_layers: int | None = None
    recorded: frozenset[int] | None = None
    """Ids of the modules that are recorded, such as those of the encoder's blocks of a model with a decoder; None for
    all."""

    def records(self, module: torch.nn.Module) -> bool:
        """Whether the attention of `module` is recorded."""
        return self.recorded is None or id(module) in self.recorded


_recorder: ContextVar[AttentionRecorder | None] = ContextVar("exegesis_attention_recorder", default=None)
_scales: ContextVar[Mapping[int, torch.Tensor]] = ContextVar("exegesis_head_scales", default=MappingProxyType({}))
"""Scales `[#batch head]` by the `id` of a block's submodule. Counting calls would go wrong after a failed pass."""


def captured_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Compute attention and record it. The recorded logits include scaling and bias but no mask."""
    recorder = _recorder.get()
    if recorder is None:
        return fused_attention(module, query, key, value, attention_mask, **options), None
    if not recorder.records(module):
        return plain_attention(module, query, key, value, attention_mask, **options)
    return _explicit_attention(module, query, key, value, attention_mask, recorder, **options)


def plain_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Compute attention by plain tensor operations, without recording."""
    return _explicit_attention(module, query, key, value, attention_mask, None, **options)[0], None


def _explicit_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    recorder: AttentionRecorder | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: torch.Tensor | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute (outputs, probabilities) in the precision of the queries."""
    key, value = _shared_heads(query, key), _shared_heads(query, value)
    logits = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if softcap is not None:
        logits = torch.tanh(logits / softcap) * softcap
    if position_bias is not None:
        logits = logits + position_bias
    probabilities = torch.softmax(logits if attention_mask is None else logits + attention_mask, dim=-1)
    if recorder is not None:
        recorder.logits.append(logits)
        recorder.probabilities.append(probabilities)
        recorder.values.append(value)
        recorder.scales.append(_scales.get().get(id(module)))
        if len(recorder.logits) == recorder.max_layers:
            raise RecordingComplete
    dropped = torch.nn.functional.dropout(probabilities, p=dropout, training=module.training)
    return _scale_heads(module, dropped @ value).transpose(1, 2).contiguous(), probabilities


def fused_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: torch.Tensor | None = None,
    softcap: float | None = None,
    **options: Any,
) -> torch.Tensor:
    """Compute attention by torch's kernel, which is faster but returns no probabilities.

    The kernel has no `softcap`: with one, plain tensor operations are used.
    """
    if softcap is not None:
        return _explicit_attention(
            module, query, key, value, attention_mask, None, scaling, dropout, position_bias, softcap, **options
        )[0]
    key, value = _shared_heads(query, key), _shared_heads(query, value)
    added = [part for part in (attention_mask, position_bias) if part is not None]
    mask = sum(added[1:], added[0]) if added else None
    outputs = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, dropout, scale=scaling)
    return _scale_heads(module, outputs).transpose(1, 2).contiguous()


def _shared_heads(
    query: Float[torch.Tensor, "batch head query d_head"], shared: Float[torch.Tensor, "batch group key d_head"]
) -> Float[torch.Tensor, "batch head key d_head"]:
    """Return the keys or values of each head, repeated if a group of heads shares them (Ainslie et al., 2023)."""
    size = query.shape[1] // shared.shape[1]
    return shared if size == 1 else shared.repeat_interleave(size, dim=1)


def _scale_heads(
    module: torch.nn.Module, outputs: Float[torch.Tensor, "batch head query d_head"]
) -> Float[torch.Tensor, "batch head query d_head"]:
    scale = _scales.get().get(id(module))
    return outputs if scale is None else outputs * scale[..., None, None]


@functools.cache
def register_attention(name: str, function: Callable[..., tuple[torch.Tensor, torch.Tensor | None]]) -> None:
    """Register an attention function in transformers, with additive masks."""
    transformers.AttentionInterface.register(name, function)
    transformers.AttentionMaskInterface.register(name, transformers.masking_utils.eager_mask)


_users: dict[int, list[tuple[object, str]]] = {}
"""Attention implementations by `id` of a config: the original, then those of the threads inside `use_attention`."""
_lock = threading.Lock()


@contextlib.contextmanager
def use_attention(module: torch.nn.Module, name: str) -> Iterator[None]:
    """Temporarily run all attention layers of `module` through the function registered as `name`.

    Threads may enter and leave in any order: the original function is restored when the last one leaves.
    """
    mark = object()
    every: list[Any] = [vars(part).get("config") for part in module.modules()]  # `hasattr` of a module is slow
    configs = [config for config in {id(c): c for c in every}.values() if hasattr(config, "_attn_implementation")]
    try:
        for config in configs:
            with _lock:
                _users.setdefault(id(config), [(config, config._attn_implementation)]).append((mark, name))
                config._attn_implementation = name
        yield
    finally:
        for config in configs:
            with _lock:
                users = [user for user in _users.get(id(config), ()) if user[0] is not mark]
                if users:
                    config._attn_implementation = users[-1][1]
                    _users[id(config)] = users
                if len(users) == 1:
                    del _users[id(config)]


@contextlib.contextmanager
def capture_attention(
    module: torch.nn.Module, max_layers: int | None = None, blocks: torch.nn.Module | None = None
) -> Iterator[AttentionRecorder]:
    """Record the attention layers in the block. A pass ends after the first `max_layers` layers.

    `blocks`: the only part of `module` that is recorded; None for all of it.
    """
    register_attention(CAPTURE, captured_attention)
    recorded = None if blocks is None else frozenset(map(id, blocks.modules()))
    recorder = AttentionRecorder(max_layers=max_layers, recorded=recorded)
    token = _recorder.set(recorder)
    try:
        with use_attention(module, CAPTURE), contextlib.suppress(RecordingComplete):
            yield recorder
    finally:
        _recorder.reset(token)


@contextlib.contextmanager
def twice_differentiable(module: torch.nn.Module) -> Iterator[None]:
    """Enable second derivatives in the block, in the model's precision.

    Torch's kernels have none, and some eager layers of transformers compute the softmax in single precision.
    """
    register_attention(PLAIN, plain_attention)
    with use_attention(module, PLAIN):
        yield


@contextlib.contextmanager
def unscaled_heads() -> Iterator[None]:
    """Run passes in the block, in this thread, as if no head were scaled."""
    token = _scales.set(MappingProxyType({}))
    try:
        yield
    finally:
        _scales.reset(token)


@contextlib.contextmanager
def scale_heads(
    module: torch.nn.Module,
    blocks: Iterable[torch.nn.Module],
    scales: Float[torch.Tensor, "#batch layer head"],
) -> Iterator[None]:
    """Scale the output of each head, before its layer's output projection, in the block and this thread.

    Scales may differ between rows of the batch. They replace those of enclosing blocks for the same module. Gradients
    flow to the scales.
    """
    register_attention(CAPTURE, captured_attention)
    own = {id(part): scales[:, layer] for layer, block in enumerate(blocks) for part in block.modules()}
    token = _scales.set({**_scales.get(), **own})
    try:
        with use_attention(module, CAPTURE):
            yield
    finally:
        _scales.reset(token)
