"""Gradients, SmoothGrad and Grad-CAM on patches, against finite differences and the plain model of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.explain import predict_encoded
from engine.explainers.gradients import ONLY_NEGATIVE, PLACES, positive_part
from engine.explainers.path_integrals import quadrature_nodes
from engine.models.classifier import EMBEDDING
from engine.params import PROBABILITY, Plain, from_mapping
from engine.registry import explainer
from engine.request import Picture
from engine.task import Attribution, Task, TaskItem
from engine.vision.classifier import ImageClassifier
from tests.unit.vision.tiny_vit import ARCHITECTURES, SIDE, blobs, patch_sums, pixel_baseline, plain_vit, values_of, vit

GRID = (3, 4)
STEP = 1e-4


def task_for(model: ImageClassifier, *pictures: Picture, target: int = 1) -> Task:
    encoded = [model.encode(picture) for picture in pictures]
    made = predict_encoded(model, encoded)
    return Task(model, [TaskItem(e, p, target, 0) for e, p in zip(encoded, made, strict=True)])


def run(method: str, task: Task, **params: Plain) -> list[Attribution]:
    known = explainer(method, "image")
    return known.function(task, from_mapping(known.params, params, method))


def on_patches(made: Attribution, specials: int = 1) -> np.ndarray:
    return made.scores[specials:]


def logit(values: Tensor, architecture: str = ARCHITECTURES[0], target: int = 1) -> Tensor:
    return plain_vit(architecture)(pixel_values=values).logits[:, target]


def pixel_gradient(values: Tensor, architecture: str = ARCHITECTURES[0]) -> Tensor:
    point = values.clone().requires_grad_()
    (slope,) = torch.autograd.grad(logit(point, architecture).sum(), point)
    return slope


def patch_of(number: int) -> tuple[slice, slice, slice, slice]:
    row, column = divmod(number, GRID[1])
    place = (slice(row * SIDE, (row + 1) * SIDE), slice(column * SIDE, (column + 1) * SIDE))
    return slice(None), slice(None), *place


def probability(values: Tensor, target: int = 1) -> Tensor:
    return torch.softmax(plain_vit()(pixel_values=values).logits, -1)[:, target]


def slope_along(values: Tensor, direction: Tensor, of: Callable[[Tensor], Tensor] = logit) -> float:
    with torch.no_grad():
        return float((of(values + STEP * direction) - of(values - STEP * direction)) / (2 * STEP))


@pytest.mark.parametrize("method", ["gradient", "gradient_x_input"])
def test_a_score_is_the_slope_of_the_logit_along_its_patch(method: str) -> None:
    model, picture = vit(), blobs()
    values = values_of(model, picture)
    [made] = run(method, task_for(model, picture))
    for number in (0, 5, 11):
        direction = torch.zeros_like(values)
        direction[patch_of(number)] = 1 if method == "gradient" else values[patch_of(number)]
        assert on_patches(made)[number] == pytest.approx(slope_along(values, direction), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pixel_gradients_are_the_plain_models_summed_in_the_patch(architecture: str) -> None:
    model, picture = vit(architecture), blobs()
    values = values_of(model, picture)
    slope, specials = pixel_gradient(values, architecture), len(model.adapter.specials)
    wanted = {
        "gradient": patch_sums(slope, GRID),
        "gradient_x_input": patch_sums(slope * values, GRID),
        "gradient_l2": np.sqrt(patch_sums(slope**2, GRID)),
    }
    for method, scores in wanted.items():
        [made] = run(method, task_for(model, picture))
        np.testing.assert_allclose(on_patches(made, specials), scores, atol=1e-10)
        assert not made.scores[:specials].any(), "special tokens have no pixels"


def test_at_the_embeddings_they_are_those_of_the_patch_vectors() -> None:
    model, picture, kept = vit(), blobs(), []
    plain = plain_vit(ARCHITECTURES[0])

    def keep(_module: Any, _given: Any, made: Tensor) -> Tensor:
        kept.append(made.detach().requires_grad_())
        return kept[0]

    hook = plain.base_model.embeddings.patch_embeddings.register_forward_hook(keep)
    (slope,) = torch.autograd.grad(logit(values_of(model, picture)).sum(), kept)
    hook.remove()
    [length] = run("gradient_l2", task_for(model, picture), place=EMBEDDING)
    [product] = run("gradient_x_input", task_for(model, picture), place=EMBEDDING)
    np.testing.assert_allclose(on_patches(length), slope[0].norm(dim=-1).numpy(), atol=1e-10)
    np.testing.assert_allclose(on_patches(product), (slope * kept[0])[0].sum(-1).detach().numpy(), atol=1e-10)


@pytest.mark.parametrize(("method", "params"), [("gradient", {}), ("smoothgrad", {"reduction": "sum", "n_samples": 2})])
def test_the_sum_over_embedding_dimensions_is_zero_with_words(method: str, params: dict[str, Plain]) -> None:
    [made] = run(method, task_for(vit(), blobs()), place=EMBEDDING, **params)
    assert not made.scores.any()
    assert "zero by construction" in made.notes[0]
    assert "at the pixels" in made.notes[0]
    [at_pixels] = run(method, task_for(vit(), blobs()), **params)
    assert at_pixels.scores.any()
    assert not at_pixels.notes


@pytest.mark.parametrize("reduction", ["l2", "sum"])
def test_smoothgrad_is_the_mean_over_its_noisy_pictures_one_by_one(reduction: str) -> None:
    model, picture, samples = vit(), blobs(), 3
    task = task_for(model, picture)
    values = values_of(model, picture)
    spread = 0.2 * float(max(values.max(), 0) - min(values.min(), 0))  # special tokens hold zeros
    total = torch.zeros_like(values)
    for sample in range(samples):
        drawn = task.items[0].generator(sample).standard_normal((13, 3 * SIDE * SIDE))[1:]
        noise = torch.from_numpy(drawn).reshape(*GRID, 3, SIDE, SIDE).permute(2, 0, 3, 1, 4).reshape(1, 3, 24, 32)
        total += pixel_gradient(values + spread * noise)
    mean = total / samples
    wanted = patch_sums(mean, GRID) if reduction == "sum" else np.sqrt(patch_sums(mean**2, GRID))
    [made] = run("smoothgrad", task, n_samples=samples, noise=0.2, reduction=reduction)
    np.testing.assert_allclose(on_patches(made), wanted, atol=1e-9)
    assert made.evaluations == samples


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("sign", ["positive", "both"])
def test_grad_cam_by_loops_on_the_plain_model(architecture: str, sign: str) -> None:
    model, picture, read = vit(architecture), blobs(), []
    plain, specials = plain_vit(architecture), len(model.adapter.specials)
    norm = plain.base_model.layers[-1].layernorm_before
    hook = norm.register_forward_hook(lambda _module, _given, made: read.append(made))
    point = values_of(model, picture).requires_grad_()
    (slope,) = torch.autograd.grad(logit(point, architecture).sum(), read)
    hook.remove()
    states, slopes = read[0][0].tolist(), slope[0].tolist()
    patches = range(specials, len(states))
    weights = [sum(slopes[i][k] for i in patches) / len(patches) for k in range(len(states[0]))]
    wanted = [sum(w * state for w, state in zip(weights, states[i], strict=True)) for i in patches]
    wanted = [max(value, 0.0) for value in wanted] if sign == "positive" else wanted
    [made] = run("grad_cam", task_for(model, picture), sign=sign)
    np.testing.assert_allclose(on_patches(made, specials), wanted, atol=1e-10)
    assert made.scores.any()


@pytest.mark.parametrize(
    ("scores", "wanted", "notes"),
    [
        ([0.0, -1.0, -2.0], [0.0, 0.0, 0.0], (ONLY_NEGATIVE,)),
        ([0.0, -1.0, 2.0], [0.0, 0.0, 2.0], ()),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], ()),
    ],
)
def test_grad_cam_without_a_positive_score_says_so(
    scores: list[float], wanted: list[float], notes: tuple[str, ...]
) -> None:
    made = positive_part(np.array(scores))
    assert (made.scores.tolist(), made.notes) == (wanted, notes)


@pytest.mark.parametrize("method", ["gradient", "gradient_l2", "smoothgrad", "grad_cam", "integrated_gradients"])
def test_together_is_as_one_by_one(method: str) -> None:
    model, pictures = vit(), [blobs(0), blobs(1), blobs(2)]
    together = run(method, task_for(model, *pictures))
    for picture, made in zip(pictures, together, strict=True):
        [alone] = run(method, task_for(model, picture))
        np.testing.assert_allclose(made.scores, alone.scores, atol=1e-9)


def test_average_attention_is_that_of_the_plain_model() -> None:
    model, picture = vit(), blobs()
    plain = plain_vit()
    plain.set_attn_implementation("eager")
    try:
        layers = plain(pixel_values=values_of(model, picture), output_attentions=True).attentions
    finally:
        plain.set_attn_implementation("sdpa")
    wanted = torch.stack(layers)[:, 0].mean((0, 1, 2)).detach().numpy()
    [made] = run("attention_mean", task_for(model, picture))
    np.testing.assert_allclose(made.scores, wanted, atol=1e-10)


def test_of_the_probability_against_finite_differences_at_the_pixels() -> None:
    model, picture = vit(), blobs()
    values = values_of(model, picture)
    task = task_for(model, picture)
    [sums], [products] = (run(name, task, quantity=PROBABILITY) for name in ("gradient", "gradient_x_input"))
    [smooth] = run("smoothgrad", task, quantity=PROBABILITY, reduction="sum", noise=0, n_samples=2)
    for number in (0, 5, 11):
        ones, own = (torch.zeros_like(values) for _ in range(2))
        ones[patch_of(number)], own[patch_of(number)] = 1, values[patch_of(number)]
        for direction, made in ((ones, sums), (ones, smooth), (own, products)):
            slope = slope_along(values, direction, probability)
            assert on_patches(made)[number] == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("place", PLACES)
def test_the_gradient_of_the_probability_is_that_of_all_logits_by_the_rule_of_softmax(place: str) -> None:
    """dm_c/dx = m_c (df_c/dx - sum_k m_k df_k/dx), at the pixels as at the embeddings."""
    model, picture = vit(), blobs()
    tasks = [task_for(model, picture, target=target) for target in range(len(model.labels))]
    shares = np.array(tasks[0].items[0].prediction.probabilities)
    slopes = np.stack([run("gradient_x_input", task, place=place)[0].scores for task in tasks])
    for target, task in enumerate(tasks):
        [made] = run("gradient_x_input", task, quantity=PROBABILITY, place=place)
        np.testing.assert_allclose(made.scores, shares[target] * (slopes[target] - shares @ slopes), atol=1e-12)


@pytest.mark.parametrize("baseline", ["mean", "blur"])
def test_integrated_gradients_of_the_probability_at_the_pixels(baseline: str) -> None:
    """Each patch is the path integral at its pixels on the plain model; together they are the change of m."""
    model, picture = vit(), blobs()
    values, start = values_of(model, picture), pixel_baseline(model, picture, baseline)
    alphas, weights = quadrature_nodes("gauss_legendre", 300)
    total = torch.zeros_like(values)
    for alpha, weight in zip(alphas, weights, strict=True):
        point = (start + alpha * (values - start)).requires_grad_()
        total += weight * torch.autograd.grad(probability(point).sum(), point)[0]
    task = task_for(model, picture)
    [made] = run("integrated_gradients", task, quantity=PROBABILITY, baseline=baseline, steps="fixed", n_steps=513)
    np.testing.assert_allclose(on_patches(made), patch_sums((values - start) * total, GRID), atol=1e-8)
    with torch.no_grad():
        assert made.scores.sum() == pytest.approx(float(probability(values) - probability(start)), abs=1e-7)
