"""Predictions and explanations of a model whose heads are scaled: what the cache holds, and that neither mixes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from engine import records
from engine.explain import explain, explain_many, key_of
from engine.heads.running import size
from engine.heads.scales import HeadScales
from engine.metrics.curves import removal_curves
from engine.metrics.without import predictions_without
from engine.models.loading import load_model
from engine.predictions import cached_predictions, prediction_keys, predictions
from engine.request import Example, Request
from engine.task import Captured, Item, Task
from tests.explaining import CHEAP, METHODS, cheap_params, checkpoint, run_cheaply, task_for
from tests.oracles.heads import rescaled
from tests.unit.images.making import blobs, vit, vit_folder

pytestmark = pytest.mark.usefixtures("home")

NOTE = "The model ran with heads scaled (counted from 0): layer 0 head 1 x 0, layer 1 head 3 x 0.5, layer 2 head 0 x 2."
TEXT = Example("the ending is warm and funny")
UNMOVED = ("random", "gradient", "attention_head")
"""What no head behind the first layer can change: chance, zeros (of BERT), and attention in the first layer."""
SCALES = HeadScales(((0, 1, 0.0), (1, 3, 0.5), (2, 0, 2.0)))


def request(method: str = "gradient", heads: HeadScales = SCALES, **more: object) -> Request:
    folder = str(checkpoint("bert", 3))
    return Request(folder, method, TEXT, cheap_params(method, folder), dtype="float64", heads=heads, **more)  # type: ignore[arg-type]


def knowing(task: Task) -> Task:
    """A task on a model with other weights, whose means over heads take each by the scale that went into them."""
    scales = torch.from_numpy(SCALES.grid(*size(task.model)))

    class Knowing(Task):
        def attention(self, item: Item) -> Captured:
            return super().attention(item)._replace(scales=scales)

    return Knowing(task.model, task.items, task.explain_with)


def test_the_key_of_a_plain_request_is_what_it_was_before_there_were_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[dict[str, object]] = []

    def key_for(given: dict[str, object]) -> str:
        named.append(given)
        return "key"

    monkeypatch.setattr("engine.explain.key_for", key_for)
    key_of(request(heads=HeadScales()))
    key_of(request())
    assert "heads" not in named[0]
    assert named[1].pop("heads") == [[0, 1, 0.0], [1, 3, 0.5], [2, 0, 2.0]]
    assert named[0] == named[1]


def test_predictions_under_scales_have_keys_of_their_own() -> None:
    folder = str(checkpoint("bert", 3))
    assert prediction_keys(folder, [TEXT]) == prediction_keys(folder, [TEXT], heads=HeadScales.of({(0, 0): 1}))
    assert prediction_keys(folder, [TEXT]) != prediction_keys(folder, [TEXT], heads=SCALES)
    [plain], [scaled] = predictions(folder, [TEXT]), predictions(folder, [TEXT], heads=SCALES)
    oracle = rescaled(load_model(folder), "bert", SCALES.scales)
    expected = oracle.predictions(oracle.logits(oracle.collate([oracle.encode(TEXT)])))[0]
    np.testing.assert_allclose(scaled.logits, expected.logits, atol=1e-5)
    assert np.abs(np.subtract(plain.logits, scaled.logits)).max() > 1e-3
    assert cached_predictions(folder, [TEXT], heads=SCALES) == [scaled]
    assert predictions(folder, [TEXT]) == [plain]


@pytest.mark.parametrize("method", METHODS)
def test_any_method_explains_the_scaled_model(method: str) -> None:
    made, plain = explain_many([request(method), request(method, HeadScales())])
    oracle = rescaled(load_model(str(checkpoint("bert", 3)), "float64"), "bert", SCALES.scales)
    [expected] = run_cheaply(method, knowing(task_for(oracle, [TEXT], made.provenance.target)))
    if not method.startswith("ensemble"):  # its members run at their defaults, which the helper makes cheaper
        np.testing.assert_allclose(made.scores, expected.scores, atol=1e-8)
    assert made.provenance.heads == SCALES.scales
    assert made.notes.count(NOTE) == 1
    assert plain.provenance.heads == ()
    assert made.prediction != plain.prediction
    assert method in UNMOVED or not np.allclose(made.scores, plain.scores, atol=1e-9)


@pytest.mark.parametrize("method", ["attention_rollout", "occlusion", "attention_x_gradient", "integrated_gradients"])
def test_pictures_too(method: str) -> None:
    asked = Request(str(vit_folder()), method, blobs(), CHEAP.get(method, {}), dtype="float64", heads=SCALES)
    made = explain(asked)
    oracle = rescaled(vit(), "vit", SCALES.scales)
    [expected] = run_cheaply(method, knowing(task_for(oracle, [blobs()], made.provenance.target)))
    np.testing.assert_allclose(made.scores, expected.scores, atol=1e-8)
    assert not np.allclose(made.scores, explain(dataclasses.replace(asked, heads=HeadScales())).scores, atol=1e-9)


def test_what_is_kept_says_which_heads_were_scaled() -> None:
    made, plain = explain(request()), explain(request(heads=HeadScales()))
    for one in (made, plain):
        again = records.unpack(*records.pack(one))
        assert again.provenance == dataclasses.replace(one.provenance, params=again.provenance.params)
    assert explain(request()).cached
    assert "heads" not in records.pack(plain)[0]["provenance"]


def test_curves_and_predictions_without_tokens_are_of_the_scaled_model_too() -> None:
    [made, plain] = removal_curves([request(), request(heads=HeadScales())])
    target = explain(request()).provenance.target
    [whole] = predictions(request().model, [TEXT], "float64", heads=SCALES)
    assert made.values[0] == pytest.approx(whole.probabilities[target], abs=1e-9)
    assert not np.allclose(made.values, plain.values, atol=1e-6)
    [scaled] = predictions_without(request(), [1, 2], ["mask"])
    [own] = predictions_without(request(heads=HeadScales()), [1, 2], ["mask"])
    assert scaled.whole.logits == pytest.approx(whole.logits)
    assert np.abs(np.subtract(scaled.left.logits, own.left.logits)).max() > 1e-3
