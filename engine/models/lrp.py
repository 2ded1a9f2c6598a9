"""AttnLRP as modified gradients of modules, with the relevance that does not reach the embeddings.

The rules change gradients but not values, so that the embedding times the gradient is the relevance (Achtibat et al.,
2024, section 3 and appendix A). Import this module lazily: it imports torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from engine.errors import ExegesisError
from engine.models.attention import fused_attention, plain_attention, register_attention, use_attention
from engine.models.text_adapter import LrpParts, TextAdapter
from engine.vision.adapters import ImageAdapter


class UnitLength(nn.Module):
    """Divide vectors by their lengths. AttnLRP treats it as a norm without weights: the length counts as constant."""

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors / vectors.norm(dim=-1, keepdim=True)


LRP = "exegesis_lrp"
_WIDE = (torch.float32, torch.float64)


@dataclass
class AbsorbedRelevance:
    """Relevance that is not propagated to the embeddings, in logits, for each of `rows` rows.

    biases: of linear layers and norms. softmax: the loss between attention's probabilities and its queries and keys,
    including T5's position bias. added: embeddings of positions and segments. batched: several backward passes run
    through `torch.func.vmap`, which has no rule for torch's attention kernel.
    """

    rows: int
    batched: bool = False
    added: list[Tensor] = field(default_factory=list)
    _biases: dict[int, Tensor] = field(default_factory=dict)
    _entering: list[Tensor] = field(default_factory=list)
    _leaving: list[Tensor] = field(default_factory=list)

    def biases(self) -> Tensor:
        """Relevance of biases, summed over positions at the end, as summing each bias would slow down short passes."""
        parts = [absorbed.reshape(self.rows, -1) for absorbed in self._biases.values()]
        return torch.cat(parts, 1).sum(1) if parts else torch.zeros(self.rows)

    def softmax(self) -> Tensor:
        # If attention stays within windows, the windows of one row are consecutive.
        lost = [part.reshape(self.rows, -1).sum(1) for part in (*self._entering, *self._leaving)]
        return 2 * torch.stack(lost).sum(0) if lost else torch.zeros(self.rows)

    def parts(self, slope: Tensor) -> dict[str, Tensor]:
        """Return the relevance without a token, by name. `slope`: gradient at the sum of word and added embeddings."""
        positions = [(slope * added).sum((1, 2)) for added in self.added]
        return {
            "biases": self.biases(),
            "positions": torch.stack(positions).sum(0) if positions else torch.zeros(self.rows),
            "softmax": self.softmax(),
        }

    def clear(self) -> None:
        """Reset the relevance that backward passes have added."""
        self._biases.clear()
        self._entering.clear()
        self._leaving.clear()

    def add_bias(self, slope: Tensor, bias: Tensor) -> None:
        """Add the relevance of a bias; `slope` is the gradient at the sum."""
        flat = _wide(slope).flatten(0, -2)
        added = flat @ _wide(bias)
        before = self._biases.get(len(flat))
        self._biases[len(flat)] = added if before is None else before + added

    def watch_attention(self, query: Tensor, value: Tensor, output: Tensor) -> None:
        """Halve the gradient at each product (proposition 3.3) and add the relevance that the softmax absorbs.

        Queries and keys are behind two products, values behind one. The softmax absorbs the relevance of the
        probabilities, which is half of the output's, minus those of queries and keys, which are equal.
        """
        # Detached here: a hook that refers to its own tensor would keep the whole pass in memory.
        output_values, query_values = output.detach(), query.detach().transpose(1, 2)

        def enter(slope: Tensor) -> Tensor:
            quarter = slope / 4
            self._entering.append(_row_products(output_values, quarter))
            return quarter

        output.register_hook(enter)
        value.register_hook(lambda slope: slope * 2)
        query.register_hook(lambda slope: self._leaving.append(-_row_products(query_values, slope.transpose(1, 2))))


class _Share(torch.autograd.Function):
    """Uniform rule of a product: identity, with a scaled gradient (proposition 3.3)."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, share: float) -> Tensor:
        ctx.share = share
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return slopes[0] * ctx.share, None


class _Ratio(torch.autograd.Function):
    """Identity rule of elementwise `output = f(value)`: the gradient is multiplied by f(x) / x (eq. 9)."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, output: Tensor) -> Tensor:
        ctx.save_for_backward((output / value).nan_to_num_(0.0, 0.0, 0.0))
        return output

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return slopes[0] * ctx.saved_tensors[0], None


class _Norm(torch.autograd.Function):
    """Identity rule of `output = norm(value)`: its standard deviation counts as constant (proposition 3.4)."""

    @staticmethod
    def forward(
        ctx: Any, value: Tensor, output: Tensor, scale: Tensor, norm: nn.Module, shift: float, absorbed: Any
    ) -> Tensor:
        ctx.save_for_backward(scale)
        ctx.norm, ctx.shift, ctx.absorbed = norm, shift, absorbed
        return output

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        (slope,), (scale,), own = slopes, ctx.saved_tensors, ctx.norm._parameters
        if own.get("bias") is not None:
            ctx.absorbed.add_bias(slope, own["bias"])
        slope = slope * scale if own.get("weight") is None else slope * (own["weight"] + ctx.shift) * scale
        # Subtracting the mean is linear, so its gradient is its rule.
        centered = slope - slope.mean(-1, keepdim=True) if isinstance(ctx.norm, nn.LayerNorm) else slope
        return centered, None, None, None, None, None


def share_product(value: Tensor, part: float) -> Tensor:
    """Apply the uniform rule: a factor of a product gets its share of the relevance."""
    return _Share.apply(value, part)


def pass_activation(value: Tensor, output: Tensor) -> Tensor:
    """Apply the identity rule of an activation, which passes all relevance."""
    return _Ratio.apply(value, output.detach())


def pass_norm(
    value: Tensor, output: Tensor, norm: nn.Module, absorbed: AbsorbedRelevance, shift: float = 0.0
) -> Tensor:
    """Apply the identity rule of LayerNorm or RMSNorm, which has no mean and no bias. `shift`: added to its weights."""
    return _Norm.apply(value, output.detach(), _norm_scale(value, output, norm), norm, shift, absorbed)


def _norm_scale(value: Tensor, output: Tensor, norm: Any) -> Tensor:
    """Return the norm's factor for each position, which LayerNorm has stored for its gradient."""
    if isinstance(norm, nn.LayerNorm):
        return output.grad_fn._saved_result2  # type: ignore[union-attr]
    wide = _wide(value.detach())
    if isinstance(norm, UnitLength):
        return (1 / wide.norm(dim=-1, keepdim=True)).to(value.dtype)
    epsilon = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
    return torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon).to(value.dtype)


_absorbed: ContextVar[AbsorbedRelevance | None] = ContextVar("exegesis_lrp_absorbed", default=None)


def lrp_parts(adapter: TextAdapter | ImageAdapter) -> LrpParts:
    """Return the modules of a family to which the rules apply. Errors: the rules do not cover the family."""
    if adapter.lrp is None:
        raise ExegesisError(
            f"attn_lrp: its rules do not cover {adapter.family} models: there is none for "
            f"{adapter.lrp_missing or 'a part of them'}. Use another method, such as integrated_gradients."
        )
    return adapter.lrp


@contextlib.contextmanager
def lrp_rules(module: nn.Module, parts: LrpParts, rows: int, batched: bool = False) -> Iterator[AbsorbedRelevance]:
    """Apply AttnLRP's rules to gradients of a pass of `rows` rows in the block and this thread.

    `batched`: the gradients are taken inside `torch.func.vmap`.
    """
    register_attention(LRP, lrp_attention)
    absorbed = AbsorbedRelevance(rows, batched)
    token = _absorbed.set(absorbed)
    with contextlib.ExitStack() as stack:
        stack.callback(_absorbed.reset, token)
        stack.enter_context(use_attention(module, LRP))
        for handle in _register_hooks(module, parts, absorbed):
            stack.callback(handle.remove)
        yield absorbed


def lrp_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Compute attention; each factor of its two products gets half, the softmax uses its gradient (proposition 3.1)."""
    absorbed = _absorbed.get()
    if absorbed is not None and absorbed.batched:
        output = plain_attention(module, query, key, value, attention_mask, **options)[0]
    else:
        output = fused_attention(module, query, key, value, attention_mask, **options)
    if absorbed is not None and output.requires_grad:
        absorbed.watch_attention(query, value, output)
    return output, None


def _register_hooks(module: nn.Module, parts: LrpParts, absorbed: AbsorbedRelevance) -> Iterator[Any]:
    """Register one hook at each module in `parts` and at each bias; more hooks would slow down short passes."""

    def after(part: nn.Module, rule: Callable[[Any, Tensor, Tensor], Tensor | None]) -> Any:
        """Apply the rule after the module, in this thread only, since the module is shared."""
        return part.register_forward_hook(
            lambda part, args, output: rule(part, args[0], output) if _absorbed.get() is absorbed else None
        )

    def before(part: nn.Module, rule: Callable[[Tensor], Tensor]) -> Any:
        return part.register_forward_pre_hook(lambda _, args: (rule(args[0]),) if _absorbed.get() is absorbed else None)

    def between(first: nn.Module, second: nn.Module) -> Iterator[Any]:
        """Apply the rule of a functional activation between the output of `first` and the input of `second`."""
        outputs: list[Tensor] = []
        yield after(first, lambda _, x, y: outputs.append(y))
        yield before(second, lambda y: pass_activation(outputs.pop(), y))

    for part, name in _last_names(module).items():
        own = part._parameters
        absorbed.added.extend(added for name in parts.added if (added := own.get(name)) is not None)
        if name in parts.norms and not isinstance(part, nn.Identity):  # as in ModernBERT's first block
            yield after(part, lambda norm, x, y: pass_norm(x, y, norm, absorbed, parts.norm_shift))
        elif name in parts.activations:
            yield after(part, lambda _, x, y: pass_activation(x, y))
        elif name in parts.added:
            yield after(part, lambda _, x, y: absorbed.added.append(y))
        elif own.get("bias") is not None or part._buffers.get("bias") is not None:
            yield after(part, lambda linear, _, y: _watch_bias(y, linear.bias, absorbed))
        if parts.gated and parts.gated[0] in part._modules:
            yield before(part.get_submodule(parts.gated[1]), lambda x: share_product(x, 0.5))
    for first, second in parts.between:
        yield from between(module.get_submodule(first), module.get_submodule(second))


def _last_names(module: nn.Module) -> dict[nn.Module, str]:
    """Map each module to the last part of its name. `named_modules` builds full names and is slower."""
    names, queue = {module: ""}, [module]
    for part in queue:
        new = {child: name for name, child in part._modules.items() if child is not None and child not in names}
        names.update(new)
        queue.extend(new)
    return names


def _watch_bias(output: Tensor, bias: Tensor, absorbed: AbsorbedRelevance) -> None:
    if output.requires_grad:
        output.register_hook(lambda slope: absorbed.add_bias(slope, bias))


def _wide(values: Tensor) -> Tensor:
    return values if values.dtype in _WIDE else values.float()


def _row_products(a: Tensor, b: Tensor) -> Tensor:
    """Inner products of corresponding rows of two batches."""
    return torch.linalg.vecdot(_wide(a.flatten(1)), _wide(b.flatten(1)))
