"""Every method for pictures on a model that is linear in its patches: what it must find is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from engine.models.classifier import EMBEDDING
from engine.params import Plain
from engine.registry import all_explainers
from engine.removal_operators import PATCH_BASELINES, PATCH_OPERATORS
from engine.task import Attribution, Task
from tests.explaining import run, task_for
from tests.linear_patch import GRID, PATCHES, PatchLine, linear_patches, noise

NO_ATTENTION = "the linear model has no attention to read"


@dataclass(frozen=True)
class Known:
    """What a method must find on the linear model at `params`, a score a patch; or why nothing is known."""

    answer: Callable[[PatchLine], np.ndarray] | str
    params: Mapping[str, Plain] = field(default_factory=dict)


def _each(value: float) -> np.ndarray:
    return np.full(PATCHES, value)


def _change(line: PatchLine) -> np.ndarray:
    return line.change("mean")


def _shares(line: PatchLine) -> np.ndarray:
    return _change(line) / np.abs(_change(line)).sum()


KNOWN: dict[str, Known] = {
    "gradient": Known(lambda line: _each(line.pixel_weights.sum())),
    "gradient_l2": Known(lambda line: _each(float(np.linalg.norm(line.pixel_weights)))),
    "gradient_x_input": Known(_change),
    "smoothgrad": Known(lambda line: _each(float(np.linalg.norm(line.pixel_weights))), {"n_samples": 3}),
    "integrated_gradients": Known(_change),
    "grad_cam": Known("the linear model has no LayerNorm before a block to read"),
    "occlusion": Known(_change),
    # The ridge pulls towards zero, so that only without it the linear model comes back.
    "lime": Known(_change, {"ridge": 0, "n_samples": 200, "segments": "patch"}),
    "kernel_shap": Known(_change, {"n_samples": 64}),
    "exact_shapley": Known(_change, {"segments": "patch"}),
    "attention_mean": Known(NO_ATTENTION),
    "attention_last_layer": Known(NO_ATTENTION),
    "attention_head": Known(NO_ATTENTION),
    "attention_logits": Known(NO_ATTENTION),
    "smat": Known(NO_ATTENTION),
    "attention_logits_last": Known(NO_ATTENTION),
    "attention_rollout": Known(NO_ATTENTION),
    "attention_x_gradient": Known(NO_ATTENTION),
    "attn_lrp": Known("the linear model has no layers to hand relevance through"),
    "ensemble_all": Known(f"two of its members read attention, and {NO_ATTENTION}"),
    "ensemble_top3": Known(_shares),
    "deep_lift": Known(_change),
    "deep_lift_shap": Known("its baselines are several; that of each is deep_lift's"),
    "gradient_shap": Known("its baselines are drawn at random"),
    "guided_backprop": Known(lambda line: _each(float(np.linalg.norm(line.w)))),
    "deconvolution": Known(lambda line: _each(float(np.linalg.norm(line.w)))),
    "feature_ablation": Known(_change),
    "shapley_sampling": Known(_change, {"n_samples": 3}),
    "bee": Known("its baseline depends on a metric; from each it is integrated_gradients'"),
    "least_complex": Known(_shares),
    "empirical": Known("its weights are trained; a test trains them on the linear model"),
    "random": Known("it does not look at the model"),
}
LINEAR = [method for method, known in KNOWN.items() if callable(known.answer)]


def task_on(labels: int = 1, seed: int = 0) -> Task:
    task = task_for(linear_patches(labels), [noise(0), noise(1, 20, 30)], target=labels - 1, seed=seed)

    def member(method: str) -> list[Attribution]:
        return run(method, task, **KNOWN[method].params)

    return Task(task.model, task.items, member)


def check(task: Task, made: list[Attribution], answer: Callable[[PatchLine], np.ndarray]) -> None:
    for item, attribution in zip(task.items, made, strict=True):
        expected = answer(PatchLine(task.model, item.encoded, item.target))
        assert np.abs(expected).max() > 0.05
        np.testing.assert_allclose(attribution.scores[item.encoded.features], expected, atol=1e-6, rtol=1e-6)


def test_every_method_for_pictures_has_an_entry() -> None:
    missing = sorted(set(all_explainers("image")) - set(KNOWN))
    assert not missing, f"no known answer for {missing}: add a closed form, or why there is none"
    assert not set(KNOWN) - set(all_explainers("image")), "an entry without a method"


@pytest.mark.parametrize("method", LINEAR)
def test_the_answer_is_the_known_one(method: str) -> None:
    task = task_on()
    known = KNOWN[method]
    assert callable(known.answer)
    check(task, run(method, task, **known.params), known.answer)


@pytest.mark.parametrize(
    "method", ["gradient", "gradient_l2", "gradient_x_input", "smoothgrad", "integrated_gradients"]
)
def test_methods_of_the_logit_do_not_care_how_many_classes_there_are(method: str) -> None:
    task = task_on(labels=3)
    known = KNOWN[method]
    assert callable(known.answer)
    check(task, run(method, task, **known.params), known.answer)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("gradient", lambda line: _each(line.w.sum())),
        ("gradient_l2", lambda line: _each(float(np.linalg.norm(line.w)))),
        ("gradient_x_input", lambda line: line.x @ line.w),
        ("smoothgrad", lambda line: _each(float(np.linalg.norm(line.w)))),
    ],
)
def test_gradients_at_the_embeddings(method: str, answer: Callable[[PatchLine], np.ndarray]) -> None:
    check(task_on(), run(method, task_on(), place=EMBEDDING), answer)


@pytest.mark.parametrize("baseline", PATCH_BASELINES)
def test_paths_from_every_baseline(baseline: str) -> None:
    made = run("integrated_gradients", task_on(), baseline=baseline)
    check(task_on(), made, lambda line: line.change(baseline))
    assert all(each.check is not None and each.check.ok for each in made)


@pytest.mark.parametrize("operator", PATCH_OPERATORS)
@pytest.mark.parametrize("method", ["occlusion", "lime", "kernel_shap", "exact_shapley"])
def test_every_operator(method: str, operator: str) -> None:
    """With `drop` the place of a patch goes with it."""
    made = run(method, task_on(), removal=operator, **KNOWN[method].params)
    check(task_on(), made, lambda line: line.change(operator))


def test_occlusion_of_squares_is_the_mean_over_those_that_hold_the_patch() -> None:
    def answer(line: PatchLine) -> np.ndarray:
        change = _change(line).reshape(GRID)
        total, count = np.zeros(GRID), np.zeros(GRID)
        for row in range(GRID[0] - 1):
            for column in range(GRID[1] - 1):
                held = (slice(row, row + 2), slice(column, column + 2))
                total[held] += change[held].sum()
                count[held] += 1
        return (total / count).ravel()

    check(task_on(), run("occlusion", task_on(), window=2), answer)


def test_the_model_itself_is_what_it_says() -> None:
    """The score of the whole picture, put together by hand."""
    model, task = linear_patches(), task_on()
    places = model.module.vit.embeddings.position_embeddings[0, 1:].numpy()
    for item in task.items:
        line = PatchLine(model, item.encoded, 0)
        by_hand = float(((line.x + places) @ line.w).sum() + model.module.classifier.bias[0])
        assert item.prediction.logits[0] == pytest.approx(by_hand, abs=1e-9)
