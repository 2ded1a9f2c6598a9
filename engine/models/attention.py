"""The one mechanism that reads attention, for every family.

Transformers calls a registered function with queries, keys, values, the scaling, the mask and T5's position bias.
Ours computes the same attention in plain, twice differentiable tensor operations, hands each layer's logits and
probabilities to a recorder if there is one (else torch's own kernel is quicker), and scales the outputs of heads where
that is asked. It is registered under the same name
for the masks: without that the mask is silently dropped, GPT-2 loses causality and BERT attends to padding.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from jaxtyping import Float

from engine.late import torch

CAPTURE = "exegesis_capture"
PLAIN = "exegesis_plain"


class Enough(Exception):
    """All that was asked of a pass is recorded, so that the rest of it need not run."""


@dataclass
class Recorder:
    """Attention of each layer in calling order, each `[batch head query key]`.

    `most`: after so many layers the pass is ended by `Enough`; None lets it run through.
    """

    logits: list[torch.Tensor] = field(default_factory=list)
    probabilities: list[torch.Tensor] = field(default_factory=list)
    scales: list[torch.Tensor | None] = field(default_factory=list)
    """What the outputs of its heads are multiplied by, each `[#batch head]`; None where none is scaled."""
    most: int | None = None


_recorder: ContextVar[Recorder | None] = ContextVar("exegesis_attention_recorder", default=None)
_scales: ContextVar[Mapping[int, torch.Tensor]] = ContextVar("exegesis_head_scales", default=MappingProxyType({}))
"""By the `id` of a part of a block, `[#batch head]`: the order of calls would be wrong after a pass that failed."""


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
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention as the model computes it, recorded. The recorded logits hold scaling and bias but no mask."""
    recorder = _recorder.get()
    if recorder is None:
        return fused_attention(module, query, key, value, attention_mask, scaling, dropout, position_bias), None
    logits, probabilities = _weights(query, key, attention_mask, scaling, position_bias)
    recorder.logits.append(logits)
    recorder.probabilities.append(probabilities)
    recorder.scales.append(_scales.get().get(id(module)))
    if len(recorder.logits) == recorder.most:
        raise Enough
    dropped = torch.nn.functional.dropout(probabilities, p=dropout, training=module.training)
    return _scaled(module, dropped @ value).transpose(1, 2).contiguous(), probabilities


def plain_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """The same in plain tensor operations, and nothing is recorded."""
    probabilities = _weights(query, key, attention_mask, scaling, position_bias)[1]
    dropped = torch.nn.functional.dropout(probabilities, p=dropout, training=module.training)
    return _scaled(module, dropped @ value).transpose(1, 2).contiguous(), None


def _weights(
    query: torch.Tensor,
    key: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None,
    position_bias: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits without the mask, and probabilities with it, in the precision of the queries."""
    logits = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if position_bias is not None:
        logits = logits + position_bias
    return logits, torch.softmax(logits if attention_mask is None else logits + attention_mask, dim=-1)


def fused_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: torch.Tensor | None = None,
    **_: Any,
) -> torch.Tensor:
    """The same attention by torch's own kernel: quicker, but its probabilities are nowhere to be seen."""
    added = [part for part in (attention_mask, position_bias) if part is not None]
    mask = sum(added[1:], added[0]) if added else None
    outputs = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, dropout, scale=scaling)
    return _scaled(module, outputs).transpose(1, 2).contiguous()


def _scaled(
    module: torch.nn.Module, outputs: Float[torch.Tensor, "batch head query d_head"]
) -> Float[torch.Tensor, "batch head query d_head"]:
    scale = _scales.get().get(id(module))
    return outputs if scale is None else outputs * scale[..., None, None]


@functools.cache
def _register() -> None:
    # Here and not above: transformers takes seconds to import, and the list of explainers needs none of it.
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    for name, function in ((CAPTURE, captured_attention), (PLAIN, plain_attention)):
        AttentionInterface.register(name, function)
        AttentionMaskInterface.register(name, eager_mask)


@contextlib.contextmanager
def implementation(module: torch.nn.Module, name: str) -> Iterator[None]:
    """Every attention layer of `module` runs through `name` inside, and through its own again afterwards.

    Threads may come and leave in any order: the own one is back when the last has left.
    """
    mark = object()
    configs = _configs(module)
    try:
        for config in configs:
            _enter(config, name, mark)
        yield
    finally:
        for config in configs:
            _leave(config, mark)


_users: dict[int, list[tuple[object, str]]] = {}
"""By the `id` of a config: its own implementation first, then that of each who is inside."""
_lock = threading.Lock()


def _enter(config: Any, name: str, mark: object) -> None:
    with _lock:
        _users.setdefault(id(config), [(config, config._attn_implementation)]).append((mark, name))
        config._attn_implementation = name


def _leave(config: Any, mark: object) -> None:
    with _lock:
        users = [user for user in _users.get(id(config), ()) if user[0] is not mark]
        if users:
            config._attn_implementation = users[-1][1]
            _users[id(config)] = users
        if len(users) == 1:
            del _users[id(config)]


@contextlib.contextmanager
def capture(module: torch.nn.Module, most: int | None = None) -> Iterator[Recorder]:
    """A recorder of every attention layer that runs inside; a pass ends itself after the first `most` of them."""
    _register()
    recorder = Recorder(most=most)
    token = _recorder.set(recorder)
    try:
        with implementation(module, CAPTURE), contextlib.suppress(Enough):
            yield recorder
    finally:
        _recorder.reset(token)


@contextlib.contextmanager
def twice_differentiable(module: torch.nn.Module) -> Iterator[None]:
    """What runs inside has second derivatives, in the model's own precision.

    Torch's own kernels have none, and some eager layers of transformers take the softmax in single precision.
    """
    _register()
    with implementation(module, PLAIN):
        yield


@contextlib.contextmanager
def scaled_heads(
    module: torch.nn.Module,
    blocks: Iterable[torch.nn.Module],
    scales: Float[torch.Tensor, "#batch layer head"],
) -> Iterator[None]:
    """The output of each head, before its layer's output projection, is multiplied by its scale.

    A row of the batch may have scales of its own.
    For passes of this thread inside. Scales of the same module further out are replaced, not multiplied. Gradients
    flow to the scales.
    """
    _register()
    mine = {id(part): scales[:, layer] for layer, block in enumerate(blocks) for part in block.modules()}
    token = _scales.set({**_scales.get(), **mine})
    try:
        with implementation(module, CAPTURE):
            yield
    finally:
        _scales.reset(token)


def _configs(module: torch.nn.Module) -> list[Any]:
    found = [vars(part).get("config") for part in module.modules()]  # `hasattr` of a module takes a while
    return [config for config in {id(c): c for c in found}.values() if hasattr(config, "_attn_implementation")]
