"""Heads of one example read in one pass, and each switched off: against the module itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import engine.heads.readings as readings
from engine.errors import Cancelled, ExegesisError
from engine.heads.readings import read_heads, switch_off_each
from engine.heads.scores import SCORES
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.progress import CancelToken
from engine.request import Example, HeadScales, Request
from tests.counted import counted
from tests.explaining import checkpoint, fingerprint
from tests.oracles.heads import rescaled, slopes
from tests.unit.vision.tiny_vit import blobs, vit_folder

pytestmark = pytest.mark.usefixtures("home")

TEXT = Example("the ending is warm and funny")
KINDS = ("bert", "gpt2", "t5", "vit")


def request(kind: str, **more: object) -> Request:
    folder = str(vit_folder() if kind == "vit" else checkpoint(kind, 3))
    example = blobs() if kind == "vit" else TEXT
    return Request(folder, "random", example, dtype="float64", **more)  # type: ignore[arg-type]


def model_of(asked: Request) -> AnyClassifier:
    return load_classifier(asked.example.kind, asked.model, asked.dtype)


def logits_of(model: AnyClassifier, asked: Request) -> np.ndarray:
    with torch.no_grad():
        return model.logits(model.collate([model.encode(asked.example)]))[0].numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_that_of_the_module_with_its_own_eager_attention(kind: str) -> None:
    asked = request(kind)
    model = model_of(asked)
    state = fingerprint(model)
    found = read_heads(asked)
    assert fingerprint(model) == state
    with torch.no_grad():
        _, recorder = model.logits_with_attention(model.collate([model.encode(asked.example)]))
    expected = torch.cat(recorder.probabilities).numpy()
    n = len(found.explanation.tokens)
    assert found.attention.shape == (3, 4, n, n)
    future = ~np.tri(n, dtype=bool) & (kind == "gpt2")
    assert np.isnan(found.attention[..., future]).all()
    np.testing.assert_allclose(found.attention[..., ~future], expected[..., ~future], rtol=6e-4, atol=1e-7)
    assert found.causal == (kind == "gpt2")
    first, last = np.eye(n)[0], np.eye(n)[-1]
    np.testing.assert_allclose(found.reads, {"gpt2": last, "t5": np.full(n, 1 / n)}.get(kind, first))
    assert set(found.scores) | {"off"} == set(SCORES)
    assert all(score.shape == (3, 4) for score in found.scores.values())
    again = read_heads(asked)
    assert again.cached
    np.testing.assert_array_equal(again.attention, found.attention)


@pytest.mark.parametrize("kind", KINDS)
def test_the_slope_is_that_of_the_output_projection(kind: str) -> None:
    asked = request(kind, target=1)
    found, model = read_heads(asked), model_of(asked)
    expected = slopes(model, kind, model.collate([model.encode(asked.example)]), 1)
    np.testing.assert_allclose(found.slope, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found.scores["importance"], np.abs(found.slope))


@pytest.mark.parametrize("kind", KINDS)
def test_switching_each_head_off_is_running_without_it(kind: str) -> None:
    asked = request(kind, heads=HeadScales(((0, 0, 0.5), (1, 1, 2.0))))
    model = model_of(asked)
    state, found = fingerprint(model), switch_off_each(asked)
    assert fingerprint(model) == state
    np.testing.assert_allclose(found.whole, softmax(logits_of(rescaled(model, kind, asked.heads.scales), asked)))
    for layer in range(3):
        for head in range(4):
            scales = {row[:2]: row[2] for row in asked.heads.scales} | {(layer, head): 0.0}
            alone = softmax(logits_of(rescaled(model, kind, [(*h, s) for h, s in scales.items()]), asked))
            np.testing.assert_allclose(found.off[layer, head], alone, atol=1e-9)
            fall = found.whole[found.target] - alone[found.target]
            assert found.fall[layer, head] == pytest.approx(fall, abs=1e-9)
            assert found.flipped[layer, head] == (alone.argmax() != found.whole.argmax())


def softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum()


def test_one_entry_serves_every_class(monkeypatch: pytest.MonkeyPatch) -> None:
    first = switch_off_each(request("bert", target=0))
    other = switch_off_each(request("bert", target=2))
    assert (first.cached, other.cached) == (False, True)
    np.testing.assert_allclose(other.fall, other.whole[2] - other.off[..., 2])


def test_little_memory_gives_the_same_in_more_passes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heard: list[tuple[int, int, str]] = []
    asked = request("bert")
    whole = switch_off_each(dataclasses.replace(asked, example=Example("good")), lambda *told: heard.append(told))
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("EXEGESIS_MEMORY_BYTES", "60000")
    some: list[tuple[int, int, str]] = []
    found = switch_off_each(dataclasses.replace(asked, example=Example("good")), lambda *told: some.append(told))
    np.testing.assert_allclose(found.off, whole.off, atol=1e-12)
    off = [told for told in some if told[1] == 13]
    assert len(off) > len([told for told in heard if told[1] == 13])
    assert off[0][0] == 0


def test_it_stops_between_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_MEMORY_BYTES", "60000")
    token, model = CancelToken(), model_of(request("bert"))
    state = fingerprint(model)

    def stop(done: int, total: int, label: str) -> None:
        if done > 0:
            token.cancel()

    with pytest.raises(Cancelled):
        switch_off_each(request("bert"), stop, token)
    assert fingerprint(model) == state
    assert not switch_off_each(request("bert")).cached


def test_scores_of_one_token_and_of_a_model_without_special_tokens() -> None:
    found = read_heads(dataclasses.replace(request("gpt2"), example=Example("a")))
    assert found.attention.shape[-2:] == (1, 1)
    assert (found.attention == 1).all()
    assert (found.scores["entropy"] == 0).all()
    assert (found.scores["distance"] == 0).all()
    assert np.isnan(found.scores["special"]).all()


def test_a_model_that_yields_no_attention_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request("bert")
    scaled = counted(monkeypatch, readings, "_run_pass", lambda *given: given[0])
    read_heads(asked)
    model = scaled[0]
    real = type(model).logits_with_attention

    def none(self: AnyClassifier, *given: object) -> tuple[torch.Tensor, object]:
        logits, recorder = real(self, *given)
        recorder.probabilities.clear()
        return logits, recorder

    monkeypatch.setattr(type(model), "logits_with_attention", none)
    with pytest.raises(ExegesisError, match="0 of its 3 layers yield attention, so its heads cannot be shown"):
        read_heads(dataclasses.replace(asked, target=1, heads=HeadScales.off([(0, 0)])))


def test_the_weighted_layers_are_those_of_attention_times_its_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = request("bert", target=1)
    found, model = read_heads(asked), model_of(asked)
    batch = model.collate([model.encode(asked.example)])
    logits, recorder = model.logits_with_attention(batch, model.embed(batch).detach().requires_grad_())
    for layer, probabilities in enumerate(recorder.probabilities):
        (slope,) = torch.autograd.grad(logits[0, 1], probabilities, retain_graph=True)
        expected = np.zeros(probabilities.shape[-2:])
        for head in range(4):
            expected += np.maximum((probabilities[0, head] * slope[0, head]).detach().numpy(), 0) / 4
        np.testing.assert_allclose(found.weighted[layer], expected, rtol=1e-5, atol=1e-8)
