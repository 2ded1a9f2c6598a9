"""Pre-training of a language model on prompts: answers count more, are single tokens, and are measured."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional

from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.models.causal import CausalModel
from engine.models.loading import load_model
from engine.predictions import predictions
from engine.progress import CancelToken
from engine.training.loop import LOSS
from engine.training.pretraining import IGNORED, Pretraining, measure_prompts, pretrain, token_weights
from engine.training.text_data import TokenizedTexts
from tests.unit.training.conftest import Configured

PROMPTS = "agreement:count=200+reviews-generated:count=60"
QUICK = {"dataset": PROMPTS, "vocabulary": 800, "max_length": 64, "answer_weight": 8.0}


def recipe(configured: Configured, **changes: object) -> Pretraining:
    return Pretraining(configured("llama", **{**QUICK, **changes}), lambda done, total, label: None, CancelToken())


def test_the_card_has_loss_and_accuracy_and_the_stored_model_answers_as_measured(configured: Configured) -> None:
    done = pretrain(configured("llama", epochs=3, **QUICK))
    assert done.history[-1].loss < done.history[0].loss - 0.05
    assert {name: score.metric for name, score in done.scores.items()} == {"held-out": LOSS, "agreement": "accuracy"}
    assert {tensor.dtype for tensor in load_file(done.out / "model.safetensors").values()} == {torch.float16}
    page = (done.out / "card.md").read_text(encoding="utf-8")
    assert "It predicts the next token." in page
    assert "| measured on | accuracy | examples |" in page
    assert f"| agreement | {done.scores['agreement'].value:.4f} | 2,000 |" in page
    model = load_model(str(done.out))
    assert isinstance(model, CausalModel)
    rows = load("agreement:count=40", split="test").examples[:40]
    right = [answer.index == 0 for answer in predictions(str(done.out), [row.example for row in rows])]
    measured = measure_prompts(model.module, model.tokenizer, rows, 64)
    assert (measured.value, measured.count) == (sum(right) / 40, 40)
    assert 0 < sum(right) < 40, "a test of nothing where it knows all or nothing"


def test_the_first_word_of_a_text_is_the_same_token_as_anywhere_else(configured: Configured) -> None:
    tokenizer = recipe(configured).tokenizer
    first, again = (tokenizer(text)["input_ids"] for text in ("The plot", "plot. The plot"))
    assert first[0] == again[0] == tokenizer.bos_token_id
    assert again[-2:] == first[-2:]
    offsets = tokenizer("The plot", return_offsets_mapping=True)["offset_mapping"]
    assert ["The plot"[a:b].strip() for a, b in offsets] == ["", "The", "plot"]


def test_the_weight_is_that_of_the_answer(configured: Configured) -> None:
    built = recipe(configured)
    loop = built.new_loop()
    indices = [next(i for i, label in enumerate(loop.data.labels) if bool(label) is wanted) for wanted in (True, False)]
    rows = [built.train.inputs[i]["input_ids"] for i in indices]
    answer = built.tokenizer.decode(rows[0][-2:-1])
    assert answer.strip() in ("is", "are", "was", "were", "has", "have")
    loop.module.eval()
    total = weight = 0.0
    for number, row in enumerate(rows):
        with torch.no_grad():
            losses = functional.cross_entropy(loop.module(torch.tensor([row])).logits[0, :-1], torch.tensor(row[1:]),
                                              reduction="none")  # fmt: skip
        own = [8.0 if number == 0 and at == len(row) - 3 else 1.0 for at in range(len(row) - 1)]
        total, weight = total + float(losses @ torch.tensor(own)), weight + sum(own)
    assert loop._loss(indices).item() == pytest.approx(total / weight, rel=1e-5)


def test_weights_are_of_the_token_before_the_end() -> None:
    texts = TokenizedTexts([{"input_ids": [1, 5, 6, 2]}, {"input_ids": [1, 5, 6, 7, 8, 2]}], [1.0, 0.0], {})
    # Position 1 predicts token 6, which the end token follows.
    assert token_weights(texts, [0, 1], 8.0).tolist() == [[1, 8, 1, 1, 1, 1], [1] * 6]
    assert IGNORED < 0


def test_what_cannot_be_learned_is_refused(configured: Configured) -> None:
    with pytest.raises(UsageError, match="answer_weight: must be 1 for bert, which does not predict the next token"):
        Pretraining(configured("bert", answer_weight=2.0), lambda done, total, label: None, CancelToken())
    with pytest.raises(ExegesisError, match=r"vocabulary: 320 pieces are too few for the"):
        recipe(configured, vocabulary=320)
    built = recipe(configured)
    with pytest.raises(ExegesisError, match="max_length: 4 tokens are too few for the longest prompt, "):
        measure_prompts(built.new_loop().module, built.tokenizer, load("agreement:count=4").examples[:4], 4)
    long = LabeledExample("The keys", answer=" hippopotamuses", foil=" is")
    with pytest.raises(ExegesisError, match="are too few for the answer ' hippopotamuses' to be one token"):
        measure_prompts(built.new_loop().module, built.tokenizer, [long], 64)


def test_a_stopped_run_ends_with_the_same_bytes(configured: Configured) -> None:
    token = CancelToken()

    def report(done: int, total: int, label: str) -> None:
        if done == 9:
            token.cancel()

    with pytest.raises(Cancelled):
        pretrain(configured("llama", "cut", **QUICK), report, token)
    resumed, whole = (pretrain(configured("llama", name, **QUICK)) for name in ("cut", "whole"))
    assert resumed.card["sha256"] == whole.card["sha256"]
    assert json.loads((whole.out / "config.json").read_text(encoding="utf-8"))["num_key_value_heads"] == 2
