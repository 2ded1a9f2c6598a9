"""AttnLRP's rules as a changed backward pass through the modules themselves, and what does not reach the embeddings.

Where a rule is applied, the values stay what they are and only the gradient changes, so that the embedding times the
gradient is the relevance (Achtibat et al., 2024, section 3 and appendix A). Import it late: it needs torch.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from engine.models.adapters import LrpParts
from engine.models.attention import captured_attention, implementation

LRP = "exegesis_lrp"


@dataclass
class Ledger:
    """What takes relevance and hands it no further, in logits, one number a row.

    biases: of linear layers, and the shifts of norms. softmax: what is lost between attention's probabilities and its
    queries and keys, T5's position bias included. added: embeddings of positions and segments.
    """

    softmax: Tensor | float = 0.0
    added: list[Tensor] = field(default_factory=list)
    _biases: list[Tensor] = field(default_factory=list)

    @property
    def biases(self) -> Tensor | float:
        """Summed at the end and at once: there are dozens of them, and a short pass is quick."""
        if not self._biases:
            return 0.0
        return torch.cat([booked.reshape(len(booked), -1) for booked in self._biases], 1).sum(1)

    def bias(self, output: Tensor, bias: Tensor) -> None:
        """The bias of what made `output` is booked as the gradient passes, if one does."""
        if not output.requires_grad:
            return
        wide = _wide(bias)
        output.register_hook(lambda slope: self._biases.append(slope.to(wide.dtype) @ wide))

    def attention(self, query: Tensor, key: Tensor, output: Tensor) -> None:
        """Half of the gradient goes on at each product (proposition 3.3), and what the softmax keeps is booked.

        That is the relevance of the probabilities, half of the output's, less what queries and keys, alike, get of it.
        """

        def come(slope: Tensor) -> Tensor:
            half = slope / 2
            self.softmax = self.softmax + _rows(_wide(output.detach()) * _wide(half))
            return half

        def gone(slope: Tensor) -> Tensor:
            half = slope / 2
            self.softmax = self.softmax - 2 * _rows(_wide(query.detach()) * _wide(half))
            return half

        output.register_hook(come)
        query.register_hook(gone)
        key.register_hook(lambda slope: slope / 2)


class _Share(torch.autograd.Function):
    """The value as it is, the gradient times a number: the uniform rule of a product (proposition 3.3)."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, share: float) -> Tensor:
        ctx.share = share
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return slopes[0] * ctx.share, None


class _Ratio(torch.autograd.Function):
    """`output = f(value)` element by element, the gradient times f(x) / x: the identity rule (eq. 9)."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, output: Tensor) -> Tensor:
        ctx.save_for_backward((output / value).nan_to_num_(0.0, 0.0, 0.0))
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return slopes[0] * ctx.saved_tensors[0], None


class _Norm(torch.autograd.Function):
    """`output = norm(value)`, its standard deviation a constant: the identity rule of norms (proposition 3.4)."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, output: Tensor, weight: Tensor, epsilon: float, centred: bool) -> Tensor:
        wide = _wide(value)
        away = wide - wide.mean(-1, keepdim=True) if centred else wide
        spread = torch.linalg.vecdot(away, away)[..., None] / value.shape[-1]
        ctx.save_for_backward(torch.rsqrt(spread + epsilon).to(value.dtype), weight)
        ctx.centred = centred
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None, None, None]:
        scale, weight = ctx.saved_tensors
        slope = slopes[0] * weight * scale
        # Taking the mean away is linear, so its gradient is its rule.
        return slope - slope.mean(-1, keepdim=True) if ctx.centred else slope, None, None, None, None


def share(value: Tensor, part: float) -> Tensor:
    """The uniform rule: a factor of a product gets its part of the relevance."""
    return _Share.apply(value, part)


def activated(value: Tensor, output: Tensor) -> Tensor:
    """The identity rule of an activation: all relevance goes through."""
    return _Ratio.apply(value, output.detach())


def normalised(value: Tensor, output: Tensor, norm: nn.Module) -> Tensor:
    """The identity rule of LayerNorm, or of T5's RMSNorm, whose variance is not taken about the mean."""
    centred = isinstance(norm, nn.LayerNorm)
    epsilon = norm.eps if isinstance(norm, nn.LayerNorm) else norm.variance_epsilon
    return _Norm.apply(value, output.detach(), norm.weight, epsilon, centred)


_ledger: ContextVar[Ledger | None] = ContextVar("exegesis_lrp_ledger", default=None)


@contextlib.contextmanager
def rules(module: nn.Module, parts: LrpParts) -> Iterator[Ledger]:
    """Gradients of passes inside, in this thread, follow AttnLRP's rules. Afterwards the module is as it was."""
    _register()
    ledger = Ledger()
    token = _ledger.set(ledger)
    with contextlib.ExitStack() as stack:
        stack.callback(_ledger.reset, token)
        stack.enter_context(implementation(module, LRP))
        for handle in _hooks(module, parts, ledger):
            stack.callback(handle.remove)
        yield ledger


@functools.cache
def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(LRP, _attention)
    AttentionMaskInterface.register(LRP, eager_mask)


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
) -> tuple[Tensor, Tensor]:
    """Attention of two products, each of whose factors gets half; softmax by its gradient (proposition 3.1)."""
    output, probabilities = captured_attention(module, query, key, value, attention_mask, **more)
    ledger = _ledger.get()
    if ledger is not None:
        ledger.attention(query, key, output)
    return output, probabilities


def _hooks(module: nn.Module, parts: LrpParts, ledger: Ledger) -> Iterator[Any]:
    """One hook at every place that `parts` names, and at every bias: each of them costs time in a short pass."""
    for path, part in module.named_modules():
        name, own = _last(path), part._parameters
        ledger.added.extend(own[added] for added in parts.added if added in own)
        if name in parts.norms:
            yield part.register_forward_hook(_here(ledger, _norm_rule(ledger)))
        elif name in parts.activations:
            yield part.register_forward_hook(_here(ledger, lambda _, x, y: activated(x, y)))
        elif name in parts.added:
            yield part.register_forward_hook(_here(ledger, lambda _, x, y: ledger.added.append(y)))
        elif own.get("bias") is not None:
            yield part.register_forward_hook(_here(ledger, lambda layer, _, y: ledger.bias(y, layer.bias)))
        if parts.gated and parts.gated[0] in part._modules:
            product = part.get_submodule(parts.gated[1])
            yield product.register_forward_pre_hook(_before(ledger, lambda x: share(x, 0.5)))
    for before, after in parts.between:
        yield from _between(module.get_submodule(before), module.get_submodule(after), ledger)


def _between(before: nn.Module, after: nn.Module, ledger: Ledger) -> Iterator[Any]:
    """An activation that is no module of its own: from what `before` gives to what `after` is given."""
    given: list[Tensor] = []
    yield before.register_forward_hook(_here(ledger, lambda _, x, y: given.append(y)))
    yield after.register_forward_pre_hook(_before(ledger, lambda y: activated(given.pop(), y)))


def _norm_rule(ledger: Ledger) -> Callable[[Any, Tensor, Tensor], Tensor]:
    """T5's norms have no shift that could keep relevance."""

    def rule(norm: Any, value: Tensor, output: Tensor) -> Tensor:
        made = normalised(value, output, norm)
        if norm._parameters.get("bias") is not None:
            ledger.bias(made, norm.bias)
        return made

    return rule


def _here(ledger: Ledger, rule: Callable[[Any, Tensor, Tensor], Tensor | None]) -> Any:
    """As a hook, for the passes of the thread that asked for the rules alone: the module is shared."""
    return lambda part, given, made: rule(part, given[0], made) if _inside(ledger) else None


def _before(ledger: Ledger, rule: Callable[[Tensor], Tensor]) -> Any:
    return lambda _, given: (rule(given[0]),) if _inside(ledger) else None


def _inside(ledger: Ledger) -> bool:
    return _ledger.get() is ledger


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _wide(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _rows(values: Tensor) -> Tensor:
    """The sum of each row of a batch."""
    return values.flatten(1).sum(1) if values.dim() > 1 else values
