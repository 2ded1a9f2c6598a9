"""The constructed models: equal attributions and opposite behavior, by closed forms, oracles and our own explainers."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine.behavior.impossibility import (
    METHODS,
    PAIRS,
    RADIUS,
    STEEPNESS,
    ReluModel,
    build_twins,
    demonstrate,
    integrated_gradients,
    query_rises,
    shapley_values,
)
from engine.models.text_classifier import TextClassifier
from tests.explaining import run, task_for
from tests.linear import ADAPTER, SPECIAL, WORDS, word_tokenizer

TWINS = [build_twins(np.random.default_rng(seed)) for seed in range(40)]


@pytest.mark.parametrize("method", METHODS)
def test_attributions_of_a_pair_are_equal_and_complete(method: str) -> None:
    for one in TWINS:
        rising, falling = (METHODS[method](model, one.point, one.baseline) for model in (one.rising, one.falling))
        np.testing.assert_allclose(rising, falling, rtol=0, atol=1e-9)
        for model, scores in ((one.rising, rising), (one.falling, falling)):
            ends = model.values(np.stack([one.point, one.baseline]))
            assert scores.sum() == pytest.approx(ends[0] - ends[1], abs=1e-9)


def test_the_behavior_near_the_point_is_opposite() -> None:
    for one in TWINS:
        step = np.eye(len(one.point))[0] * RADIUS * 0.9
        for model, slope in ((one.rising, STEEPNESS), (one.falling, -STEEPNESS)):
            before, at, after = model.values(np.stack([one.point - step, one.point, one.point + step]))
            assert after - at == pytest.approx(slope * step[0])
            assert at - before == pytest.approx(slope * step[0])
        others = np.random.default_rng(0).normal(size=len(one.point) - 1)
        elsewhere = np.concatenate([[0.0], others])[None]
        assert one.rising.values(elsewhere) == pytest.approx(one.falling.values(elsewhere)), "they differ in feature 1"


def test_integrated_gradients_are_those_of_a_fine_sum() -> None:
    for one in TWINS[:5]:
        middles = (np.arange(200_000) + 0.5) / 200_000
        path = one.baseline + middles[:, None] * (one.point - one.baseline)
        active = (path @ one.rising.weights + one.rising.biases > 0).mean(axis=0)
        slopes = one.rising.direct + one.rising.weights @ (one.rising.output * active)
        own = integrated_gradients(one.rising, one.point, one.baseline)
        np.testing.assert_allclose(own, (one.point - one.baseline) * slopes, atol=1e-4)


def test_shapley_values_are_the_mean_over_all_orders() -> None:
    one = TWINS[0]
    expected = np.zeros(len(one.point))
    orders = list(itertools.permutations(range(len(one.point))))
    for order in orders:
        current = one.baseline.copy()
        for feature in order:
            before = one.falling.values(current[None])[0]
            current[feature] = one.point[feature]
            expected[feature] += (one.falling.values(current[None])[0] - before) / len(orders)
    np.testing.assert_allclose(shapley_values(one.falling, one.point, one.baseline), expected, atol=1e-9)


def test_of_a_linear_model_both_are_weight_times_difference() -> None:
    linear = ReluModel(np.zeros((3, 1)), np.zeros(1), np.zeros(1), np.array([1.0, -2.0, 0.5]))
    point, baseline = np.array([1.0, 1.0, 4.0]), np.array([0.0, 0.5, 2.0])
    for attribute in METHODS.values():
        np.testing.assert_allclose(attribute(linear, point, baseline), [1.0, -1.0, 1.0])


def test_no_threshold_has_more_power_than_its_level() -> None:
    for attribute in METHODS.values():
        scores = [
            [round(float(attribute(model, one.point, one.baseline)[0]), 9) for one, model in pairs]
            for pairs in ([(one, one.rising) for one in TWINS], [(one, one.falling) for one in TWINS])
        ]
        rising, falling = map(np.array, scores)
        for threshold in np.linspace(min(rising) - 1, max(rising) + 1, 101):
            power, level = (rising > threshold).mean(), (falling > threshold).mean()
            assert power == level


def test_attributions_guess_and_queries_do_not() -> None:
    found = demonstrate()
    assert [one.accuracy for one in found.methods] == [0.5, 0.5]
    assert found.largest_difference < 1e-9
    accuracies = [one.accuracy for one in found.queries]
    assert accuracies[0] < 0.9 < 0.99 < accuracies[-1]
    assert all(one.interval[0] <= one.accuracy <= one.interval[1] for one in found.queries)
    assert found.as_json()["pairs"] == PAIRS
    assert demonstrate(20, 3).queries != demonstrate(20, 4).queries


def test_a_query_of_a_model_without_other_features_is_always_right() -> None:
    for slope in (0.3, -0.3):
        line = ReluModel(np.zeros((2, 1)), np.zeros(1), np.zeros(1), np.array([slope, 0.0]))
        assert query_rises(line, np.ones(2), 2, np.random.default_rng(0)) is (slope > 0)


class SumOfFeatures(nn.Module):
    """A text model of a `ReluModel`: word i of the vocabulary is feature i, at the value of the point."""

    def __init__(self, model: ReluModel, point: np.ndarray) -> None:
        super().__init__()
        width = len(point)
        table = torch.zeros(len(SPECIAL) + len(WORDS), width, dtype=torch.float64)
        table[len(SPECIAL) : len(SPECIAL) + width] = torch.diag(torch.from_numpy(point))
        self.embedding = nn.Embedding.from_pretrained(table)
        self.hidden = nn.Linear(width, len(model.biases)).double()
        self.direct = nn.Linear(width, 1, bias=False).double()
        self.out = nn.Linear(len(model.biases), 1, bias=False).double()
        self.head = nn.Identity()
        self.hidden.weight.data = torch.from_numpy(model.weights.T.copy())
        self.hidden.bias.data = torch.from_numpy(model.biases)
        self.direct.weight.data = torch.from_numpy(model.direct[None])
        self.out.weight.data = torch.from_numpy(model.output[None])
        self.blocks = nn.ModuleList()
        self.config = SimpleNamespace(hidden_size=width, num_hidden_layers=1, num_attention_heads=1)

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor | None = None) -> Any:
        if attention_mask is not None:
            inputs_embeds = inputs_embeds * (attention_mask[:, 0, 0, :, None] == 0)
        point = inputs_embeds.sum(1)
        return SimpleNamespace(logits=self.direct(point) + self.out(torch.relu(self.hidden(point))))


def text_model(model: ReluModel, point: np.ndarray) -> TextClassifier:
    module = SumOfFeatures(model, point).eval().requires_grad_(False)
    return TextClassifier(
        "twin", "1", module, word_tokenizer(), ADAPTER, ("score",), True, torch.float64, torch.device("cpu")
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "params", "own", "error"),
    [
        ("integrated_gradients", {"baseline": "zero", "steps": "fixed", "n_steps": 1024}, integrated_gradients, 5e-3),
        ("exact_shapley", {"removal": "zero"}, shapley_values, 1e-9),
    ],
)
def test_our_explainers_give_both_models_the_same_scores(method: str, params: Any, own: Any, error: float) -> None:
    for one in TWINS[:4]:
        text = " ".join(WORDS[: len(one.point)])
        models = [text_model(model, one.point) for model in (one.rising, one.falling)]
        scores = []
        for model in models:
            task = task_for(model, [text])
            [made] = run(method, task, **params)
            scores.append(made.scores[task.items[0].encoded.features])
        np.testing.assert_allclose(scores[0], own(one.rising, one.point, one.baseline), atol=error)
        np.testing.assert_allclose(scores[0], scores[1], atol=2 * error)
