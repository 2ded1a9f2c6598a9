"""Gradient methods against finite differences, Captum, and what LayerNorm implies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, NoiseTunnel, Saliency

from engine.explainers.gradients import ignores_constant_shift
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
