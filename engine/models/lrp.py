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
from engine.models.attention import fused_attention, implementation

LRP = "exegesis_lrp"
_WIDE = (torch.float32, torch.float64)


@dataclass
class Ledger:
    """What takes relevance and hands it no further, in logits, one number for each of so many rows.

    biases: of linear layers, and the shifts of norms. softmax: what is lost between attention's probabilities and its
    queries and keys, T5's position bias included. added: embeddings of positions and segments.
    """

    rows: int
    added: list[Tensor] = field(default_factory=list)
    _biases: dict[int, Tensor] = field(default_factory=dict)
    _come: list[Tensor] = field(default_factory=list)
    _gone: list[Tensor] = field(default_factory=list)

    def biases(self) -> Tensor:
        """Summed over positions here, at the end: there are dozens of biases, and a short pass is quick."""
        kept = [booked.reshape(self.rows, -1) for booked in self._biases.values()]
        return torch.cat(kept, 1).sum(1) if kept else torch.zeros(self.rows)

    def softmax(self) -> Tensor:
        lost = [*self._come, *self._gone]
        return 2 * torch.stack(lost).sum(0) if lost else torch.zeros(self.rows)

    def bias(self, slope: Tensor, bias: Tensor) -> None:
        """Books the part of a bias, `slope` the gradient at what it was added to."""
        flat = _wide(slope).flatten(0, -2)
        if len(flat) not in self._biases:
            self._biases[len(flat)] = flat.new_zeros(len(flat))
        self._biases[len(flat)].addmv_(flat, _wide(bias))

    def attention(self, query: Tensor, value: Tensor, output: Tensor) -> None:
        """Half of the gradient goes on at each product (proposition 3.3), and what the softmax keeps is booked.

        Queries and keys are behind two products, values behind one. What the softmax keeps is the relevance of the
        probabilities, half of the output's, less that of queries and keys, which is alike.
        """
        # Detached out here: a hook that held on to its own tensor would keep the whole pass in memory.
        made, asked = output.detach(), query.detach().transpose(1, 2)

        def come(slope: Tensor) -> Tensor:
            quarter = slope / 4
            self._come.append(_product(made, quarter))
            return quarter

        output.register_hook(come)
        value.register_hook(lambda slope: slope * 2)
        query.register_hook(lambda slope: self._gone.append(-_product(asked, slope.transpose(1, 2))))


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
        return output

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return slopes[0] * ctx.saved_tensors[0], None


class _Norm(torch.autograd.Function):
    """`output = norm(value)`, its standard deviation a constant: the identity rule of norms (proposition 3.4)."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, output: Tensor, scale: Tensor, norm: nn.Module, ledger: Ledger) -> Tensor:
        ctx.save_for_backward(scale)
        ctx.norm, ctx.ledger = norm, ledger
        return output

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None, None, None]:
        (slope,), (scale,), own = slopes, ctx.saved_tensors, ctx.norm._parameters
        if own.get("bias") is not None:
            ctx.ledger.bias(slope, own["bias"])
        slope = slope * own["weight"] * scale
        # Taking the mean away is linear, so its gradient is its rule.
        centred = slope - slope.mean(-1, keepdim=True) if isinstance(ctx.norm, nn.LayerNorm) else slope
        return centred, None, None, None, None


def share(value: Tensor, part: float) -> Tensor:
    """The uniform rule: a factor of a product gets its part of the relevance."""
    return _Share.apply(value, part)


def activated(value: Tensor, output: Tensor) -> Tensor:
    """The identity rule of an activation: all relevance goes through."""
    return _Ratio.apply(value, output.detach())


def normalised(value: Tensor, output: Tensor, norm: nn.Module, ledger: Ledger) -> Tensor:
    """The identity rule of LayerNorm, or of T5's RMSNorm, which takes no mean away and has no shift to book."""
    return _Norm.apply(value, output.detach(), _scale(value, output, norm), norm, ledger)


def _scale(value: Tensor, output: Tensor, norm: Any) -> Tensor:
    """What the norm multiplies by, a number a position. That of LayerNorm it has kept for its own gradient."""
    if isinstance(norm, nn.LayerNorm):
        return output.grad_fn._saved_result2  # type: ignore[union-attr]
    wide = _wide(value.detach())
    return torch.rsqrt(wide.square().mean(-1, keepdim=True) + norm.variance_epsilon).to(value.dtype)


_ledger: ContextVar[Ledger | None] = ContextVar("exegesis_lrp_ledger", default=None)


@contextlib.contextmanager
def rules(module: nn.Module, parts: LrpParts, rows: int) -> Iterator[Ledger]:
    """Gradients of a pass of so many rows inside, in this thread, follow AttnLRP's rules.

    Afterwards the module is as it was.
    """
    _register()
    ledger = Ledger(rows)
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
) -> tuple[Tensor, None]:
    """Attention of two products, each of whose factors gets half; softmax by its gradient (proposition 3.1)."""
    output = fused_attention(module, query, key, value, attention_mask, **more)
    ledger = _ledger.get()
    if ledger is not None and output.requires_grad:
        ledger.attention(query, value, output)
    return output, None


def _hooks(module: nn.Module, parts: LrpParts, ledger: Ledger) -> Iterator[Any]:
    """One hook at every place that `parts` names, and at every bias: each of them costs time in a short pass."""
    for part, name in _named(module).items():
        own = part._parameters
        ledger.added.extend(added for name in parts.added if (added := own.get(name)) is not None)
        if name in parts.norms:
            yield part.register_forward_hook(_here(ledger, lambda norm, x, y: normalised(x, y, norm, ledger)))
        elif name in parts.activations:
            yield part.register_forward_hook(_here(ledger, lambda _, x, y: activated(x, y)))
        elif name in parts.added:
            yield part.register_forward_hook(_here(ledger, lambda _, x, y: ledger.added.append(y)))
        elif (bias := own.get("bias")) is not None:
            yield part.register_forward_hook(_here(ledger, _booked(ledger, bias)))
        if parts.gated and parts.gated[0] in part._modules:
            product = part.get_submodule(parts.gated[1])
            yield product.register_forward_pre_hook(_before(ledger, lambda x: share(x, 0.5)))
    for before, after in parts.between:
        yield from _between(module.get_submodule(before), module.get_submodule(after), ledger)


def _named(module: nn.Module) -> dict[nn.Module, str]:
    """Every module by its last name, each once. Torch's own walk, which makes whole names, takes a while."""
    found, queue = {module: ""}, [module]
    for part in queue:
        new = {child: name for name, child in part._modules.items() if child is not None and child not in found}
        found.update(new)
        queue.extend(new)
    return found


def _booked(ledger: Ledger, bias: Tensor) -> Callable[[Any, Tensor, Tensor], None]:
    def rule(_: Any, given: Tensor, made: Tensor) -> None:
        if made.requires_grad:
            made.register_hook(lambda slope: ledger.bias(slope, bias))

    return rule


def _between(before: nn.Module, after: nn.Module, ledger: Ledger) -> Iterator[Any]:
    """An activation that is no module of its own: from what `before` gives to what `after` is given."""
    given: list[Tensor] = []
    yield before.register_forward_hook(_here(ledger, lambda _, x, y: given.append(y)))
    yield after.register_forward_pre_hook(_before(ledger, lambda y: activated(given.pop(), y)))


def _here(ledger: Ledger, rule: Callable[[Any, Tensor, Tensor], Tensor | None]) -> Any:
    """As a hook, for the passes of the thread that asked for the rules alone: the module is shared."""
    return lambda part, given, made: rule(part, given[0], made) if _inside(ledger) else None


def _before(ledger: Ledger, rule: Callable[[Tensor], Tensor]) -> Any:
    return lambda _, given: (rule(given[0]),) if _inside(ledger) else None


def _inside(ledger: Ledger) -> bool:
    return _ledger.get() is ledger


def _wide(values: Tensor) -> Tensor:
    return values if values.dtype in _WIDE else values.float()


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Of each row of a batch with the same row of the other."""
    return torch.linalg.vecdot(_wide(a.flatten(1)), _wide(b.flatten(1)))
