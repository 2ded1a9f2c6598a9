"""Predictions of many examples: the same as alone and as an explanation's own, kept, found, stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import engine.predictions as module
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.explain import explain
from engine.predictions import cached_predictions, predictions
from engine.progress import CancelToken
from engine.request import Example, Request
from tests.counted import counted
from tests.explaining import checkpoint
from tests.tiny import CORPUS, save_checkpoint

pytestmark = pytest.mark.usefixtures("home")

EXAMPLES = [Example(text) for text in CORPUS]
PAIRS = [Example(text, "a hypothesis follows") for text in CORPUS]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many examples each call of the model's runner was given."""
    return counted(monkeypatch, module, "predict_encoded", lambda model, encoded: len(encoded))


@pytest.mark.parametrize("examples", [EXAMPLES, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize(("family", "labels"), [("bert", 2), ("roberta", 3), ("bert", 1)])
def test_predictions_are_those_of_transformers_alone(family: str, labels: int, examples: list[Example]) -> None:
    folder = str(checkpoint(family, labels))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for example, made in zip(examples, predictions(folder, examples), strict=True):
        types = family == "bert"
        inputs = tokenizer(example.text, example.text_pair, return_tensors="pt", return_token_type_ids=types)
        with torch.inference_mode():
            logits = model(**inputs).logits[0].double()
        np.testing.assert_allclose(made.logits, logits, atol=1e-5)
        shares = logits if labels == 1 else torch.softmax(logits, -1)
        np.testing.assert_allclose(made.probabilities, shares, atol=1e-5)
        assert made.regression == (labels == 1)


def test_they_agree_with_the_prediction_of_an_explanation() -> None:
    folder = str(save_checkpoint("bert", module.result_store().folder / "model", 3))
    together = predictions(folder, EXAMPLES)
    for example, made in zip(EXAMPLES, together, strict=True):
        own = explain(Request(folder, "random", example)).prediction
        assert own.labels == made.labels
        np.testing.assert_allclose(own.logits, made.logits, atol=1e-6)
        np.testing.assert_allclose(own.probabilities, made.probabilities, atol=1e-6)


def test_what_is_there_is_found_without_the_model_and_only_the_rest_is_made(passes: list[int]) -> None:
    model = str(checkpoint("bert"))
    assert cached_predictions(model, EXAMPLES) == [None] * len(EXAMPLES)
    assert passes == []
    first = predictions(model, EXAMPLES[1:3])
    found = cached_predictions(model, EXAMPLES)
    assert found == [None, *first, *[None] * (len(EXAMPLES) - 3)]
    passes.clear()
    again = predictions(model, [*EXAMPLES, EXAMPLES[1], EXAMPLES[0]])
    assert passes == [len(EXAMPLES) - 2]
    assert again[1:3] == first
    assert again[-2:] == [again[1], again[0]]
    assert cached_predictions(model, EXAMPLES) == again[:-2]
    assert predictions(model, []) == []


def test_texts_of_a_group_are_of_like_length_and_the_order_is_as_asked(
    passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXAMPLES_AT_ONCE", 2)
    model = str(checkpoint("bert"))
    seen: list[tuple[int, int]] = []
    made = predictions(model, EXAMPLES, report=lambda done, total, _: seen.append((done, total)))
    assert passes == [2, 2, 1]
    assert seen == [(0, 5), (2, 5), (4, 5)]
    for example, one in zip(EXAMPLES, made, strict=True):
        assert predictions(model, [example]) == [one]


def test_a_precision_and_other_weights_have_their_own(tmp_path: Path) -> None:
    model = str(checkpoint("bert"))
    [narrow], [wide] = predictions(model, EXAMPLES[:1]), predictions(model, EXAMPLES[:1], "float64")
    assert narrow.logits != wide.logits
    np.testing.assert_allclose(narrow.logits, wide.logits, atol=1e-4)
    other = str(save_checkpoint("bert", tmp_path / "other", seed=1))
    assert cached_predictions(other, EXAMPLES[:1]) == [None]


def test_a_cancelled_run_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXAMPLES_AT_ONCE", 2)
    model, token = str(checkpoint("bert")), CancelToken()

    def stop(done: int, total: int, label: str) -> None:
        if done == 2:
            token.cancel()

    with pytest.raises(Cancelled):
        predictions(model, EXAMPLES, report=stop, cancel=token)
    assert [one is not None for one in cached_predictions(model, EXAMPLES)].count(True) in (2, 4)
    assert None not in predictions(model, EXAMPLES)


def test_wrong_arguments_and_a_broken_model_are_named(tmp_path: Path) -> None:
    model = str(checkpoint("bert"))
    with pytest.raises(UsageError, match=r"dtype: unknown name 'half'\. Known: bfloat16"):
        predictions(model, EXAMPLES, "half")
    with pytest.raises(UsageError, match=r"model: unknown name 'nothing'"):
        cached_predictions("nothing", EXAMPLES)
    with pytest.raises(UsageError, match=r"text: must have at most 1,000,000 characters"):
        predictions(model, [Example("a" * 1_000_001)])
    with pytest.raises(ExegesisError, match="not finite numbers in float32"):
        predictions(_broken(tmp_path), EXAMPLES)


def _broken(folder: Path) -> str:
    place = str(save_checkpoint("bert", folder / "broken"))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(place)
    with torch.no_grad():
        model.classifier.bias.fill_(float("nan"))
    model.save_pretrained(place)
    return place
