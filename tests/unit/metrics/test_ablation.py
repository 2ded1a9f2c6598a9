"""The prediction without tokens: each operator against a construction by hand, all classes, the cache, refusals."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

import engine.metrics.ablation as ablation
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.explain import explain
from engine.metrics.ablation import ablated_predictions
from engine.progress import CancelToken
from engine.removal_operators import OPERATORS
from engine.request import Example, Request
from tests.counted import counted
from tests.explaining import checkpoint, classifier
from tests.oracles.without import probabilities_without

pytestmark = pytest.mark.usefixtures("home")

TEXT = "although the plot drags, the ending is warm and funny"
GONE = (2, 5, 9)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that were measured, in order."""
    return counted(monkeypatch, ablation, "removed", lambda *given: str(given[3]))


def asked(family: str = "bert", labels: int = 3, **other: Any) -> Request:
    return Request(str(checkpoint(family, labels)), "gradient_l2", Example(TEXT), **other)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_each_operator_is_that_of_the_plain_module_for_every_class(family: str) -> None:
    model = classifier(family, 3, "float32")
    ids = model.encode(Example(TEXT)).ids.tolist()
    for answer in ablated_predictions(asked(family), GONE):
        expected = probabilities_without(model.module, model.tokenizer, ids, GONE, answer.removal)
        np.testing.assert_allclose(answer.left.probabilities, expected, atol=1e-5)
        whole = probabilities_without(model.module, model.tokenizer, ids, (), answer.removal)
        np.testing.assert_allclose(answer.whole.probabilities, whole, atol=1e-5)
        assert answer.change == pytest.approx(expected[answer.target] - whole[answer.target], abs=1e-5)
        assert answer.flipped == (np.argmax(expected) != np.argmax(whole))


def test_the_explained_class_is_the_one_asked_for_and_all_share_one_measurement(measured: list[str]) -> None:
    answers = {label: ablated_predictions(asked(target=label), [3], ["mask"])[0] for label in (0, "LABEL_2", None)}
    assert measured == ["mask"]
    assert [answers[0].target, answers["LABEL_2"].target] == [0, 2]
    assert answers[None].target == answers[None].whole.index
    assert answers[0].left == answers["LABEL_2"].left
    assert answers[0].value == answers[0].left.probabilities[0]


def test_one_token_is_what_occlusion_says() -> None:
    made = explain(dataclasses.replace(asked(), method="occlusion", params={"removal": "mask"}))
    [answer] = ablated_predictions(asked(), [4], ["mask"])
    assert made.scores[4] == pytest.approx(-answer.change, abs=1e-6)


def test_what_is_known_is_not_measured_again(measured: list[str]) -> None:
    first = ablated_predictions(asked(), GONE, ["mask", "zero"])
    assert measured == ["mask", "zero"]
    assert not any(answer.cached for answer in first)
    again = ablated_predictions(asked(seed=5), (9, 2, 5, 2), OPERATORS)
    assert measured == ["mask", "zero", "pad", "delete", "hide", "mean"]
    assert [answer.removal for answer in again if answer.cached] == ["mask", "zero"]
    by_name = {answer.removal: answer for answer in again}
    assert [answer.left for answer in first] == [by_name["mask"].left, by_name["zero"].left]
    ablated_predictions(asked(), GONE[:2], ["mask"])
    assert measured[-1] == "mask", "other tokens are another question"


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_all_tokens_can_go_at_once(family: str) -> None:
    encoded = classifier(family, 3, "float32").encode(Example(TEXT))
    answers = ablated_predictions(asked(family), encoded.features.tolist())
    assert [answer.removal for answer in answers] == list(OPERATORS)
    assert all(sum(answer.left.probabilities) == pytest.approx(1) for answer in answers)


def test_a_regression_head_has_scores() -> None:
    [answer] = ablated_predictions(asked(labels=1), GONE, ["zero"])
    assert answer.left.regression
    assert answer.change == pytest.approx(answer.left.logits[0] - answer.whole.logits[0])
    assert not answer.flipped


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(UsageError, match=r"tokens: 0 is \[CLS\], a special token, which is never removed\."):
        ablated_predictions(asked(), [2, 0])
    with pytest.raises(UsageError, match=r"tokens: must be positions from 0 to \d+, got 99"):
        ablated_predictions(asked(), [99])
    with pytest.raises(UsageError, match=r"tokens: must be positions from 0 to \d+, got -1"):
        ablated_predictions(asked(), [-1])
    with pytest.raises(UsageError, match="tokens: must name at least one token"):
        ablated_predictions(asked(), [])
    with pytest.raises(UsageError, match=r"removal: unknown name 'burn'\. Known: delete, hide, mask"):
        ablated_predictions(asked(), [2], ["burn"])


def test_numbers_that_are_not_finite_are_refused_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked()
    explain(dataclasses.replace(request, method="random"))
    real = ablation.removed

    def broken(*arguments: Any) -> Any:
        batch, embeds = real(*arguments)
        return batch, embeds * torch.nan

    with monkeypatch.context() as patch:
        patch.setattr(ablation, "removed", broken)
        with pytest.raises(ExegesisError, match=r"removal mask: .* not a finite number"):
            ablated_predictions(request, [2], ["mask"])
    assert not ablated_predictions(request, [2], ["mask"])[0].cached


def test_a_cancelled_question_stops() -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        ablated_predictions(asked(), [2], cancel=token)
