"""Kernel SHAP on a model: additive, and exact where the budget holds all coalitions."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import UsageError
from engine.operators import OPERATORS
from tests.explaining import classifier, run, task_for
from tests.linear import bag_of_embeddings
from tests.oracles.shapley import shapley_by_permutations
from tests.tiny import FAMILIES

TEXT = "a warm ending"


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_to_exact_at_a_full_budget(family: str) -> None:
    task = task_for(classifier(family, 3), [TEXT])
    n = len(task.examples[0].features)
    assert 3 <= n <= 10
    (exact,), (estimate,) = run("exact_shapley", task), run("kernel_shap", task, n_samples=2**n)
    np.testing.assert_allclose(estimate.scores, exact.scores, atol=1e-4)
    assert estimate.evaluations == exact.evaluations == 2**n


@pytest.mark.parametrize("operator", OPERATORS)
def test_exact_is_the_mean_over_all_orders(operator: str) -> None:
    task = task_for(classifier("bert", 3), ["the quiet film"])
    n = len(task.examples[0].features)
    phi = shapley_by_permutations(n, lambda keep: task.masked_values([keep], operator)[0])
    (made,) = run("exact_shapley", task, removal=operator)
    np.testing.assert_allclose(made.scores[task.examples[0].features], phi, atol=1e-9)


@pytest.mark.parametrize("budget", [24, 64, 512, 4096])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_additive_at_any_budget(budget: int, dtype: str) -> None:
    task = task_for(classifier("bert", 3, dtype), ["although the plot drags the ending is warm and funny", "good"])
    for i, made in enumerate(run("kernel_shap", task, n_samples=budget)):
        n = len(task.examples[i].features)
        rows = [np.zeros((0, len(e.features)), dtype=bool) for e in task.examples]
        rows[i] = np.array([[True] * n, [False] * n])
        whole, none = task.masked_values(rows, "mask")[i]
        assert abs(made.scores.sum() - (whole - none)) < 1e-6
        assert made.check is not None
        assert made.check.ok
        assert made.evaluations <= max(budget, 2 * n + 2)


@pytest.mark.parametrize("labels", [1, 2])
def test_a_regression_head_and_a_probability(labels: int) -> None:
    """The score of a linear model is additive; its probability is not, and exact Shapley says so too."""
    task = task_for(
        bag_of_embeddings(labels), ["not worth it although the acting is a quiet triumph"], target=labels - 1
    )
    (exact,), (estimate,) = run("exact_shapley", task), run("kernel_shap", task, n_samples=64)
    np.testing.assert_allclose(estimate.scores, exact.scores, atol=1e-6 if labels == 1 else 0.05)


def test_too_long_for_exact_values() -> None:
    task = task_for(bag_of_embeddings(), ["never " * 15])
    with pytest.raises(UsageError, match=r"must be between 1 and 14 features.*got 15.*Use kernel_shap"):
        run("exact_shapley", task)
