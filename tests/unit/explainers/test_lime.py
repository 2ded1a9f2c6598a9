"""LIME: its draws, its weights and its regression, against the lime package and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lime.lime_text import LimeTextExplainer
from sklearn.linear_model import Ridge

from engine.explainers.perturbation import draw_samples, proximity, weighted_ridge
from engine.task import Item
from tests.explaining import classifier, run, task_for
from tests.linear import bag_of_embeddings

TEXT = "although the plot drags, the ending is warm and funny"


def item(seed: int = 0) -> Item:
    return task_for(classifier("bert"), [TEXT], seed=seed).items[0]


def drawn(count: int, of: Item | None = None) -> np.ndarray:
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
    # Chi-squared with n - 1 degrees of freedom, 99.99 %: below 60 for n <= 25.
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 60
    np.testing.assert_allclose((~kept).mean(0), (n + 1) / (2 * n), atol=0.02)


def test_draws_follow_seed_and_text_not_the_company() -> None:
    model = classifier("bert")
    alone = task_for(model, [TEXT]).items[0]
    together = task_for(model, ["good", TEXT, "the film"]).items[1]
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
    maps = [run("lime", task_for(model, [TEXT], seed=s), n_samples=3000, removal=removal)[0].scores for s in (0, 1)]
    assert np.corrcoef(*maps)[0, 1] > 0.98
