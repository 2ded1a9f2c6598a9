"""Evaluation on prompts: right means the answer has the larger logit, and overlap is with the exact reason."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from engine.cli.root import app
from engine.data.datasets import load
from engine.data.prompts import PROMPT_GRAMMARS
from engine.evaluation.experiment import evaluate
from engine.explain import explain
from engine.models.causal import CausalModel
from engine.models.loading import load_model
from engine.request import Prompt, Request

pytestmark = pytest.mark.usefixtures("home")
MODEL, METHODS = "tiny-llama", ("gradient_x_input", "occlusion")


@pytest.mark.parametrize("name", PROMPT_GRAMMARS)
def test_right_is_the_larger_logit_and_overlap_is_with_the_reason(name: str) -> None:
    result = evaluate([MODEL], name, METHODS, ["gt_overlap", "mean_rank"], examples=6)
    assert len(result.facts) == 6
    model, data = load_model(MODEL), load(name)
    assert isinstance(model, CausalModel)
    for facts in result.facts:
        example = data[facts.example]
        assert facts.label == example.answer
        assert facts.right is (
            next_logit(model, example.text, example.answer) > next_logit(model, example.text, example.foil)
        )
        assert facts.predicted == (example.answer if facts.right else example.foil)
    for method in METHODS:
        for row in result.rows:
            if (row.of.method, row.of.metric) == (method, "mean_rank"):
                assert row.value == worst_rank(name, method, row.example)


def next_logit(model: CausalModel, text: str, token: str | None) -> float:
    """The logit of the next token, from the untouched module."""
    ids = model.tokenizer(text)["input_ids"]
    [answer] = model.tokenizer(token, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        return float(model.module(torch.tensor([ids])).logits[0, -1, answer])


def worst_rank(name: str, method: str, index: int) -> float:
    """The rank, 1 for the largest score, of the last of the tokens that touch the reason; its mean is the mean rank."""
    example = load(name)[index]
    explanation = explain(Request(MODEL, method, example.example))
    tokens = [token for token in explanation.tokens if not token.special]
    scores = np.array(
        [score for score, token in zip(explanation.scores, explanation.tokens, strict=True) if not token.special]
    )
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores)] = np.arange(1, len(scores) + 1)
    inside = [any(token.start < end and start < token.end for start, end in example.rationale) for token in tokens]
    return float(ranks[inside].max())


def test_a_classifier_refuses_prompts_and_says_why() -> None:
    result = evaluate(["bert-reviews"], "agreement", ["occlusion"], ["mean_rank"], examples=3)
    assert not result.facts
    reasons = {skip.reason for skip in result.skips}
    assert len(reasons) == 1
    assert "bert-reviews is a classifier and predicts no next token. Choose a causal language model" in reasons.pop()


def test_a_language_model_explains_the_next_token_of_a_review_and_has_no_accuracy() -> None:
    result = evaluate([MODEL], "reviews", ["occlusion"], ["mean_rank"], examples=3)
    assert [facts.right for facts in result.facts] == [None, None, None]
    assert any("predicts the next token, not the data set's classes" in note for note in result.class_notes)


def test_the_command_explains_the_answer_of_a_prompt_of_the_data_set() -> None:
    done = CliRunner().invoke(
        app, ["explain", "--model", MODEL, "--method", "occlusion", "--dataset", "agreement", "--index", "0"]
    )
    example = load("agreement")[0]
    assert example.example == Prompt(example.text, target=example.answer, contrast=example.foil)
    assert done.exit_code == 0, done.output
    assert f"explained: the next token, compared with {example.foil!r}" in done.output
