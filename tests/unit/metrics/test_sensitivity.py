"""Sensitivity and complexity: closed forms on linear models, against one neighbor at a time, by hand, against scipy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import engine.metrics.sensitivity as module
from engine.errors import UsageError
from engine.explain import explain
from engine.metrics.catalog import SAMPLES
from engine.metrics.sensitivity import (
    FLAT,
    RADII,
    UNSTABLE,
    Sensitivity,
    classifier_of_neighbors,
    complexity,
    sensitivities,
)
from engine.metrics.sensitivity import move as moved
from engine.registry import all_explainers
from engine.request import Example, Picture, Request
from tests.explaining import cheap_params, checkpoint, classifier, task_for
from tests.linear import bag_of_embeddings
from tests.linear_patch import linear_patches, noise
from tests.oracles.plausibility import entropy_of_shares
from tests.unit.vision.tiny_vit import blobs, vit, vit_folder

pytestmark = pytest.mark.usefixtures("home")

TEXTS = ("good food", "although the plot drags, the ending is warm and funny")


def asked(method: str, text: str = TEXTS[1], labels: int = 2, **params: object) -> Request:
    return Request(str(checkpoint("bert", labels)), method, Example(text), params, dtype="float64")  # type: ignore[arg-type]


def test_neighbors_of_a_text_stay_within_the_radius_and_special_tokens_where_they_are() -> None:
    model = classifier("bert")
    encoded = model.encode(Example(TEXTS[1]))
    own = model.embed(model.collate([encoded]))[0].numpy()
    reader = classifier_of_neighbors(model)
    reach = 0.1 * own[encoded.features].std()
    near = [moved(model, encoded, number, 0.1) for number in range(3)]
    for one, row in zip(near, reader.embed(reader.collate(near)).numpy(), strict=True):
        change = row - own
        assert not change[encoded.special].any()
        assert np.abs(change).max() <= reach * (1 + 1e-6)
        assert np.abs(change[encoded.features]).mean() == pytest.approx(reach / 2, rel=0.1)
        assert one.key not in (encoded.key, *(other.key for other in near if other is not one))
    assert moved(model, encoded, 0, 0.1).key == near[0].key
    assert moved(model, encoded, 0, 0.1, seed=1).key != near[0].key


def test_a_padded_batch_of_neighbors_is_each_alone_and_the_shared_model_is_not_touched() -> None:
    model = classifier("bert", 3)
    reader = classifier_of_neighbors(model)
    near = [moved(model, model.encode(Example(text)), number, 0.5) for number, text in enumerate(TEXTS)]
    with torch.inference_mode():
        together = reader.logits(reader.collate([near[0], near[1], near[0]]))
        for one, row in zip([*near, near[0]], together, strict=True):
            alone = reader.logits(reader.collate([one]))[0]
            embeds = model.embed(model.collate([one])) + torch.from_numpy(one.moves).double()
            torch.testing.assert_close(row, alone, atol=1e-6, rtol=0)
            torch.testing.assert_close(alone, model.logits(model.collate([one]), embeds)[0], atol=1e-6, rtol=0)
    assert "predictions" not in reader.memo


def test_neighbors_of_a_picture_differ_by_a_few_levels_and_stay_colors() -> None:
    model = vit()
    pixels = np.concatenate([np.zeros((12, 32, 3)), np.full((12, 32, 3), 255)]).astype(np.uint8)
    encoded = model.encode(Picture(pixels))
    near = moved(model, encoded, 0, 0.02)
    of = model.preprocessing
    levels = (near.values.transpose(1, 2, 0) * np.array(of.std) + np.array(of.mean)) / of.scale
    change = levels.round().astype(int) - encoded.pixels
    assert 3 <= np.abs(change).max() <= 5, "0.02 of 255 levels"
    assert (change[:12] >= 0).all()
    assert (change[12:] <= 0).all()
    assert near.key != encoded.key


@pytest.fixture
def linear(monkeypatch: pytest.MonkeyPatch) -> Callable[..., float]:
    """The sensitivity of a method on a linear model, which is put in the place of a loaded one."""

    def measure(model: object, request: Request, method: str) -> float:
        task = task_for(model, [request.example])  # type: ignore[arg-type]
        made = explain(dataclasses.replace(request, method="random"))
        [item], known = task.items, module.explainer(method, task.model.kind)
        scores = known.function(task, known.params())[0].scores
        own = dataclasses.replace(
            made, tokens=item.encoded.tokens, scores=scores, prediction=item.prediction,
            provenance=dataclasses.replace(made.provenance, method=method, target=item.target),
            grid=item.encoded.grid,
        )  # fmt: skip
        monkeypatch.setattr(module, "explain_many", lambda requests: [own])
        monkeypatch.setattr(module, "load_classifier", lambda *given: model)
        [found] = sensitivities([dataclasses.replace(request, method=method)])
        assert found.kept == SAMPLES
        return float(found.value or 0)

    return measure


def test_on_a_linear_model_of_texts_it_has_a_closed_form(linear: Callable[..., float]) -> None:
    model, text = bag_of_embeddings(), Example("a quiet triumph and the acting never falters")
    request, encoded = Request(str(checkpoint("bert")), "gradient", text), model.encode(text)
    assert linear(model, request, "gradient_l2") == 0, "a gradient that is the same everywhere"
    w, features = model.module.head.weight[0].numpy(), encoded.features
    x = model.embed(model.collate([encoded]))[0].numpy()[features] @ w
    moves = [moved(model, encoded, number, RADII["text"]).moves[features] @ w for number in range(SAMPLES)]
    expected = max(np.linalg.norm(move) for move in moves) / np.linalg.norm(x)
    assert linear(model, request, "gradient_x_input") == pytest.approx(expected)


def test_on_a_linear_model_of_pictures_too(linear: Callable[..., float]) -> None:
    model, picture = linear_patches(), noise()
    request = Request(str(vit_folder()), "gradient", picture)
    assert linear(model, request, "gradient_l2") == pytest.approx(0, abs=1e-9)
    assert 0 < linear(model, request, "occlusion") < 1


@pytest.mark.parametrize("method", ["gradient_x_input", "attention_rollout", "occlusion"])
def test_it_is_that_of_one_neighbor_at_a_time(method: str) -> None:
    requests = [asked(method, text, 3) for text in TEXTS]
    model = classifier("bert", 3)
    reader = classifier_of_neighbors(model)
    for request, found in zip(requests, sensitivities(requests, radius=0.3, samples=4), strict=True):
        made, encoded, changes = explain(request), model.encode(request.example), []
        for number in range(4):
            near = moved(model, encoded, number, 0.3)
            task = task_for(reader, [], made.provenance.target)
            [prediction] = module.predict_encoded(reader, [near])
            if prediction.index == made.prediction.index:
                item = module.TaskItem(near, prediction, made.provenance.target, 0)
                known = module.explainer(method)
                [one] = known.function(dataclasses.replace(task, items=[item]), known.params())
                changes.append(np.linalg.norm((one.scores - made.scores)[made.features]))
        assert found.kept == len(changes)
        assert found.value == pytest.approx(max(changes) / np.linalg.norm(made.scores[made.features]), rel=1e-5)


def test_it_grows_with_the_radius_and_a_random_order_is_the_least_stable() -> None:
    small, large = (sensitivities([asked("gradient_x_input")], radius=r)[0].value or 0 for r in (0.01, 0.1))
    assert 0 < small < large
    by_chance = sensitivities([asked("random")])[0].value or 0
    assert by_chance > 0.3 > small


@pytest.mark.parametrize("method", sorted(all_explainers("text")))
def test_every_method_for_texts_has_one(method: str) -> None:
    [found] = sensitivities([asked(method, TEXTS[0], **cheap_params(method, str(checkpoint("bert"))))], samples=2)
    assert found.reason == FLAT if found.value is None else found.value >= 0
    assert found.kept == 2 or found.value is None


@pytest.mark.parametrize("method", ["gradient_x_input", "grad_cam", "lime", "random"])
def test_pictures_have_one_too(method: str) -> None:
    [found] = sensitivities([Request(str(vit_folder()), method, blobs(), dtype="float64")], samples=2)
    assert found.kept == 2
    assert found.value is not None
    assert found.value > 0


def test_it_is_kept_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = sensitivities([asked("gradient_l2")], samples=3)
    monkeypatch.setattr(module, "load_classifier", lambda *given: pytest.fail("nothing is left to run"))
    assert sensitivities([asked("gradient_l2"), asked("gradient_l2")], samples=3) == first * 2


def test_what_has_none_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    [flat] = sensitivities([asked("gradient")], samples=2)
    assert flat == Sensitivity(None, 0, 0, FLAT), "BERT's gradient sum is zero by construction"
    made = explain(asked("gradient_l2"))
    flipped = tuple(reversed(made.prediction.logits))
    other = lambda model, near: [dataclasses.replace(made.prediction, logits=flipped)] * len(near)  # noqa: E731
    monkeypatch.setattr(module, "predict_encoded", other)
    [unstable] = sensitivities([asked("gradient_l2")], samples=2)
    assert unstable == Sensitivity(None, 0, 2, UNSTABLE)


def test_wrong_numbers_are_named() -> None:
    with pytest.raises(UsageError, match="radius: must be a number above 0, got 0"):
        sensitivities([asked("gradient")], radius=0)
    with pytest.raises(UsageError, match="samples: must be a whole number of at least 1, got 0"):
        sensitivities([asked("gradient")], samples=0)


SCORES = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=1, max_size=20).filter(
    lambda values: any(abs(value) > 1e-6 for value in values)
)


def test_by_hand() -> None:
    assert complexity(np.array([0.0, -3.0, 0.0])) == 0
    assert complexity(np.array([1.0, -1.0, 1.0, -1.0])) == pytest.approx(np.log(4))
    assert complexity(np.array([3.0, -1.0])) == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert complexity(np.zeros(3)) is None


@given(SCORES)
def test_it_is_the_entropy_of_the_shares_whatever_their_sign_and_scale(values: list[float]) -> None:
    scores = np.array(values)
    assert complexity(scores) == pytest.approx(entropy_of_shares(values), abs=1e-9)
    assert complexity(scores) == pytest.approx(float(stats.entropy(np.abs(scores))), abs=1e-9)
    assert complexity(-7 * scores) == pytest.approx(complexity(scores), abs=1e-9)
