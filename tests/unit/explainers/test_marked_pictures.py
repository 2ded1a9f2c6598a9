"""On `scenes-marked-vit` the truth is known: the class hangs on one patch, the mark, and a good method finds it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from engine.data.examples import ImageExample
from engine.data.image_datasets import load_images
from engine.metrics.plausibility import expected_truth_scores, truth_scores
from engine.models.loading import load_image_model
from engine.params import Plain
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Picture
from engine.vision.picture import read_view
from tests.explaining import run, task_for

MODEL = "scenes-marked-vit"
NEEDED = 0.9
USUAL = PATCH_OPERATORS[0]
others = pytest.mark.slow(reason="maps of ten pictures by another removal operator")
OPERATORS = [USUAL, *(pytest.param(operator, marks=others) for operator in PATCH_OPERATORS[1:])]


@pytest.fixture(scope="module")
def examples() -> list[ImageExample]:
    """Pictures of the test split, which the model was not trained on."""
    data = load_images("scenes-marked", split="test", limit=10)
    return [data[i] for i in range(len(data))]


def overlap(method: str, examples: list[ImageExample], params: Mapping[str, Plain]) -> float:
    """The mean share of the mark's patches among as many with the highest scores, for the class that is predicted."""
    task = task_for(load_image_model(MODEL), [Picture(example.pixels) for example in examples])
    assert task.targets == [example.label for example in examples], "the mark tells the class"
    found = []
    for i, (example, made) in enumerate(zip(examples, run(method, task, **params), strict=True)):
        assert example.mask is not None
        grid = task.examples[i].on_grid(made.scores)
        found.append(truth_scores(grid, read_view(MODEL).patches(example.mask), (i,)).overlap)
    return float(np.mean(found))


def test_the_mark_is_one_patch_of_64(examples: list[ImageExample]) -> None:
    masks = [read_view(MODEL).patches(example.mask) for example in examples if example.mask is not None]
    assert [int(mask.sum()) for mask in masks] == [1] * len(examples)
    assert len({int(mask.argmax()) for mask in masks}) > 5, "it is not always in the same place"
    assert expected_truth_scores(64, 1).overlap == 1 / 64


@pytest.mark.parametrize("operator", OPERATORS)
def test_occlusion_finds_the_mark(operator: str, examples: list[ImageExample]) -> None:
    assert overlap("occlusion", examples, {"removal": operator}) >= NEEDED


@pytest.mark.parametrize("operator", OPERATORS)
def test_kernel_shap_finds_the_mark_with_twice_as_many_draws_as_patches(
    operator: str, examples: list[ImageExample]
) -> None:
    assert overlap("kernel_shap", examples, {"removal": operator, "n_samples": 128}) >= NEEDED


def test_an_order_by_chance_does_not(examples: list[ImageExample]) -> None:
    assert overlap("random", examples, {}) < 0.3
