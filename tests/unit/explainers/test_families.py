"""Every explainer on every family: single texts, pairs, three classes, a regression head."""

from __future__ import annotations

import numpy as np
import pytest

from engine.request import Example
from engine.task import Attribution, Task
from tests.explaining import METHODS, classifier, fingerprint, forget, run_cheaply, task_for
from tests.tiny import FAMILIES

SINGLE = Example("the film")
PAIR = Example("good food", "the acting")
LONGER = Example("the ending")
RANDOM = {
    "gradient_shap",
    "shapley_sampling",
    "smoothgrad",
    "lime",
    "kernel_shap",
    "random",
    "ensemble_all",
    "ensemble_top3",
    "least_complex",
    "bee",
}
SCORE_SPECIAL = {
    "gradient", "gradient_l2", "gradient_x_input", "smoothgrad",
    "attention_mean", "attention_last_layer", "attention_head", "attention_rollout",
    "attention_x_gradient", "attn_lrp", "guided_backprop", "deconvolution",
}  # fmt: skip
"""Methods that give special tokens what they get; the others must leave them at 0. Nobody ranks them."""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", FAMILIES)
def test_three_classes_pairs_and_batches(family: str, method: str) -> None:
    model = classifier(family, 3, "float32")
    forget(model)
    before = fingerprint(model)
    task = other_class(task_for(model, [SINGLE, PAIR, LONGER], seed=5))
    together = run_cheaply(method, task)
    for item, made in zip(task.items, together, strict=True):
        check(made, item.encoded.special, method)
        (alone,) = run_cheaply(method, Task(model, [item]))
        np.testing.assert_allclose(made.scores, alone.scores, atol=1e-5, rtol=1e-4)
    again = run_cheaply(method, task)
    assert [a.scores.tobytes() for a in again] == [a.scores.tobytes() for a in together], "same seed, same bytes"
    assert fingerprint(model) == before, "the model must stay bit for bit as it was"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", FAMILIES)
def test_regression_heads(family: str, method: str) -> None:
    model = classifier(family, 1, "float32")
    before = fingerprint(model)
    task = task_for(model, [LONGER])
    (made,) = run_cheaply(method, task)
    check(made, task.items[0].encoded.special, method)
    assert fingerprint(model) == before


@pytest.mark.parametrize("method", METHODS)
def test_another_seed(method: str) -> None:
    model = classifier("bert", 3, "float32")
    tasks = [task_for(model, ["although the plot drags the ending is warm"], seed=seed) for seed in (0, 1)]
    (first,), (second,) = (run_cheaply(method, task) for task in tasks)
    differ = first.scores.tobytes() != second.scores.tobytes() or first.extras != second.extras
    assert differ == (method in RANDOM)


def other_class(task: Task) -> Task:
    """The same examples, each explained for a class that was not predicted."""
    items = [type(i)(i.encoded, i.prediction, (i.prediction.index + 1) % 3, i.seed) for i in task.items]
    return Task(task.model, items)


def check(made: Attribution, special: np.ndarray, method: str) -> None:
    assert made.scores.shape == special.shape
    assert made.scores.dtype == np.float64
    assert np.isfinite(made.scores).all()
    assert made.evaluations >= (method != "random")
    assert made.scores[~special].any() or made.notes
    if method not in SCORE_SPECIAL:
        assert not made.scores[special].any()
