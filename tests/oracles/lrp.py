"""AttnLRP once more, rule by rule: each operation hands its relevance to what went into it, by explicit division.

No gradient anywhere, and nothing shared with the engine: a value remembers what made it, and relevance goes back
through these memories, the last first. Every rule divides by the value that it shares out, as the paper prints it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

Split = Callable[[Tensor], Sequence[Tensor]]
"""Relevance of a value to that of each of its parents."""


@dataclass(eq=False)
class Value:
    """A matrix `[position feature]` with what it was made of."""

    data: Tensor
    parents: tuple[Value, ...] = ()
    split: Split = lambda relevance: ()
    relevance: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.relevance = torch.zeros_like(self.data)


def propagate(last: Value, at: tuple[int, int]) -> None:
    """All of the value at that place is handed back."""
    order: list[Value] = []
    _visit(last, order, set())
    last.relevance[at] = last.data[at]
    for value in reversed(order):
        for parent, part in zip(value.parents, value.split(value.relevance), strict=True):
            parent.relevance += part


def _visit(value: Value, order: list[Value], seen: set[int]) -> None:
    if id(value) not in seen:
        seen.add(id(value))
        for parent in value.parents:
            _visit(parent, order, seen)
        order.append(value)


def shared_out(parts: Tensor, whole: Tensor, relevance: Tensor) -> Tensor:
    """`part / whole * relevance`; where there is nothing to share, nothing."""
    return torch.where(whole == 0, 0, parts / torch.where(whole == 0, 1, whole) * relevance)


def linear(x: Value, weight: Tensor, bias: Tensor | None) -> Value:
    """z_j = sum_i x_i w_ji + b_j; R_i = sum_j x_i w_ji / z_j R_j (eq. 8, epsilon 0): the bias keeps its part."""
    made = x.data @ weight.T + (0 if bias is None else bias)

    def split(relevance: Tensor) -> list[Tensor]:
        given = torch.zeros_like(x.data)
        for i in range(weight.shape[1]):
            given[:, i] = shared_out(x.data[:, i : i + 1] * weight[:, i], made, relevance).sum(1)
        return [given]

    return Value(made, (x,), split)


def add(a: Value, b: Value) -> Value:
    """Each term in proportion to what it adds (eq. 8)."""
    made = a.data + b.data
    return Value(made, (a, b), lambda r: [shared_out(a.data, made, r), shared_out(b.data, made, r)])


def plus(a: Value, constant: Tensor) -> Value:
    """What is constant keeps its part."""
    return add(a, Value(constant.expand(a.data.shape)))


def activation(x: Value, function: Callable[[Tensor], Tensor]) -> Value:
    """All relevance goes through (eq. 9)."""
    return Value(function(x.data), (x,), lambda r: [torch.where(x.data == 0, 0, r)])


def scaled(x: Value, by: Tensor) -> Value:
    """A number times a constant: all relevance goes through."""
    return Value(x.data * by, (x,), lambda r: [r])


def layer_norm(x: Value, weight: Tensor, bias: Tensor, epsilon: float) -> Value:
    """The mean taken away as a linear layer, the division by a constant deviation, the shift as a bias."""
    size = x.data.shape[1]
    centerd = linear(x, torch.eye(size, dtype=x.data.dtype) - 1 / size, None)
    deviation = ((centerd.data**2).mean(1, keepdim=True) + epsilon).sqrt()
    return plus(scaled(scaled(centerd, 1 / deviation), weight), bias)


def rms_norm(x: Value, weight: Tensor, epsilon: float) -> Value:
    """T5 takes the square in single precision."""
    square = x.data.float().pow(2).mean(1, keepdim=True)
    return scaled(scaled(x, torch.rsqrt(square + epsilon)), weight)


def softmax(x: Value) -> Value:
    """R_i = x_i (R_i - s_i sum_j R_j), the Taylor expansion (proposition 3.1); a masked logit has no relevance."""
    shares = torch.softmax(x.data, dim=1)
    finite = torch.where(x.data.isinf(), 0, x.data)
    return Value(shares, (x,), lambda r: [finite * (r - shares * r.sum(1, keepdim=True))])


def product(a: Value, b: Value) -> Value:
    """O = A B: `A_ji B_ip / (2 O_jp) R_jp`, half to each factor (proposition 3.3)."""
    made = a.data @ b.data

    def split(relevance: Tensor) -> list[Tensor]:
        left, right = torch.zeros_like(a.data), torch.zeros_like(b.data)
        for i in range(a.data.shape[1]):
            part = shared_out(a.data[:, i : i + 1] * b.data[i : i + 1], 2 * made, relevance)
            left[:, i] += part.sum(1)
            right[i] += part.sum(0)
        return [left, right]

    return Value(made, (a, b), split)


def times(a: Value, b: Value) -> Value:
    """An elementwise product: half to each factor (proposition 3.2)."""
    return Value(a.data * b.data, (a, b), lambda r: [r / 2, r / 2])


def transposed(x: Value) -> Value:
    return Value(x.data.T, (x,), lambda r: [r.T])


def columns(x: Value, start: int, stop: int) -> Value:
    def split(relevance: Tensor) -> list[Tensor]:
        given = torch.zeros_like(x.data)
        given[:, start:stop] = relevance
        return [given]

    return Value(x.data[:, start:stop], (x,), split)


def beside(parts: Sequence[Value]) -> Value:
    widths = [part.data.shape[1] for part in parts]
    return Value(torch.cat([part.data for part in parts], 1), tuple(parts), lambda r: r.split(widths, 1))


def row(x: Value, place: int) -> Value:
    def split(relevance: Tensor) -> list[Tensor]:
        given = torch.zeros_like(x.data)
        given[place] = relevance[0]
        return [given]

    return Value(x.data[place : place + 1], (x,), split)


def mean_row(x: Value) -> Value:
    """The mean of all rows, each in proportion to what it adds."""
    made = x.data.mean(0, keepdim=True)
    return Value(made, (x,), lambda r: [shared_out(x.data / len(x.data), made, r)])


def attention(query: Value, key: Value, value: Value, heads: int, scale: float, bias: Tensor | None) -> Value:
    """Head by head. `bias` is `[head query key]`: T5's, or minus infinity where a query may not attend."""
    size, made = query.data.shape[1] // heads, []
    for head in range(heads):
        q, k, v = (columns(part, head * size, (head + 1) * size) for part in (query, key, value))
        logits = scaled(product(q, transposed(k)), torch.tensor(scale, dtype=q.data.dtype))
        if bias is not None:
            logits = _with_bias(logits, bias[head])
        made.append(product(softmax(logits), v))
    return beside(made)


def _with_bias(logits: Value, bias: Tensor) -> Value:
    made = logits.data + bias
    share = torch.where(bias.isinf() | (made == 0), 0, logits.data / torch.where(made == 0, 1, made))
    return Value(made, (logits,), lambda r: [share * r])


def deviation_of_heads(size: int) -> float:
    """What attention divides by, as a factor."""
    return 1 / math.sqrt(size)
