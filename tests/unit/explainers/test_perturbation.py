"""Occlusion, LIME and Shapley values of words: by hand, against their packages, exact at a full budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import FeatureAblation, Occlusion
from hypothesis import given, settings
from hypothesis import strategies as st
from lime.lime_text import LimeTextExplainer
from sklearn.linear_model import Ridge
from torch import Tensor

from engine.errors import UsageError
from engine.explainers.perturbation import draw_samples, proximity, weighted_ridge, windows
from engine.removal_operators import OPERATORS
from engine.task import TaskItem
from tests.explaining import classifier, run, task_for
from tests.linear import bag_of_embeddings
from tests.oracles.shapley import shapley_by_permutations
from tests.tiny import FAMILIES

TEXT = "the ending is warm"


@pytest.mark.parametrize("family", FAMILIES)
def test_against_captum(family: str) -> None:
    model = classifier(family, 3)
    task = task_for(model, [TEXT], target=1)
    encoded = task.examples[0]
    x = model.embed(model.collate([encoded]))
    places = torch.arange(len(encoded))[None, :, None].expand(x.shape)
    start = model.embedding.weight[model.mask_id].expand(x.shape)

    def m(embeds: Tensor) -> Tensor:
        return torch.softmax(model.logits(model.collate([encoded] * len(embeds)), embeds), -1)[:, 1]

    with torch.no_grad():
        ablated = FeatureAblation(m).attribute(x, start, feature_mask=places)[0, :, 0]
        slid = Occlusion(m).attribute(x, (1, x.shape[-1]), (1, x.shape[-1]), baselines=start)[0, :, 0]
    (made,) = run("occlusion", task)
    np.testing.assert_allclose(made.scores[encoded.features], ablated[encoded.features], atol=1e-6)
    np.testing.assert_allclose(made.scores[encoded.features], slid[encoded.features], atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 15))
def test_windows_hold_neighbors_and_cover_all(n: int, width: int) -> None:
    rows = windows((n,), width)
    assert rows.shape == (max(1, n - width + 1), n)
    assert (rows.sum(1) == min(n, width)).all()
    assert rows.any(0).all()
    assert all((np.diff(np.flatnonzero(row)) == 1).all() for row in rows)


def test_occlusion_with_a_window_by_hand() -> None:
    task = task_for(classifier("bert", 3), ["the ending is warm"])
    n = len(task.examples[0].features)
    keep = np.ones((n, n), dtype=bool)
    for i in range(n - 1):
        keep[i + 1, i : i + 2] = False
    value = task.masked_values([keep], "pad")[0]
    drop = value[0] - value[1:]
    expected = [drop[0], *((drop[i - 1] + drop[i]) / 2 for i in range(1, n - 1)), drop[-1]]
    (made,) = run("occlusion", task, removal="pad", window=2)
    np.testing.assert_allclose(made.scores[task.examples[0].features], expected, atol=1e-12)
    assert made.evaluations == n


LIME_TEXT = "although the plot drags, the ending is warm and funny"


def item(seed: int = 0) -> TaskItem:
    return task_for(classifier("bert"), [LIME_TEXT], seed=seed).items[0]


def drawn(count: int, of: TaskItem | None = None) -> np.ndarray:
    of = of or item()
    return draw_samples(len(of.encoded.features), count, of.generator())


def test_first_is_the_whole_text_and_every_other_lacks_something() -> None:
    kept = drawn(2000)
    assert kept.shape == (2000, len(item().encoded.features))
    assert kept[0].all()
    assert not kept[1:].all(axis=1).any()


def test_sizes_are_uniform_and_every_feature_is_as_likely() -> None:
    kept = drawn(20_001)[1:]
    n = kept.shape[1]
    counts = np.bincount((~kept).sum(1), minlength=n + 1)
    assert counts[0] == 0
    expected = len(kept) / n
    # Chi-squared with n - 1 degrees of freedom, 99.99%: below 60 for n <= 25.
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 60
    np.testing.assert_allclose((~kept).mean(0), (n + 1) / (2 * n), atol=0.02)


def test_draws_follow_seed_and_text_not_the_company() -> None:
    model = classifier("bert")
    alone = task_for(model, [LIME_TEXT]).items[0]
    together = task_for(model, ["good", LIME_TEXT, "the film"]).items[1]
    assert (drawn(100, alone) == drawn(100, together)).all()
    assert (drawn(100, item(0)) != drawn(100, item(1))).any()


def test_weights_are_those_of_the_lime_package() -> None:
    """Their explainer is asked what weights it gave: its own kernel on its own cosine distances."""
    kept = drawn(300)
    package = LimeTextExplainer(kernel_width=7.0)
    data = kept.astype(float)
    norms = np.linalg.norm(data, axis=1) * np.linalg.norm(data[0])
    cosine = np.divide(data @ data[0], norms, out=np.zeros(len(data)), where=norms > 0)
    theirs = package.base.kernel_fn((1 - cosine) * 100)
    np.testing.assert_allclose(proximity(kept, 7.0), theirs, rtol=1e-9, atol=1e-15)


def test_the_lime_package_agrees_on_the_same_draws() -> None:
    """The package's own fit, on our draws and values: all features, its default ridge."""
    kept = drawn(200)
    values = np.random.default_rng(0).random(200)
    explainer = LimeTextExplainer(kernel_width=25.0, random_state=0)
    distances = 100 * (1 - np.sqrt(kept.mean(axis=1)))
    labels = np.stack([1 - values, values], axis=1)
    n = kept.shape[1]
    result: Any = explainer.base.explain_instance_with_data(
        kept.astype(float), labels, distances, 1, n, feature_selection="none"
    )
    theirs = np.zeros(n)
    for feature, weight in result[1]:
        theirs[feature] = weight
    np.testing.assert_allclose(weighted_ridge(kept, values, proximity(kept, 25.0), 1.0), theirs, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 8), st.integers(3, 60), st.floats(0.01, 50), st.integers(0, 10_000))
def test_ridge_is_scikit_learns(n: int, rows: int, penalty: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    kept = generator.random((rows, n)) < 0.6
    values, weights = generator.normal(size=rows), generator.random(rows) + 0.01
    theirs = Ridge(alpha=penalty).fit(kept.astype(float), values, sample_weight=weights).coef_
    np.testing.assert_allclose(weighted_ridge(kept, values, weights, penalty), theirs, atol=1e-8)


def test_ridge_by_hand_on_the_normal_equations() -> None:
    """The intercept as a column of its own with penalty 0: another way to the same minimum."""
    kept = drawn(150)
    values = np.random.default_rng(1).random(150)
    weights = proximity(kept, 25.0)
    columns = np.column_stack([kept.astype(float), np.ones(len(kept))])
    penalty = np.diag([*([2.5] * kept.shape[1]), 0.0])
    solution = np.linalg.solve(columns.T * weights @ columns + penalty, columns.T * weights @ values)
    np.testing.assert_allclose(weighted_ridge(kept, values, weights, 2.5), solution[:-1], atol=1e-9)


def test_equal_texts_are_evaluated_once() -> None:
    (made,) = run("lime", task_for(classifier("bert"), ["good film"]), n_samples=500)
    encoded = task_for(classifier("bert"), ["good film"]).items[0].encoded
    assert made.evaluations <= 2 ** len(encoded.features)


def test_a_text_of_one_word() -> None:
    task = task_for(bag_of_embeddings(), ["funny"])
    assert drawn(5, task.items[0]).tolist() == [[True], *([[False]] * 4)]
    lost = task.masked_values([np.array([[True], [False]])], "mask")[0]
    (made,) = run("lime", task, ridge=0)
    np.testing.assert_allclose(made.scores, [0, lost[0] - lost[1], 0], atol=1e-9)
    assert made.evaluations == 2


@pytest.mark.parametrize("removal", ["mask", "pad", "delete", "hide", "zero", "mean"])
def test_more_draws_settle_on_the_same_map(removal: str) -> None:
    model = classifier("bert")
    maps = [
        run("lime", task_for(model, [LIME_TEXT], seed=s), n_samples=3000, removal=removal)[0].scores for s in (0, 1)
    ]
    assert np.corrcoef(*maps)[0, 1] > 0.98


SHAP_TEXT = "a warm ending"


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_to_exact_at_a_full_budget(family: str) -> None:
    task = task_for(classifier(family, 3), [SHAP_TEXT])
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
