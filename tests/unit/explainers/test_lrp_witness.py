"""AttnLRP's rules beside those of lxt, by the paper's own authors.

`make test` installs it with `pip install --no-deps lxt`: it asks for bitsandbytes, torchvision and another build of
torch, but its rules need none of them. Its models do not import beside transformers 5, which is why whole families are
held to our own reference alone (test_lrp.py).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from lxt.explicit import functional
from lxt.explicit.rules import identity
from torch import Tensor, nn
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertSelfAttention
from transformers.models.t5.modeling_t5 import T5LayerNorm

from engine.models.adapters import LrpParts
from engine.models.lrp import lrp_rules

Run = Callable[[Tensor], Tensor]
ROWS, POSITIONS, WIDTH, HEADS = 2, 5, 8, 2
EXACT = 0.0
"""Their epsilon."""


def test_a_linear_layer_with_a_bias() -> None:
    layer = nn.Linear(WIDTH, 6)
    _agree(layer, layer, lambda x: functional.linear_epsilon(x, layer.weight, layer.bias, EXACT))


def test_layer_norm() -> None:
    norm = nn.LayerNorm(WIDTH)
    theirs = lambda x: functional.layer_norm(x, norm.weight, norm.bias, norm.eps)  # noqa: E731
    _agree(nn.ModuleDict({"norm": norm}), norm, theirs)


def test_rms_norm() -> None:
    norm = T5LayerNorm(WIDTH)
    theirs = lambda x: functional.rms_norm_identity(x, norm.weight, norm.variance_epsilon)  # noqa: E731
    _agree(nn.ModuleDict({"norm": norm}), norm, theirs)


def test_gelu() -> None:
    gelu = nn.GELU()
    _agree(nn.ModuleDict({"activation": gelu}), gelu, lambda x: identity(gelu, x))


def test_attention_its_products_and_its_softmax() -> None:
    layer = BertSelfAttention(BertConfig(hidden_size=WIDTH, num_attention_heads=HEADS), layer_idx=0).eval()

    def theirs(x: Tensor) -> Tensor:
        three = [
            functional.linear_epsilon(x, of.weight, of.bias, EXACT) for of in (layer.query, layer.key, layer.value)
        ]
        query, key, value = (made.view(ROWS, POSITIONS, HEADS, -1).transpose(1, 2) for made in three)
        products = functional.matmul(query, key.transpose(-1, -2), False, EXACT)
        shares = functional.softmax(functional.mul2(products, (WIDTH // HEADS) ** -0.5), -1)
        return functional.matmul(shares, value, False, EXACT).transpose(1, 2).flatten(2)

    _agree(layer, lambda x: layer(x)[0], theirs)


def _agree(module: nn.Module, ours: Run, theirs: Run) -> None:
    """The same output; and of the same relevance there, each number of the input gets the same."""
    torch.manual_seed(0)
    for parameter in module.double().parameters():
        nn.init.normal_(parameter)
    x = torch.randn(ROWS, POSITIONS, WIDTH, dtype=torch.float64, requires_grad=True)
    with lrp_rules(module, LrpParts(norms=("norm",), activations=("activation",)), ROWS):
        output = ours(x)
        slope = torch.randn_like(output)
        (found,) = torch.autograd.grad(output, x, slope)
    beside = theirs(x)
    (expected,) = torch.autograd.grad(beside, x, slope * output.detach())
    torch.testing.assert_close(output, beside, atol=1e-6, rtol=1e-6)
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(x.detach() * found, expected, atol=1e-4, rtol=1e-4)  # their norms add 1e-6
