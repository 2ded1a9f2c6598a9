"""AttnLRP: whole models against the rule-by-rule reference, conservation, the model as it was; rules beside lxt's.

lxt is by the paper's own authors. `make test` installs it with `pip install --no-deps lxt`: it asks for bitsandbytes,
torchvision and another build of torch, but its rules need none of them. Its models (2.1) do not import beside
transformers 5 (its BERT asks for a function that is gone), which is why whole families are held to our own reference
alone.
"""

from __future__ import annotations

import functools
import gc
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from lxt.explicit import functional
from lxt.explicit.rules import identity
from torch import Tensor, nn
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertSelfAttention
from transformers.models.t5.modeling_t5 import T5LayerNorm

from engine.explainers.lrp import conservation_limit
from engine.models.loading import T5EncoderForSequenceClassification, classifier_class, load_image_model, load_model
from engine.models.lrp import lrp_rules
from engine.models.text_adapter import LrpParts
from engine.task import Attribution
from tests.explaining import checkpoint, classifier, fingerprint, run, task_for
from tests.oracles.lrp_models import picture_relevance, relevance
from tests.tiny import FAMILIES
from tests.unit.vision.tiny_vit import ARCHITECTURES, blobs, vit_folder

TEXTS = ["the ending is warm", "the ending is warm and the plot never drags"]
KINDS = (*FAMILIES, "t5-gated")


@pytest.mark.parametrize("family", KINDS)
def test_every_family_rule_by_rule(family: str) -> None:
    folder, module = _biased(family)
    model = load_model(str(folder), "float64")
    task = task_for(model, TEXTS, target=1)
    for item, made in zip(task.items, run("attn_lrp", task), strict=True):
        expected = relevance(family.partition("-g")[0], module, item.encoded.ids.tolist(), 1)
        assert np.abs(expected).max() > 1e-3
        # T5 takes its norms in single precision whatever the precision of the model.
        close = 1e-5 if family.startswith("t5") else 1e-9
        np.testing.assert_allclose(made.scores, expected, atol=close * np.abs(expected).max(), rtol=close)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_pictures_rule_by_rule(name: str) -> None:
    folder, module = _biased(name)
    model = load_image_model(str(folder), "float64")
    task = task_for(model, [blobs(0), blobs(1)], target=1)
    embedded = model.embed(task.batch())
    for row, made in zip(embedded, run("attn_lrp", task), strict=True):
        expected = picture_relevance(module, row, 1)
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(made.scores, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("family", [*KINDS, *ARCHITECTURES])
def test_what_tokens_and_the_rest_keep_makes_the_logit(family: str) -> None:
    for item, made in _explained(family):
        parts = made.extras["relevance"]
        assert parts["logit"] == pytest.approx(item.prediction.logits[1], abs=1e-6)
        assert parts["tokens"] == pytest.approx(made.scores.sum(), abs=1e-12)
        rest = parts["biases"] + parts["positions"] + parts["softmax"]
        assert parts["tokens"] + rest == pytest.approx(parts["logit"], abs=1e-6)
        assert all(abs(parts[name]) > 1e-6 for name in ("biases", "softmax"))
        assert (abs(parts["positions"]) > 1e-6) != family.startswith("t5")
        assert made.check is not None
        assert made.check.value < 1e-7
        assert made.check.ok


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_limit_of_the_check_follows_the_precision(dtype: str) -> None:
    (made,) = run("attn_lrp", task_for(classifier("bert", dtype=dtype), TEXTS[:1]))
    assert made.check is not None
    assert made.check.limit == conservation_limit(getattr(torch, dtype))
    assert made.check.ok


@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_is_as_it_was(family: str) -> None:
    model = classifier(family, 3)
    task, before = task_for(model, TEXTS), fingerprint(model)
    plain = run("gradient_x_input", task)
    logits = model.logits(task.batch())
    run("attn_lrp", task)
    assert fingerprint(model) == before
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.module.modules())
    assert torch.equal(model.logits(task.batch()), logits)
    for one, other in zip(plain, run("gradient_x_input", task), strict=True):
        assert one.scores.tobytes() == other.scores.tobytes(), "gradients are the model's own again"


def test_the_model_is_as_it_was_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bert", 3)
    task, before = task_for(model, TEXTS), fingerprint(model)
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "logits", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("attn_lrp", task)
    assert fingerprint(model) == before
    assert not any(part._forward_hooks for part in model.module.modules())


def test_a_pass_is_freed_when_it_is_over() -> None:
    """Hooks that hold on to their own tensors would keep it until Python looks for cycles."""
    task = task_for(classifier("bert", 3), TEXTS)
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        run("attn_lrp", task)
        gc.collect()
        assert not any(isinstance(left, torch.Tensor) for left in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def _explained(family: str) -> list[tuple[Any, Attribution]]:
    folder, _ = _biased(family)
    picture = family in ARCHITECTURES
    model = load_image_model(str(folder), "float64") if picture else load_model(str(folder), "float64")
    task = task_for(model, [blobs(0), blobs(1)] if picture else TEXTS, target=1)
    return list(zip(task.items, run("attn_lrp", task), strict=True))


@functools.cache
def _biased(family: str) -> tuple[Path, Any]:
    """A tiny checkpoint whose biases and norms are not those of a new model; its folder, and the module itself."""
    folder = Path(tempfile.mkdtemp(prefix=f"biased-{family}-"))
    picture = family in ARCHITECTURES
    source = vit_folder(family) if picture else checkpoint(family.partition("-g")[0], 3)
    shutil.copytree(source, folder, dirs_exist_ok=True)
    torch.manual_seed(1)
    module = _module(family, source)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    module.save_pretrained(str(folder))
    return folder, module.double().eval().requires_grad_(False)


def _module(family: str, source: Path) -> Any:
    if family == "t5-gated":
        config = transformers.T5Config.from_pretrained(str(source), feed_forward_proj="gated-gelu", num_labels=3)
        module = T5EncoderForSequenceClassification(config)
        for parameter in module.parameters():
            parameter.data.normal_(1.0 if parameter.dim() == 1 else 0.0, 0.25)
        return module
    kind = getattr(transformers, family, None) or classifier_class(classifier(family, 3).adapter)
    return kind.from_pretrained(str(source))


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
