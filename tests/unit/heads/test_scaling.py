"""Heads scaled through the attention mechanism: as another output projection; predictions and caches do not mix."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import UsageError
from engine.explain import explain, explain_many, key_of
from engine.heads.scaling import layers_and_heads, scaled_model
from engine.metrics.ablation import ablated_predictions
from engine.metrics.faithfulness import removal_curves
from engine.models.attention import capture_attention, scale_heads, use_attention
from engine.models.classifier import AnyClassifier
from engine.models.loading import load_model
from engine.predictions import cached_predictions, prediction_keys, predictions
from engine.request import Example, HeadScales, Request
from engine.result import pack, unpack
from engine.task import Captured, Task, TaskItem
from tests.explaining import CHEAP, METHODS, cheap_params, checkpoint, classifier, fingerprint, run_cheaply, task_for
from tests.oracles.heads import rescaled
from tests.tiny import FAMILIES
from tests.unit.vision.tiny_vit import ARCHITECTURES, blobs, vit, vit_folder

EXAMPLES = [Example("the film is a quiet triumph"), Example("good"), Example("the price", "bad service after days")]
SCALES = HeadScales(((0, 1, 0.0), (1, 3, 0.5), (2, 0, 2.0), (2, 2, 0.0)))
KINDS = (*FAMILIES, *ARCHITECTURES)


def model_of(kind: str) -> AnyClassifier:
    return vit(kind) if kind in ARCHITECTURES else classifier(kind, 3)


def batch_of(model: AnyClassifier) -> Any:
    """Three inputs; texts of different lengths, so that there is padding."""
    given = EXAMPLES if model.kind == "text" else [blobs(seed) for seed in range(3)]
    return model.collate([model.encode(one) for one in given])


def logits(model: AnyClassifier, batch: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.logits(batch)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scaled_head_is_one_whose_slice_of_the_output_projection_is_scaled(kind: str) -> None:
    model = model_of(kind)
    batch, before, state = batch_of(model), logits(model, batch_of(model)), fingerprint(model)
    with scaled_model(model, SCALES) as scaled:
        found = logits(scaled, batch)
    oracle = rescaled(model, "vit" if kind in ARCHITECTURES else kind, SCALES.scales)
    torch.testing.assert_close(found, logits(oracle, batch), atol=1e-10, rtol=1e-10)
    assert (found - before).abs().max() > 1e-3
    assert torch.equal(logits(model, batch), before)
    assert fingerprint(model) == state


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_of_one_everywhere_is_the_plain_result_bit_for_bit(kind: str) -> None:
    model = model_of(kind)
    batch = batch_of(model)
    plain = logits(model, batch)
    with scaled_model(model, HeadScales.from_mapping({(0, 0): 1, (2, 3): 1.0})) as same:
        assert torch.equal(logits(same, batch), plain)
    with torch.no_grad():
        captured, recorder = model.logits_with_attention(batch)
        with scale_heads(model.module, model.blocks, torch.ones(1, *layers_and_heads(model), dtype=model.dtype)):
            ones, again = model.logits_with_attention(batch)
    assert torch.equal(ones, captured)
    assert all(map(torch.equal, again.probabilities, recorder.probabilities))


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5", ARCHITECTURES[0]])
def test_rows_of_a_batch_may_have_scales_of_their_own(kind: str) -> None:
    model = model_of(kind)
    batch = batch_of(model)
    scales = torch.ones(3, *layers_and_heads(model), dtype=model.dtype)
    scales[1, 0, 2] = 0
    scales[2, 2, 1] = 1.5
    with scale_heads(model.module, model.blocks, scales):
        found = logits(model, batch)
    for row, changed in enumerate([(), ((0, 2, 0.0),), ((2, 1, 1.5),)]):
        expected = logits(rescaled(model, "vit" if kind in ARCHITECTURES else kind, changed), batch)[row]
        torch.testing.assert_close(found[row], expected, atol=1e-10, rtol=1e-10)


def test_everything_is_as_before_after_an_error_in_the_middle_of_a_pass() -> None:
    model = model_of("bert")
    batch, state = batch_of(model), fingerprint(model)
    plain = logits(model, batch)
    with scaled_model(model, SCALES) as scaled:
        right = logits(scaled, batch)
        hook = model.blocks[1].register_forward_hook(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            scaled.logits(batch)
        hook.remove()
        assert torch.equal(logits(scaled, batch), right)
    with pytest.raises(ZeroDivisionError), scaled_model(model, SCALES):
        raise ZeroDivisionError
    assert torch.equal(logits(model, batch), plain)
    assert fingerprint(model) == state


def test_threads_have_scales_of_their_own_and_leave_in_any_order() -> None:
    model = model_of("bert")
    batch, state, plain = batch_of(model), fingerprint(model), logits(model_of("bert"), batch_of(model))
    both, first_left = threading.Barrier(2, timeout=30), threading.Event()
    found: dict[str, torch.Tensor] = {}

    def first() -> None:
        with scaled_model(model, SCALES) as scaled:
            both.wait()
            found["scaled"] = logits(scaled, batch)
        first_left.set()

    def second() -> None:
        with capture_attention(model.module) as recorder:
            both.wait()
            assert first_left.wait(30)
            found["plain"] = logits(model, batch)
            found["layers"] = torch.tensor(len(recorder.probabilities))

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    with scaled_model(model, SCALES) as scaled:
        assert torch.equal(found["scaled"], logits(scaled, batch))
    torch.testing.assert_close(found["plain"], plain, atol=1e-12, rtol=1e-12)
    assert (int(found["layers"]), fingerprint(model)) == (3, state)


def test_the_own_attention_is_back_when_the_last_has_left() -> None:
    model = model_of("bert")
    config: Any = model.module.config
    outer, inner = use_attention(model.module, "eager"), use_attention(model.module, "sdpa")
    with outer:
        assert config._attn_implementation == "eager"
        with inner:
            assert config._attn_implementation == "sdpa"
        assert config._attn_implementation == "eager"
    assert config._attn_implementation == "sdpa"


def test_scales_further_in_replace_those_further_out() -> None:
    model = model_of("bert")
    batch = batch_of(model)
    with scaled_model(model, SCALES) as scaled:
        alone = logits(scaled, batch)
    with scaled_model(model, HeadScales.off([(0, 0)])) as outer, scaled_model(outer, SCALES) as inner:
        assert torch.equal(logits(inner, batch), alone)


def test_scales_that_mean_the_same_are_equal() -> None:
    one = HeadScales(((2, 1, 0.5), (0, 3, 1.0), (0, 1, 0)))
    other = HeadScales.from_mapping({(0, 1): -0.0, (2, 1): 0.5})
    assert one == other
    assert hash(one) == hash(other)
    assert one.as_plain() == [[0, 1, 0.0], [2, 1, 0.5]]
    assert str(other.scales[0][2]) == "0.0"
    assert not HeadScales.from_mapping({(0, 0): 1})
    assert HeadScales.off([(1, 1), (1, 1)]).grid(2, 2).tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("scales", "said"),
    [
        (((0, 0, 2.1),), r"heads: scale: must be a number from 0 \(off\) to 2, got 2\.1"),
        (((0, 0, -0.1),), r"from 0 \(off\) to 2, got -0\.1"),
        (((0, 0, float("nan")),), "got nan"),
        (((-1, 0, 0.5),), r"heads: layer: must be a whole number from 0, got -1"),
        (((0, -2, 0.5),), r"heads: head: must be a whole number from 0, got -2"),
        (((0, 0, 0.5), (0, 0, 0.7)), "a head is named twice"),
    ],
)
def test_what_is_no_scale_is_refused(scales: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        HeadScales(scales)


@pytest.mark.parametrize(("head", "said"), [((3, 0), "layers from 0 to 2"), ((0, 4), "heads from 0 to 3")])
def test_a_head_that_the_model_has_not_is_refused(head: tuple[int, int], said: str) -> None:
    with pytest.raises(UsageError, match=said), scaled_model(model_of("bert"), HeadScales.off([head])):
        pass


pytestmark = pytest.mark.usefixtures("home")

NOTE = "The model ran with heads scaled (counted from 0): layer 0 head 1 x 0, layer 1 head 3 x 0.5, layer 2 head 0 x 2."
TEXT = Example("the ending is warm and funny")
UNMOVED = ("random", "gradient", "attention_head")
"""What no head behind the first layer can change: chance, zeros (of BERT), and attention in the first layer."""
MIXED_SCALES = HeadScales(((0, 1, 0.0), (1, 3, 0.5), (2, 0, 2.0)))


def request(method: str = "gradient", heads: HeadScales = MIXED_SCALES, **more: object) -> Request:
    folder = str(checkpoint("bert", 3))
    return Request(folder, method, TEXT, cheap_params(method, folder), dtype="float64", heads=heads, **more)  # type: ignore[arg-type]


def knowing(task: Task) -> Task:
    """A task on a model with other weights, whose means over heads take each by the scale that went into them."""
    scales = torch.from_numpy(MIXED_SCALES.grid(*layers_and_heads(task.model)))

    class Knowing(Task):
        def attention(self, item: TaskItem) -> Captured:
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
    assert prediction_keys(folder, [TEXT]) == prediction_keys(
        folder, [TEXT], heads=HeadScales.from_mapping({(0, 0): 1})
    )
    assert prediction_keys(folder, [TEXT]) != prediction_keys(folder, [TEXT], heads=MIXED_SCALES)
    [plain], [scaled] = predictions(folder, [TEXT]), predictions(folder, [TEXT], heads=MIXED_SCALES)
    oracle = rescaled(load_model(folder), "bert", MIXED_SCALES.scales)
    encoded = [oracle.encode(TEXT)]
    expected = oracle.predictions(oracle.logits(oracle.collate(encoded)), encoded)[0]
    np.testing.assert_allclose(scaled.logits, expected.logits, atol=1e-5)
    assert np.abs(np.subtract(plain.logits, scaled.logits)).max() > 1e-3
    assert cached_predictions(folder, [TEXT], heads=MIXED_SCALES) == [scaled]
    assert predictions(folder, [TEXT]) == [plain]


@pytest.mark.parametrize("method", METHODS)
def test_any_method_explains_the_scaled_model(method: str) -> None:
    made, plain = explain_many([request(method), request(method, HeadScales())])
    oracle = rescaled(load_model(str(checkpoint("bert", 3)), "float64"), "bert", MIXED_SCALES.scales)
    [expected] = run_cheaply(method, knowing(task_for(oracle, [TEXT], made.provenance.target)))
    if not method.startswith(("ensemble", "least_complex")):  # members at defaults, the helper makes them cheaper
        np.testing.assert_allclose(made.scores, expected.scores, atol=1e-8)
    assert made.provenance.heads == MIXED_SCALES.scales
    assert made.notes.count(NOTE) == 1
    assert plain.provenance.heads == ()
    assert made.prediction != plain.prediction
    assert method in UNMOVED or not np.allclose(made.scores, plain.scores, atol=1e-9)


@pytest.mark.parametrize("method", ["attention_rollout", "occlusion", "attention_x_gradient", "integrated_gradients"])
def test_pictures_too(method: str) -> None:
    asked = Request(str(vit_folder()), method, blobs(), CHEAP.get(method, {}), dtype="float64", heads=MIXED_SCALES)
    made = explain(asked)
    oracle = rescaled(vit(), "vit", MIXED_SCALES.scales)
    [expected] = run_cheaply(method, knowing(task_for(oracle, [blobs()], made.provenance.target)))
    np.testing.assert_allclose(made.scores, expected.scores, atol=1e-8)
    assert not np.allclose(made.scores, explain(dataclasses.replace(asked, heads=HeadScales())).scores, atol=1e-9)


def test_what_is_kept_says_which_heads_were_scaled() -> None:
    made, plain = explain(request()), explain(request(heads=HeadScales()))
    for one in (made, plain):
        again = unpack(*pack(one))
        assert again.provenance == dataclasses.replace(one.provenance, params=again.provenance.params)
    assert explain(request()).cached
    assert "heads" not in pack(plain)[0]["provenance"]


def test_curves_and_predictions_without_tokens_are_of_the_scaled_model_too() -> None:
    [made, plain] = removal_curves([request(), request(heads=HeadScales())])
    target = explain(request()).provenance.target
    [whole] = predictions(request().model, [TEXT], "float64", heads=MIXED_SCALES)
    assert made.values[0] == pytest.approx(whole.probabilities[target], abs=1e-9)
    assert not np.allclose(made.values, plain.values, atol=1e-6)
    [scaled] = ablated_predictions(request(), [1, 2], ["mask"])
    [own] = ablated_predictions(request(heads=HeadScales()), [1, 2], ["mask"])
    assert scaled.whole.logits == pytest.approx(whole.logits)
    assert np.abs(np.subtract(scaled.left.logits, own.left.logits)).max() > 1e-3
