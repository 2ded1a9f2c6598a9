"""Other methods' maps of an attacked input, against the same method run on the moved embeddings or pixels."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from engine.attacks.attack import attack, measure_transfer, moved_model
from engine.attacks.result import AttackResult
from engine.registry import all_explainers
from engine.request import Prompt
from engine.task import Task
from tests.explaining import cheap_params, classifier, run, task_for
from tests.unit.attacks.making import TEXTS, asked
from tests.unit.vision.tiny_vit import blobs, vit

SLOW = ("exact_shapley", "ensemble_all", "ensemble_top3")
STILL = ("random", "gradient", "least_sensitive")
"""Chance does not look at the input; on texts the plain sum is zero by construction; the least sensitive aggregate
explains fixed neighbors of the text."""


@pytest.fixture(scope="module")
def text() -> AttackResult:
    return attack(asked(steps=4))


@pytest.fixture(scope="module")
def picture() -> AttackResult:
    return attack(asked(blobs(), "gradient_x_input", place="pixels", steps=4))


@pytest.mark.parametrize("method", [name for name in all_explainers("text") if name not in SLOW])
def test_every_method_sees_the_moved_text(method: str, text: AttackResult) -> None:
    found = measure_transfer(asked(steps=4), text, method, cheap_params(method, asked().model))
    assert np.isfinite(found.after).all()
    same = np.array_equal(found.before, found.after)
    assert same == (method in STILL)


@pytest.mark.parametrize("method", [name for name in all_explainers("image") if name not in SLOW])
def test_every_method_sees_the_moved_picture(method: str, picture: AttackResult) -> None:
    request = asked(blobs(), "gradient_x_input", place="pixels", steps=4)
    found = measure_transfer(request, picture, method, cheap_params(method, request.model))
    assert np.isfinite(found.after).all()
    same = np.array_equal(found.before, found.after)
    assert same == (method == "random")


@pytest.mark.parametrize("quantity", ["logit", "probability", "mixed"])
def test_the_attacked_method_finds_what_the_attack_found(quantity: str) -> None:
    """The map that is attacked is the explainer's own, of the attack's quantity."""
    request = asked(steps=4, quantity=quantity)
    text = attack(request)
    own = {"quantity": "probability" if quantity == "probability" else "logit"}
    assert text.provenance.params == own
    found = measure_transfer(request, text, "gradient_x_input", own)
    np.testing.assert_allclose(found.before, text.before, atol=1e-9)
    np.testing.assert_allclose(found.after, text.after, atol=1e-9)
    assert found.rank_change == text.rank_change
    assert found.top_k_sum_change_normalised == pytest.approx(text.top_k_sum_change_normalised)


def test_moved_pixels_are_what_a_picture_of_them_would_be(picture: AttackResult) -> None:
    model: Any = vit()
    task = task_for(model, [blobs()])
    (item,) = task.items
    shown = picture.picture
    assert shown is not None
    read = model.preprocessing
    values = (shown.before / 255 + shown.difference - np.array(read.mean)) / np.array(read.std)
    encoded = dataclasses.replace(item.encoded, values=values.transpose(2, 0, 1).astype(np.float32))
    there = dataclasses.replace(item, encoded=encoded)
    expected = run("occlusion", Task(model, [there]))[0].scores
    twin = moved_model(model, item, picture.delta, "pixels")
    np.testing.assert_allclose(run("occlusion", Task(twin, [item]))[0].scores, expected, atol=1e-5)


def test_the_shared_model_sees_nothing_of_it(text: AttackResult) -> None:
    model = classifier("bert")
    (item,) = task_for(model, [TEXTS[0]]).items
    before = run("gradient_l2", Task(model, [item]))[0].scores
    run("gradient_l2", Task(moved_model(model, item, text.delta, "embedding"), [item]))
    np.testing.assert_array_equal(run("gradient_l2", Task(model, [item]))[0].scores, before)


@pytest.mark.parametrize("method", ["occlusion", "lime", "kernel_shap", "integrated_gradients", "attn_lrp"])
def test_a_moved_prompt_is_read_whole(method: str) -> None:
    """A change is added by position, so no beginning of the prompt can be read alone."""
    prompt = Prompt(
        "Jane lives in Madrid. George likes the color pink. Jane owns a snake. George lives in Boston. Jane"
    )
    request = dataclasses.replace(asked(steps=2), model="tiny-llama", example=prompt)
    attacked = attack(request)
    found = measure_transfer(request, attacked, method, cheap_params(method, "tiny-llama"))
    assert np.isfinite(found.after).all()
    assert not np.array_equal(found.before, found.after)
