"""Occlusion, LIME and Shapley values of patches: Captum and the plain model at the pixels, and by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import Occlusion, ShapleyValues
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from torch import Tensor

from engine.errors import UsageError
from engine.explainers.perturbation import PatchExactShapleyParams, draw_samples, proximity, windows
from engine.params import Plain
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Picture
from engine.task import Task
from engine.vision.picture import segment_picture, superpixels
from tests.explaining import fingerprint, run, task_for
from tests.unit.vision.tiny_vit import (
    ARCHITECTURES,
    SIDE,
    blobs,
    pixel_baseline,
    pixel_parts,
    plain_vit,
    values_of,
    vit,
)

PERTURBING: dict[str, dict[str, Plain]] = {
    "occlusion": {},
    "lime": {"n_samples": 60},
    "kernel_shap": {"n_samples": 40},
    "exact_shapley": {"n_segments": 4},
}
ON_PIXELS = ("mean", "blur")
GRID = (3, 4)


def probability(values: Tensor) -> Tensor:
    """m of the second class, from pixels, by the model as transformers has it."""
    return torch.softmax(plain_vit()(pixel_values=values).logits, -1)[:, 1]


def scores(task: Task, method: str, **params: Plain) -> np.ndarray:
    (made,) = run(method, task, **params)
    assert not made.scores[task.examples[0].special].any()
    return made.scores[task.examples[0].features]


def one(seed: int = 0) -> Task:
    return task_for(vit(), [blobs()], target=1, seed=seed)


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("operator", ON_PIXELS)
def test_occlusion_is_captums_at_the_pixels(operator: str, window: int) -> None:
    x, start = values_of(vit(), blobs()), pixel_baseline(vit(), blobs(), operator)
    size, step = (3, SIDE * window, SIDE * window), (3, SIDE, SIDE)
    with torch.no_grad():
        theirs = Occlusion(probability).attribute(x, size, step, baselines=start)
    assert np.abs(theirs.numpy()).max() > 1e-2
    expected = theirs[0, 0, ::SIDE, ::SIDE].reshape(-1)
    np.testing.assert_allclose(scores(one(), "occlusion", removal=operator, window=window), expected, atol=1e-6)


@pytest.mark.parametrize("operator", ON_PIXELS)
def test_exact_values_are_captums_with_a_mask_of_superpixels(operator: str) -> None:
    task = one()
    parts = segment_picture(task.examples[0], "slic", 5)
    assert 3 <= parts.count <= 5
    assert parts.sizes.max() > 1
    x, start = values_of(vit(), blobs()), pixel_baseline(vit(), blobs(), operator)
    mask = pixel_parts(parts.of_feature, GRID)
    with torch.no_grad():
        theirs = ShapleyValues(probability).attribute(x, start, feature_mask=mask)[0, 0, ::SIDE, ::SIDE].reshape(-1)
    made = scores(task, "exact_shapley", removal=operator, n_segments=5)
    np.testing.assert_allclose(made * parts.sizes[parts.of_feature], theirs, atol=1e-6)


@pytest.mark.parametrize("operator", PATCH_OPERATORS)
def test_kernel_shap_of_all_coalitions_is_exact(operator: str) -> None:
    task = one()
    exact = scores(task, "exact_shapley", removal=operator, n_segments=6)
    made = scores(task, "kernel_shap", removal=operator, segments="slic", n_segments=6, n_samples=4096)
    np.testing.assert_allclose(made, exact, atol=1e-9)
    assert np.abs(exact).max() > 1e-3


def test_kernel_shap_comes_close_to_the_exact_values_of_all_patches() -> None:
    exact = scores(one(), "exact_shapley", segments="patch")
    errors = [np.abs(scores(one(), "kernel_shap", n_samples=n) - exact).max() for n in (64, 512, 4096)]
    assert errors[0] < 0.5 * np.abs(exact).max()
    assert errors[1] < 0.25 * np.abs(exact).max()
    assert errors[2] < 1e-9


@pytest.mark.parametrize("segments", ["patch", "slic"])
@pytest.mark.parametrize("operator", ON_PIXELS)
def test_lime_is_a_ridge_on_the_plain_models_answers(operator: str, segments: str) -> None:
    task = one(seed=4)
    item = task.items[0]
    parts = segment_picture(item.encoded, segments, 5)
    kept = draw_samples(parts.count, 60, item.generator())
    x, start = values_of(vit(), blobs()), pixel_baseline(vit(), blobs(), operator)
    number = pixel_parts(parts.of_feature, GRID)[0]
    with torch.no_grad():
        seen = [torch.where(torch.from_numpy(row)[number], x[0], start[0]) for row in kept]
        answers = probability(torch.stack(seen)).numpy()
    weights = proximity(kept, 25.0)
    slopes = Ridge(alpha=1.0).fit(kept.astype(float), answers, sample_weight=weights).coef_
    made = scores(task, "lime", removal=operator, segments=segments, n_segments=5, n_samples=60)
    np.testing.assert_allclose(made, (slopes / parts.sizes)[parts.of_feature], atol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_drop_runs_the_model_on_the_patches_that_are_left(architecture: str) -> None:
    """They keep their places; nothing stands where the others were."""
    model = vit(architecture)
    task = task_for(model, [blobs()], target=1)
    specials, n = task.examples[0].specials, len(task.examples[0].features)
    whole = without(model, architecture, [])
    expected = [whole - without(model, architecture, [specials + i]) for i in range(n)]
    np.testing.assert_allclose(scores(task, "occlusion", removal="drop"), expected, atol=1e-9)
    assert np.abs(expected).max() > 1e-2


def without(model: Any, architecture: str, gone: list[int]) -> float:
    """m by a pass over fewer tokens, put together by hand."""
    module = plain_vit(architecture)
    kept = [i for i in range(len(model.adapter.specials) + 12) if i not in gone]
    body = module.get_submodule(model.adapter.backbone)
    with torch.no_grad():
        hidden = body.embeddings(values_of(model, blobs()))[:, kept]
        for block in model.module.get_submodule(model.adapter.blocks):
            hidden = block(hidden)
        hidden = model.module.get_submodule(model.adapter.norm)(hidden)
        heads = [model.module.get_submodule(name) for name in model.adapter.heads]
        logits = sum(head(hidden[:, i]) for i, head in enumerate(heads)) / len(heads)
    return float(torch.softmax(logits[0], -1)[1])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 7))
def test_squares_by_a_count_in_loops(rows: int, columns: int, side: int) -> None:
    tall, wide = min(side, rows), min(side, columns)
    expected = []
    for top in range(rows - tall + 1):
        for left in range(columns - wide + 1):
            places = [(row, column) for row in range(rows) for column in range(columns)]
            expected.append([top <= r < top + tall and left <= c < left + wide for r, c in places])
    assert windows((rows, columns), side).tolist() == expected
    assert windows((rows, columns), side).any(0).all()


@pytest.mark.parametrize("operator", PATCH_OPERATORS)
def test_shapley_values_add_up(operator: str) -> None:
    task = one()
    whole, none = task.masked_values([np.array([[True] * 12, [False] * 12])], operator)[0]
    for method, params in (
        ("kernel_shap", {"n_samples": 30}),
        ("kernel_shap", {"n_samples": 30, "segments": "slic", "n_segments": 8}),
        ("exact_shapley", {"n_segments": 4}),
    ):
        (made,) = run(method, task, removal=operator, **params)
        assert made.scores.sum() == pytest.approx(whole - none, abs=1e-9)
        assert made.check is not None
        assert made.check.name == "additivity gap"
        assert made.check.ok


@pytest.mark.parametrize("method", ["lime", "kernel_shap", "exact_shapley"])
def test_the_patches_of_a_superpixel_score_the_same(method: str) -> None:
    task = one()
    made = scores(task, method, **{**PERTURBING[method], "segments": "slic", "n_segments": 4})
    parts = segment_picture(task.examples[0], "slic", 4)
    assert 2 <= parts.count < 12
    assert all(np.ptp(made[parts.of_feature == part]) == 0 for part in range(parts.count))
    assert np.ptp(made) > 1e-3


@pytest.mark.parametrize("operator", PATCH_OPERATORS)
@pytest.mark.parametrize("method", PERTURBING)
def test_together_is_as_one_by_one(method: str, operator: str) -> None:
    given, params = [blobs(seed) for seed in range(3)], {**PERTURBING[method], "removal": operator}
    together = run(method, task_for(vit(), given, target=0), **params)
    for picture, made in zip(given, together, strict=True):
        (alone,) = run(method, task_for(vit(), [picture], target=0), **params)
        np.testing.assert_allclose(made.scores, alone.scores, atol=1e-9)
        assert made.evaluations == alone.evaluations


@pytest.mark.parametrize("method", PERTURBING)
def test_the_same_question_has_the_same_answer(method: str) -> None:
    first, again = (scores(one(), method, **PERTURBING[method]) for _ in range(2))
    assert np.array_equal(first, again)


@pytest.mark.parametrize(("method", "by_chance"), [("lime", True), ("kernel_shap", True), ("occlusion", False)])
def test_the_seed_matters_where_chance_does(method: str, by_chance: bool) -> None:
    first, other = (scores(one(seed), method, **PERTURBING[method]) for seed in (0, 1))
    assert np.array_equal(first, other) is not by_chance
    assert np.corrcoef(first, other)[0, 1] > 0.7


@pytest.mark.parametrize("operator", PATCH_OPERATORS)
@pytest.mark.parametrize("method", PERTURBING)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_gives_about_the_same_map(dtype: str, method: str, operator: str) -> None:
    params = {**PERTURBING[method], "removal": operator}
    wide = scores(one(), method, **params)
    narrow = scores(task_for(vit(dtype=dtype), [blobs()], target=1), method, **params)
    assert np.isfinite(narrow).all()
    assert np.corrcoef(wide, narrow)[0, 1] > 0.9


@pytest.mark.parametrize("method", PERTURBING)
def test_the_model_is_as_it_was(method: str) -> None:
    before = fingerprint(vit())
    run(method, one(), **PERTURBING[method])
    assert fingerprint(vit()) == before


def test_costs_are_what_was_run() -> None:
    task = one()
    parts = segment_picture(task.examples[0], "slic", 4).count
    costs = {method: run(method, task, **params)[0].evaluations for method, params in PERTURBING.items()}
    assert costs["occlusion"] == 13
    assert costs["exact_shapley"] == 2**parts
    assert costs["kernel_shap"] == 40
    assert 13 < costs["lime"] <= 60
    assert run("occlusion", task, window=2)[0].evaluations == 1 + math.prod((2, 3))


def test_a_budget_that_is_too_small_is_raised_and_said() -> None:
    (made,) = run("kernel_shap", one(), n_samples=6)
    assert made.notes[-1] == "14 evaluations were used, the minimum for this picture's patches."
    (made,) = run("kernel_shap", one(), n_samples=4, segments="slic", n_segments=8)
    assert made.notes[-1].endswith("the minimum for this picture's superpixels.")


def test_too_many_parts_for_exact_values_say_how_to_get_there() -> None:
    task = task_for(vit(image=(32, 40)), [blobs(0, 32, 40)])
    with pytest.raises(
        UsageError,
        match=r"exact_shapley\.segments: must give at most 14 patches \(2\^n evaluations\), got 20\. "
        r"Set segments to slic and n_segments to 9, or use kernel_shap\.",
    ):
        run("exact_shapley", task, segments="patch")


@pytest.mark.parametrize("size", [(64, 64), (224, 224), (160, 384)])
def test_the_default_superpixels_are_few_enough_for_exact_values(size: tuple[int, int]) -> None:
    asked = PatchExactShapleyParams().n_segments
    for seed in range(3):
        assert len(np.unique(superpixels(blobs(seed, *size).pixels, asked))) <= 14


def test_a_picture_without_anything_in_it() -> None:
    plain = Picture(np.full((24, 32, 3), 128, dtype=np.uint8))
    for method, params in PERTURBING.items():
        (made,) = run(method, task_for(vit(), [plain]), **params)
        assert np.isfinite(made.scores).all()
