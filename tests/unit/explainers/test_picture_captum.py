"""Gradients and paths at the pixels, summed in the patch, as Captum has them on the model of transformers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, IntegratedGradients, NoiseTunnel, Saliency
from torch import Tensor

from engine.params import Plain
from engine.task import Task
from tests.explaining import fingerprint, run, task_for
from tests.unit.vision.tiny_vit import ARCHITECTURES, blobs, patch_sums, pixel_baseline, plain_vit, values_of, vit

GRID = (3, 4)


def scores(task: Task, method: str, **params: Plain) -> np.ndarray:
    (made,) = run(method, task, **params)
    return made.scores[task.examples[0].features]


def logit(architecture: str = ARCHITECTURES[0], target: int = 1) -> object:
    def f(values: Tensor) -> Tensor:
        return plain_vit(architecture)(pixel_values=values).logits[:, target]

    return f


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("baseline", ["mean", "blur"])
def test_integrated_gradients_at_the_pixels(baseline: str, architecture: str) -> None:
    """With a baseline that is a picture, ours at the embeddings are theirs at the pixels, node by node."""
    model = vit(architecture)
    x, start = values_of(model, blobs()), pixel_baseline(model, blobs(), baseline)
    theirs = IntegratedGradients(logit(architecture)).attribute(x, start, n_steps=40, method="gausslegendre")
    settings: dict[str, Plain] = {"baseline": baseline, "steps": "fixed", "n_steps": 40}
    task = task_for(model, [blobs()], target=1)
    ours = scores(task, "integrated_gradients", quadrature="gauss_legendre", **settings)
    np.testing.assert_allclose(ours, patch_sums(theirs.detach(), GRID), atol=1e-6)
    assert np.abs(ours).max() > 0.05


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_gradients_at_the_pixels(architecture: str) -> None:
    model = vit(architecture)
    task = task_for(model, [blobs()], target=1)
    x = values_of(model, blobs()).requires_grad_()
    slope = Saliency(logit(architecture)).attribute(x, abs=False)
    product = InputXGradient(logit(architecture)).attribute(x)
    np.testing.assert_allclose(scores(task, "gradient"), patch_sums(slope.detach(), GRID), atol=1e-9)
    np.testing.assert_allclose(scores(task, "gradient_l2") ** 2, patch_sums(slope.detach() ** 2, GRID), atol=1e-9)
    np.testing.assert_allclose(scores(task, "gradient_x_input"), patch_sums(product.detach(), GRID), atol=1e-9)


def test_smoothgrad_settles_on_captums() -> None:
    """Both draw their own noise: the means over many copies are about the same."""
    model = vit()
    task = task_for(model, [blobs()], target=1)
    x = values_of(model, blobs())
    sigma = 0.1 * float(max(x.max(), 0) - min(x.min(), 0))  # special tokens hold zeros
    torch.manual_seed(0)
    tunnel = NoiseTunnel(Saliency(logit()))
    theirs = tunnel.attribute(
        x.requires_grad_(), nt_type="smoothgrad", nt_samples=600, nt_samples_batch_size=50, stdevs=sigma, abs=False
    )
    ours = scores(task, "smoothgrad", n_samples=600, noise=0.1, reduction="sum")
    wanted = patch_sums(theirs.detach(), GRID)
    assert np.corrcoef(ours, wanted)[0, 1] > 0.97


@pytest.mark.parametrize(("dtype", "alike"), [("float32", 0.9999), ("bfloat16", 0.9), ("float16", 0.99)])
@pytest.mark.parametrize("method", ["gradient", "gradient_l2", "gradient_x_input", "grad_cam", "integrated_gradients"])
def test_narrow_precision_gives_about_the_same_map(method: str, dtype: str, alike: float) -> None:
    settings: dict[str, Plain] = {"steps": "fixed", "n_steps": 20} if method == "integrated_gradients" else {}
    wide = scores(task_for(vit(), [blobs()], target=1), method, **settings)
    narrow = scores(task_for(vit(dtype=dtype), [blobs()], target=1), method, **settings)
    assert np.isfinite(narrow).all()
    assert np.corrcoef(wide, narrow)[0, 1] > alike


@pytest.mark.parametrize("method", ["gradient", "smoothgrad", "grad_cam", "integrated_gradients"])
def test_the_model_is_as_it_was(method: str) -> None:
    before = fingerprint(vit())
    run(method, task_for(vit(), [blobs()], target=1))
    assert fingerprint(vit()) == before
