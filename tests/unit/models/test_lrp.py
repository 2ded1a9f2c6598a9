"""AttnLRP's rules, each alone: value times changed gradient against the division that the paper prints."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers.activations import NewGELUActivation
from transformers.models.t5.modeling_t5 import T5LayerNorm

from engine.models.lrp import AbsorbedRelevance, lrp_attention, lrp_rules, pass_activation, pass_norm, share_product
from engine.models.text_adapter import LrpParts
from tests.oracles import lrp
from tests.oracles.lrp import Value

WIDE = torch.float64
NO_PARTS = LrpParts((), ())


def random_tensor(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=WIDE)


def propagate(output: Tensor, relevance: Tensor, *inputs: Tensor) -> list[Tensor]:
    """Relevance of the inputs, when the output has that relevance."""
    slopes = torch.autograd.grad((output * (relevance / output).detach()).sum(), inputs)
    return [(x * slope).detach() for x, slope in zip(inputs, slopes, strict=True)]


def propagate_slowly(last: Value, relevance: Tensor, *inputs: Value) -> list[Tensor]:
    """The same by the slow rules, which start from a value's own relevance: here a product with what it should be."""
    weighted = lrp.scaled(last, relevance / last.data)
    total = lrp.linear(weighted, torch.ones(1, last.data.shape[1], dtype=WIDE), None)
    all_rows = lrp.linear(lrp.transposed(total), torch.ones(1, len(last.data), dtype=WIDE), None)
    lrp.propagate(all_rows, (0, 0))
    return [value.relevance for value in inputs]


@pytest.mark.parametrize("function", [nn.functional.gelu, torch.tanh, torch.relu, NewGELUActivation()])
def test_activation(function: Callable[[Tensor], Tensor]) -> None:
    x, relevance = random_tensor(3, 4).requires_grad_(), random_tensor(3, 4, seed=1)
    (mine,) = propagate(pass_activation(x, function(x)), torch.where(function(x) == 0, 0, relevance).nan_to_num(), x)
    expected = torch.where(function(x) == 0, 0, relevance)
    torch.testing.assert_close(mine.nan_to_num(), expected.detach())


def test_zero_goes_through_an_activation_without_a_trace() -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    (slope,) = torch.autograd.grad(pass_activation(x, x.tanh()).sum(), x)
    assert slope.tolist() == pytest.approx([0, math.tanh(1)])


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norm(kind: str) -> None:
    norm = (nn.LayerNorm(5, eps=1e-3) if kind == "layer" else T5LayerNorm(5, eps=1e-3)).to(WIDE)
    norm.weight.data = random_tensor(5, seed=2)
    if isinstance(norm, nn.LayerNorm):
        norm.bias.data = random_tensor(5, seed=3)
    norm.requires_grad_(False)
    x, relevance = random_tensor(3, 5).requires_grad_(), random_tensor(3, 5, seed=4)
    absorbed = AbsorbedRelevance(rows=3)
    output = pass_norm(x, norm(x), norm, absorbed)
    assert torch.equal(output, norm(x)), "values stay what they are, bit for bit"
    slow = Value(x.detach())
    if isinstance(norm, nn.LayerNorm):
        last = lrp.layer_norm(slow, norm.weight, norm.bias, 1e-3)
    else:
        last = lrp.rms_norm(slow, norm.weight, 1e-3)
    (mine,), (expected,) = propagate(output, relevance, x), propagate_slowly(last, relevance, slow)
    torch.testing.assert_close(mine, expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(absorbed.biases().to(WIDE), (relevance - mine).sum(1), rtol=1e-6, atol=1e-6)


def test_linear_with_bias() -> None:
    """The gradient itself is the rule, and the bias is counted."""
    torch.manual_seed(0)
    layer = nn.Linear(4, 3).to(WIDE).requires_grad_(False)
    x, relevance = random_tensor(2, 4).requires_grad_(), random_tensor(2, 3, seed=1)
    slow = Value(x.detach())
    (expected,) = propagate_slowly(lrp.linear(slow, layer.weight, layer.bias), relevance, slow)
    with lrp_rules(layer, NO_PARTS, rows=2) as absorbed:
        (mine,) = propagate(layer(x), relevance, x)
    torch.testing.assert_close(mine, expected)
    absorbed_sum = (relevance - mine.sum(1, keepdim=True) / 3).sum(1)
    torch.testing.assert_close(absorbed.biases(), absorbed_sum)
    assert absorbed_sum.abs().min() > 0.01


def test_an_elementwise_product_is_halved() -> None:
    a, b, relevance = (
        random_tensor(2, 3).requires_grad_(),
        random_tensor(2, 3, seed=1).requires_grad_(),
        random_tensor(2, 3, seed=2),
    )
    slow = Value(a.detach()), Value(b.detach())
    mine = propagate(share_product(a * b, 0.5), relevance, a, b)
    for actual_part, expected_part in zip(mine, propagate_slowly(lrp.times(*slow), relevance, *slow), strict=True):
        torch.testing.assert_close(actual_part, expected_part)
        torch.testing.assert_close(actual_part, relevance / 2)


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked: bool) -> None:
    """Both products halved, the softmax by its Taylor expansion, a position bias included; what is lost is counted."""
    query, key, value = (random_tensor(1, 2, 4, 3, seed=seed).requires_grad_() for seed in range(3))
    bias = None if masked else random_tensor(1, 2, 4, 4, seed=5)
    mask = torch.full((4, 4), torch.finfo(WIDE).min, dtype=WIDE).triu(1)[None, None] if masked else None
    relevance = random_tensor(4, 6, seed=6)
    module = nn.Identity().eval()
    with lrp_rules(module, NO_PARTS, rows=1) as absorbed:
        output, _ = lrp_attention(module, query, key, value, mask, scaling=0.7, position_bias=bias)
        mine = propagate(output, relevance.view(1, 4, 2, 3), query, key, value)
    slow = [Value(part.detach()[0].transpose(0, 1).reshape(4, 6)) for part in (query, key, value)]
    future = torch.full((2, 4, 4), -math.inf, dtype=WIDE).triu(1)
    last = lrp.attention(slow[0], slow[1], slow[2], 2, 0.7, future if bias is None else bias[0])
    for actual_part, expected_part in zip(mine, propagate_slowly(last, relevance, *slow), strict=True):
        torch.testing.assert_close(actual_part[0].transpose(0, 1).reshape(4, 6), expected_part)
    absorbed_sum = relevance.sum() - sum(part.sum() for part in mine)
    assert float(absorbed.softmax()) == pytest.approx(float(absorbed_sum))
    assert abs(absorbed_sum) > 0.01


def test_the_rules_hold_for_passes_inside_alone() -> None:
    layer = nn.Sequential(nn.Tanh())
    x = torch.tensor([0.5], requires_grad=True)
    with lrp_rules(layer, LrpParts((), ("0",)), rows=1):
        (inside,) = torch.autograd.grad(layer(x).sum(), x)
    (outside,) = torch.autograd.grad(layer(x).sum(), x)
    assert float(inside) == pytest.approx(math.tanh(0.5) / 0.5)
    assert float(outside) == pytest.approx(1 - math.tanh(0.5) ** 2)
