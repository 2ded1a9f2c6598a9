"""The mask-safe gate: every family, on a padded batch, agrees with the plain model run one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from engine.models.loading import classifier_class, load_model
from engine.models.text_classifier import TextClassifier
from engine.request import Example
from tests.tiny import FAMILIES, MORE_FAMILIES, save_checkpoint

EXAMPLES = [
    Example("the film is a quiet triumph"),
    Example("good"),
    Example("although the plot drags, the ending is warm and funny and never falters"),
    Example("the price is not worth it", "bad service after two days"),
]


@pytest.fixture(scope="module", params=(*FAMILIES, *MORE_FAMILIES))
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(request.param, tmp_path_factory.mktemp(request.param), labels=3)


@pytest.fixture(scope="module")
def model(family: Path) -> TextClassifier:
    return load_model(str(family))


@pytest.fixture(scope="module")
def plain(family: Path, model: TextClassifier) -> torch.Tensor:
    """Logits of the untouched checkpoint, its own tokenizer, one example at a time, eager attention."""
    module = classifier_class(model.adapter).from_pretrained(str(family), attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(family))
    rows = []
    with torch.no_grad():
        for example in EXAMPLES:
            pair = () if example.text_pair is None else (example.text_pair,)
            inputs = tokenizer(
                example.text, *pair, return_tensors="pt", return_token_type_ids=model.adapter.token_types
            )
            rows.append(module(**inputs).logits[0])
    return torch.stack(rows)


def test_logits_from_ids(model: TextClassifier, plain: torch.Tensor) -> None:
    batch = model.collate([model.encode(e) for e in EXAMPLES])
    assert not batch.whole
    with torch.no_grad():
        torch.testing.assert_close(model.logits(batch), plain, atol=1e-5, rtol=1e-5)


def test_logits_from_embeddings_with_gradients(model: TextClassifier, plain: torch.Tensor) -> None:
    batch = model.collate([model.encode(e) for e in EXAMPLES])
    embeds = model.embed(batch).clone().requires_grad_()
    logits = model.logits(batch, embeds)
    torch.testing.assert_close(logits, plain, atol=1e-5, rtol=1e-5)
    (gradient,) = torch.autograd.grad(logits.sum(), embeds)
    assert gradient[~batch.visible].abs().max() == 0, "a padded position must not matter"
    assert gradient[batch.visible].abs().max() > 1e-4


def test_logits_and_rows_under_captured_attention(model: TextClassifier, plain: torch.Tensor) -> None:
    batch = model.collate([model.encode(e) for e in EXAMPLES])
    with torch.no_grad():
        logits, recorder = model.logits_with_attention(batch)
    torch.testing.assert_close(logits, plain, atol=1e-5, rtol=1e-5)
    assert len(recorder.probabilities) == len(model.blocks) == 3
    for attention in recorder.probabilities:
        assert attention.shape[:2] == (len(EXAMPLES), 4)
        torch.testing.assert_close(attention.sum(-1), torch.ones(attention.shape[:3]))
        hidden = attention.masked_fill(batch.visible[:, None, None, :], 0)
        if model.adapter.causal and getattr(model.module.config, "sliding_window", None):
            # Padding that has no text in its window attends to itself, which nobody reads.
            hidden = hidden * batch.visible[:, None, :, None]
        assert hidden.abs().max() == 0, "nobody attends to padding"
        if model.adapter.causal:
            assert attention.triu(1).abs().max() == 0, "nobody attends to the future"


def test_capture_alone_needs_no_padding(model: TextClassifier, plain: torch.Tensor) -> None:
    for example, expected in zip(EXAMPLES, plain, strict=True):
        batch = model.collate([model.encode(example)])
        assert batch.whole
        with torch.no_grad():
            logits, recorder = model.logits_with_attention(batch)
            torch.testing.assert_close(model.logits(batch)[0], expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(logits[0], expected, atol=1e-5, rtol=1e-5)
        if model.adapter.causal:
            assert all(a.triu(1).abs().max() == 0 for a in recorder.probabilities)


def test_second_derivatives_under_capture(model: TextClassifier) -> None:
    batch = model.collate([model.encode(EXAMPLES[0])])
    embeds = model.embed(batch).clone().requires_grad_()
    logits, _ = model.logits_with_attention(batch, embeds)
    (gradient,) = torch.autograd.grad(logits[0, 0], embeds, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), embeds)
    assert torch.isfinite(second).all()
    assert second.abs().max() > 0


def test_the_own_attention_is_back_after_a_failure(model: TextClassifier) -> None:
    before = model.module.config._attn_implementation
    batch = model.collate([model.encode(EXAMPLES[0])])
    with pytest.raises(RuntimeError):
        model.logits_with_attention(batch, model.embed(batch)[..., :-1])
    assert model.module.config._attn_implementation == before == model.adapter.attention
