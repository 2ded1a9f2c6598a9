"""Causal language models: the mask-safe gate for every family, and the classes of a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from engine.models.causal import CausalModel
from engine.models.loading import load_model
from engine.request import Prompt
from tests.tiny import CAUSAL_FAMILIES, save_causal

PROMPTS = [
    Prompt("the film is a quiet triumph"),
    Prompt("good"),
    Prompt("although the plot drags, the ending is warm and funny and never falters"),
    Prompt("the price is not worth it"),
]


@pytest.fixture(scope="module", params=CAUSAL_FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_causal(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def model(family: Path) -> CausalModel:
    loaded = load_model(str(family))
    assert isinstance(loaded, CausalModel)
    return loaded


@pytest.fixture(scope="module")
def plain(family: Path) -> torch.Tensor:
    """Logits of the next token: the untouched checkpoint, one prompt at a time, eager attention."""
    module: Any = transformers.AutoModelForCausalLM.from_pretrained(str(family), attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(family))
    with torch.no_grad():
        return torch.stack(
            [module(input_ids=torch.tensor([tokenizer(p.text)["input_ids"]])).logits[0, -1] for p in PROMPTS]
        )


def test_next_logits_of_a_padded_batch(model: CausalModel, plain: torch.Tensor) -> None:
    batch = model.collate([model.encode(prompt) for prompt in PROMPTS])
    assert not batch.whole
    with torch.no_grad():
        torch.testing.assert_close(model.next_logits(batch), plain, atol=1e-5, rtol=1e-5)
        captured, recorder = model.logits_with_attention(batch)
    torch.testing.assert_close(captured, model.logits(batch), atol=1e-5, rtol=1e-5)
    assert len(recorder.probabilities) == len(model.blocks) == 3
    for attention in recorder.probabilities:
        assert attention.shape[:2] == (len(PROMPTS), 4)
        torch.testing.assert_close(attention.sum(-1), torch.ones(attention.shape[:3]))
        assert attention.triu(1).abs().max() == 0, "nobody attends to the future"
