"""Gradient methods against finite differences, Captum, what LayerNorm implies, and of the probability."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, NoiseTunnel, Saliency
from scipy.integrate import quad_vec
from scipy.special import softmax
from torch import Tensor

from engine.explainers.gradients import ignores_constant_shift
from engine.models.text_classifier import TextClassifier
from engine.params import PROBABILITY, QUANTITIES
from tests.explaining import classifier, forget, logit_of, run, task_for
from tests.linear import bag_of_embeddings
from tests.tiny import FAMILIES

TEXT = "the ending is warm"
SMOOTH = ("bert", "roberta", "electra", "distilbert", "xlm-roberta", "gpt2")
"""The families whose norms and activations are smooth in double precision."""


@pytest.mark.parametrize("family", SMOOTH)
def test_against_finite_differences(family: str) -> None:
    model = classifier(family, 3)
    f, x = logit_of(model, TEXT, 2)
    seq, width = x.shape[1:]
    steps = torch.eye(seq * width, dtype=x.dtype).reshape(-1, seq, width) * 1e-4
    with torch.no_grad():
        slope = ((f(x + steps) - f(x - steps)) / 2e-4).reshape(seq, width)
    task = task_for(model, [TEXT], target=2)
    (norms,), (products,) = run("gradient_l2", task), run("gradient_x_input", task)
    np.testing.assert_allclose(norms.scores, slope.norm(dim=-1), atol=1e-6)
    np.testing.assert_allclose(products.scores, (slope * x[0]).sum(-1), atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_against_captum(family: str) -> None:
    model = classifier(family, 3)
    f, x = logit_of(model, TEXT, 0)
    task = task_for(model, [TEXT], target=0)
    gradient = Saliency(f).attribute(x.clone().requires_grad_(), abs=False)[0]
    product = InputXGradient(f).attribute(x.clone().requires_grad_())[0]
    np.testing.assert_allclose(run("gradient", task)[0].scores, gradient.sum(-1), atol=1e-6)
    np.testing.assert_allclose(run("gradient_l2", task)[0].scores, gradient.norm(dim=-1), atol=1e-6)
    np.testing.assert_allclose(run("gradient_x_input", task)[0].scores, product.sum(-1).detach(), atol=1e-6)


def test_smoothgrad_against_captum() -> None:
    """Other random draws, and Captum noises special tokens too: without noise equal, with much of it close."""
    model = classifier("bert")
    f, x = logit_of(model, TEXT, 0)
    task = task_for(model, [TEXT], target=0)
    torch.manual_seed(0)
    sigma = 0.02 * float(x.max() - x.min())
    tunnel = NoiseTunnel(Saliency(f))
    theirs = tunnel.attribute(x.clone().requires_grad_(), nt_samples=400, stdevs=sigma, abs=False)[0].norm(dim=-1)
    np.testing.assert_allclose(run("smoothgrad", task, noise=0.02, n_samples=400)[0].scores, theirs, rtol=0.05)
    plain = run("gradient_l2", task)[0].scores
    np.testing.assert_allclose(run("smoothgrad", task, noise=0, n_samples=3)[0].scores, plain, rtol=1e-9)


@pytest.mark.parametrize("method", ["gradient", "smoothgrad"])
@pytest.mark.parametrize("family", FAMILIES)
def test_sum_is_zero_with_words_where_layer_norm_ignores_a_shift(family: str, method: str) -> None:
    for dtype in ("float32", "float64"):
        params = {"reduction": "sum"} if method == "smoothgrad" else {}
        (made,) = run(method, task_for(classifier(family, 3, dtype), [TEXT]), **params)
        if family == "t5":
            assert np.abs(made.scores).max() > 1e-3
            assert not made.notes
        else:
            assert not made.scores.any()
            assert "zero by construction" in made.notes[0]


def test_shift_is_judged_by_the_model_not_by_the_size_of_its_logits() -> None:
    """A head with tiny weights does not turn a model that feels the shift into one that ignores it."""
    model = bag_of_embeddings(2)
    model.module.head.weight.data *= 1e-7
    assert not ignores_constant_shift(model, task_for(model, [TEXT]).batch())
    for dtype in ("bfloat16", "float16"):
        half = classifier("bert", 3, dtype)
        forget(half)
        assert ignores_constant_shift(half, task_for(half, [TEXT]).batch())


def test_smoothgrad_leaves_special_tokens_without_noise() -> None:
    """A text of one word and two special tokens: with all noise on the word, its gradient alone is smoothed."""
    model = classifier("bert")
    task = task_for(model, ["film"])
    f, x = logit_of(model, "film", task.items[0].target)
    total = torch.zeros_like(x[0])
    sigma = 0.15 * float(x.max() - x.min())
    for sample in range(4):
        noise = torch.zeros_like(x)
        features = task.items[0].encoded.features
        drawn = task.items[0].generator(sample).standard_normal(x.shape[1:]) * sigma
        noise[0, features] = torch.from_numpy(drawn[features])
        point = (x + noise).requires_grad_()
        total += torch.autograd.grad(f(point).sum(), point)[0][0] / 4
    np.testing.assert_allclose(run("smoothgrad", task, n_samples=4)[0].scores, total.norm(dim=-1), rtol=1e-9)


QUANTITY_TEXT, LONGER = "the ending is warm", "although the plot drags the acting never falters"
METHODS = ("gradient", "gradient_l2", "gradient_x_input", "integrated_gradients", "smoothgrad")


def probability_of(model: TextClassifier, text: str, target: int) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """m as a function of a batch of word embeddings, and the embeddings of the text."""
    encoded = task_for(model, [text]).examples[0]

    def m(embeds: Tensor) -> Tensor:
        return torch.softmax(model.logits(model.collate([encoded] * len(embeds)), embeds), -1)[:, target]

    return m, logit_of(model, text, target)[1]


@pytest.mark.parametrize("target", [0, 2])
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_against_finite_differences_of_the_probability(family: str, target: int) -> None:
    model = classifier(family, 3)
    m, x = probability_of(model, QUANTITY_TEXT, target)
    seq, width = x.shape[1:]
    steps = torch.eye(seq * width, dtype=x.dtype).reshape(-1, seq, width) * 1e-4
    with torch.no_grad():
        slope = ((m(x + steps) - m(x - steps)) / 2e-4).reshape(seq, width)
    task = task_for(model, [LONGER, QUANTITY_TEXT], target=target)
    length, product = (run(method, task, quantity=PROBABILITY)[1] for method in ("gradient_l2", "gradient_x_input"))
    smooth = run("smoothgrad", task, quantity=PROBABILITY, noise=0, n_samples=2)[1]
    assert slope.abs().max() > 1e-4
    np.testing.assert_allclose(length.scores, slope.norm(dim=-1), atol=1e-8)
    np.testing.assert_allclose(smooth.scores, slope.norm(dim=-1), atol=1e-8)
    np.testing.assert_allclose(product.scores, (slope * x[0]).sum(-1), atol=1e-8)


def slope_in_closed_form(model: TextClassifier, points: np.ndarray, target: int) -> np.ndarray:
    """`p_c (W_c - sum_k p_k W_k)`: dm/dx_i of the linear model, the same at each position."""
    weight, bias = (getattr(model.module.head, name).detach().double().numpy() for name in ("weight", "bias"))
    shares = softmax(weight @ points.sum(0) + bias)
    return shares[target] * (weight[target] - shares @ weight)


@pytest.mark.parametrize("target", [0, 1, 2])
def test_of_a_linear_model_with_softmax_in_closed_form(target: int) -> None:
    model = bag_of_embeddings(3)
    task = task_for(model, [QUANTITY_TEXT], target=target)
    x = model.embed(task.batch())[0].numpy()
    slope = slope_in_closed_form(model, x, target)
    expected = {"gradient": np.full(len(x), slope.sum()), "gradient_x_input": x @ slope,
                "gradient_l2": np.full(len(x), np.linalg.norm(slope))}  # fmt: skip
    for method, scores in expected.items():
        np.testing.assert_allclose(run(method, task, quantity=PROBABILITY)[0].scores, scores, atol=1e-12)


@pytest.mark.parametrize("baseline", ["mask", "zero"])
def test_integrated_gradients_in_closed_form_add_up_to_the_change_of_the_probability(baseline: str) -> None:
    model, target = bag_of_embeddings(3), 1
    task = task_for(model, [QUANTITY_TEXT, LONGER], target=target)
    made = run("integrated_gradients", task, quantity=PROBABILITY, baseline=baseline, steps="fixed", n_steps=65)
    for item, one in zip(task.items, made, strict=True):
        x = model.embed(model.collate([item.encoded]))[0].numpy()
        start = x.copy()
        start[item.encoded.features] = model.embedding.weight[model.mask_id] if baseline == "mask" else 0
        mean, _ = quad_vec(lambda a, s=start, e=x: slope_in_closed_form(model, s + a * (e - s), target), 0, 1)
        np.testing.assert_allclose(one.scores, (x - start) @ mean, atol=1e-9)
        m, _ = probability_of(model, QUANTITY_TEXT if item is task.items[0] else LONGER, target)
        change = float(m(torch.from_numpy(x)[None]) - m(torch.from_numpy(start)[None]))
        assert one.scores.sum() == pytest.approx(change, abs=1e-9)
        assert one.check is not None
        assert one.check.value < 1e-6


def test_the_gap_and_its_words_are_those_of_the_probability() -> None:
    model = classifier("t5", 3)
    task = task_for(model, [LONGER], target=1)
    m, x = probability_of(model, LONGER, 1)
    start = x.clone()
    start[0, task.examples[0].features] = model.embedding.weight[model.mask_id]
    change = float(m(x) - m(start))
    (made,) = run("integrated_gradients", task, quantity=PROBABILITY, steps="fixed", n_steps=1)
    assert made.check is not None
    assert made.check.value == pytest.approx(abs(made.scores.sum() - change) / max(abs(change), 1e-3), rel=1e-6)
    assert "the scores do not add up to the change of the probability" in made.notes[0]


@pytest.mark.parametrize("method", METHODS)
def test_a_score_is_its_own_probability(method: str) -> None:
    """For a regression head m = f, so both quantities give the same numbers."""
    task = task_for(classifier("t5", 1), [QUANTITY_TEXT, LONGER])
    logit, probability = (run(method, task, quantity=quantity) for quantity in QUANTITIES)
    for a, b in zip(logit, probability, strict=True):
        np.testing.assert_array_equal(a.scores, b.scores)
        assert (a.check, a.notes) == (b.check, b.notes)


@pytest.mark.parametrize("method", METHODS)
def test_the_quantity_changes_the_numbers_of_every_gradient_method(method: str) -> None:
    task = task_for(classifier("t5", 3), [QUANTITY_TEXT])
    params = {"reduction": "sum"} if method == "smoothgrad" else {}
    default, logit, probability = (run(method, task, **params, **more)[0].scores
                                   for more in ({}, *({"quantity": quantity} for quantity in QUANTITIES)))  # fmt: skip
    np.testing.assert_array_equal(default, logit)
    assert np.abs(probability - logit).max() > 0.05 * np.abs(logit).max()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_near_certainty_half_precision_keeps_its_digits(dtype: str) -> None:
    """1 - m = 1e-9 and less has no number in half precision; the map is still right in its first digits."""
    half = dataclasses.replace(bag_of_embeddings(2), dtype=getattr(torch, dtype))
    half.module.head.weight.data *= 3
    half.module.to(half.dtype)
    task = task_for(half, ["the plot is quiet and funny"])
    target = task.targets[0]
    x = half.embed(task.batch())[0].double().numpy()
    logits = task.items[0].prediction.logits
    rest = 1 / (1 + np.exp(abs(logits[1] - logits[0])))
    assert 1e-13 < rest < 1e-8
    weight = half.module.head.weight.detach().double().numpy()
    slope = rest * (1 - rest) * (weight[target] - weight[1 - target])
    (made,) = run("gradient_x_input", task, quantity=PROBABILITY)
    np.testing.assert_allclose(made.scores, x @ slope, rtol=0, atol=0.02 * np.abs(x @ slope).max())
