"""The next token's distribution: against the untouched checkpoint, entropy from its definition, named tokens, keys."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from engine.errors import UsageError
from engine.explain import explain
from engine.format import hidden_token, visible_token
from engine.models.causal import CANDIDATES
from engine.next_token import has_chat_template, is_causal, next_tokens, next_tokens_key, spacing_notes
from engine.request import HeadScales, Prompt, Request
from engine.result import OTHERS
from tests.tiny import save_causal, save_checkpoint

PROMPT = Prompt("The film was good. It was")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_causal("llama", tmp_path_factory.mktemp("causal"))


@pytest.fixture(scope="module")
def shares(folder: Path) -> np.ndarray:
    """Probabilities of the next token by transformers alone, in double precision."""
    module: Any = transformers.AutoModelForCausalLM.from_pretrained(str(folder)).eval().double()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    with torch.no_grad():
        logits = module(input_ids=torch.tensor([tokenizer(PROMPT.text)["input_ids"]])).logits[0, -1].numpy()
    weights = np.exp(logits - logits.max())
    return np.array(weights / weights.sum())


def test_the_distribution_and_its_entropy_are_those_of_the_checkpoint(folder: Path, shares: np.ndarray) -> None:
    found = next_tokens(str(folder), PROMPT)
    falling = np.sort(shares)[::-1]
    assert found.vocabulary == len(shares)
    assert found.labels[-1] == OTHERS
    assert len(set(found.labels)) == CANDIDATES + 1
    np.testing.assert_allclose(found.probabilities[:-1], falling[:CANDIDATES], rtol=1e-4)
    assert found.probabilities[-1] == pytest.approx(falling[CANDIDATES:].sum(), rel=1e-4)
    assert found.entropy == pytest.approx(-sum(share * math.log2(share) for share in shares), rel=1e-5)
    assert (found.target.label, found.target.rank) == (found.labels[0], 1)


def test_named_tokens_have_their_probability_and_rank(folder: Path, shares: np.ndarray) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    rare, common = ("N", "el")
    found = next_tokens(str(folder), Prompt(PROMPT.text, target=rare, contrast=common))
    assert found.contrast is not None
    for named, text in ((found.target, rare), (found.contrast, common)):
        share = shares[tokenizer.convert_tokens_to_ids(text)]
        assert named.label == text
        assert named.probability == pytest.approx(share, rel=1e-4)
        assert named.rank == 1 + int((shares > share).sum())
    assert found.probabilities == next_tokens(str(folder), PROMPT).probabilities, (
        "naming tokens changes no distribution"
    )


def test_a_token_that_is_none_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"contrast: must be one token of .*which is \d+ tokens"):
        next_tokens(str(folder), Prompt(PROMPT.text, contrast=" unbelievably"))


def test_a_token_named_without_its_space_is_said_from_the_probabilities() -> None:
    start = Prompt("The keys near the cabinet")
    plain = next_tokens("tiny-llama", start)
    shares = dict(zip(plain.labels, plain.probabilities, strict=True))

    def notes(**tokens: Any) -> tuple[str, ...]:
        prompt = dataclasses.replace(start, **tokens)
        return spacing_notes("tiny-llama", prompt, explain(Request("tiny-llama", "random", prompt)).prediction)

    contrast = next_tokens("tiny-llama", dataclasses.replace(start, contrast="is")).contrast
    assert contrast is not None
    times = float(f"{shares[' is'] / contrast.probability:.2g}")
    said = f"'is' was read as the token without a space; ' is' is {times:,g} times as probable."
    [note] = notes(target="are", contrast="is")
    assert note.startswith(f"The contrast {said}"), "no token is 'are' alone, so the target is ' are'"
    [note] = notes(target="is")
    assert note.startswith(f"The target {said}")
    assert notes(target="are") == notes(target=" are", contrast=" is") == notes() == ()


def test_scaled_heads_change_the_distribution_but_not_its_tokens(folder: Path) -> None:
    heads = HeadScales.off([(0, 1), (1, 2)])
    plain, scaled = next_tokens(str(folder), PROMPT), next_tokens(str(folder), PROMPT, heads)
    assert scaled.entropy != plain.entropy
    assert sorted(scaled.labels) == sorted(plain.labels)
    assert list(scaled.probabilities[:-1]) == sorted(scaled.probabilities[:-1], reverse=True)
    assert next_tokens(str(folder), PROMPT) == plain, "the model is unchanged afterwards"


def test_tokens_template_and_heads_are_in_the_key(folder: Path) -> None:
    prompts = [
        PROMPT,
        Prompt(PROMPT.text, target="N"),
        Prompt(PROMPT.text, contrast="N"),
        Prompt(PROMPT.text, chat=True),
    ]
    keys = {next_tokens_key(str(folder), prompt) for prompt in prompts}
    keys.add(next_tokens_key(str(folder), PROMPT, HeadScales.off([(0, 0)])))
    assert len(keys) == len(prompts) + 1


def test_which_models_continue_prompts(folder: Path, tmp_path: Path) -> None:
    gpt2, bert = save_causal("gpt2-lm", tmp_path / "gpt2"), save_checkpoint("bert", tmp_path / "bert")
    assert [is_causal(str(one)) for one in (folder, gpt2)] == [True, True]
    assert [has_chat_template(str(one)) for one in (folder, gpt2)] == [True, False]
    for other in (str(bert), "reviews-minilm", "owner/name", "", str(tmp_path), "no such model"):
        assert not is_causal(other)
        assert not has_chat_template(other)


@pytest.mark.parametrize("token", [" are", "are", "  ", "\n\n", ".\r\n", "\tx", OTHERS])
def test_white_space_of_a_token_is_seen_and_read_back(token: str) -> None:
    shown = visible_token(token)
    assert shown == shown.strip() != ""
    assert hidden_token(shown) == token
