"""The aggregates of Bhatt et al. (2020): what each of them promises."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.explain import versions_of
from engine.explainers import shapley
from engine.explainers.ensemble import ANTECEDENTS, aggregate_by_walks, fixed_neighbors, walk_down, weighted_mean
from engine.metrics.sensitivity import (
    RADII,
    MovedText,
    classifier_of_neighbors,
    complexity,
    distance,
    move,
    sensitivities,
)
from engine.registry import EXPLAINERS, TOP_THREE, explainer
from engine.request import Example, Request
from engine.result import Check
from engine.task import Attribution, Task, TaskItem
from tests.explaining import checkpoint, classifier, run, task_for
from tests.linear import bag_of_embeddings

TEXTS = ["warm and funny", "never worth it"]
scores = arrays(float, 5, elements=st.floats(-1, 1).map(lambda value: round(value, 3)))


def scaled(one: np.ndarray) -> np.ndarray:
    return one / np.abs(one).sum()


MAPS = st.lists(scores.filter(lambda one: np.abs(one).sum() > 0.01).map(scaled), min_size=2, max_size=4)


@given(MAPS)
def test_the_aggregate_is_at_most_as_complex_as_each_member(maps: list[np.ndarray]) -> None:
    aggregate, check = aggregate_by_walks(maps)
    lowest = min(complexity(one) or 0.0 for one in maps)
    assert (complexity(aggregate) or 0.0) <= lowest + 1e-7
    assert check is not None
    assert check.ok
    low, high = np.min(maps, axis=0), np.max(maps, axis=0)
    assert (aggregate >= low - 1e-12).all()
    assert (aggregate <= high + 1e-12).all(), "every score lies between those of the members"


def test_the_papers_example_keeps_the_entropy_that_the_mean_would_raise() -> None:
    """[1, 0] and [0, 1] have entropy 0, their mean log 2."""
    maps = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    assert complexity(np.mean(maps, axis=0)) == pytest.approx(math.log(2))
    aggregate, _ = aggregate_by_walks(maps)
    assert complexity(aggregate) == 0


def test_members_that_disagree_in_sign_can_cancel() -> None:
    """Toward the mean [0.5, 0] the second score falls to 0 and takes its entropy with it."""
    aggregate, _ = aggregate_by_walks([np.array([0.5, 0.5]), np.array([0.5, -0.5])])
    np.testing.assert_allclose(aggregate, [0.5, 0], atol=1e-12)


def test_one_map_among_equals_stays() -> None:
    one = scaled(np.array([1.0, -2.0, 3.0]))
    aggregate, _ = aggregate_by_walks([one, one, one])
    np.testing.assert_allclose(aggregate, one)


@given(MAPS)
def test_a_walk_never_rises(maps: list[np.ndarray]) -> None:
    start, end = maps[0], maps[1]
    assert (complexity(walk_down(start, end)) or 0.0) <= (complexity(start) or 0.0) + 1e-7


def test_flat_members_are_left_out() -> None:
    task = task_for(bag_of_embeddings(), ["never worth it"])
    of = {"lime": [0, 1, 1, -2, 0], "kernel_shap": [0] * 5, "integrated_gradients": [0, 0, 3, 1, 0]}
    members = dataclasses.replace(task, explain_with=lambda m: [Attribution(np.array(of[m], dtype=float), 2)])
    [made] = run("least_complex", members)
    assert made.notes == ("Left out, because all their scores are zero: kernel_shap.",)
    assert made.evaluations == 2 * len(TOP_THREE)
    none = dataclasses.replace(task, explain_with=lambda _: [Attribution(np.zeros(5), 2)])
    [made] = run("least_complex", none)
    assert not made.scores.any()
    assert made.check is None


def neighbors(task: Task, count: int) -> list[Task]:
    """A task for the neighbors of each item."""
    model = classifier_of_neighbors(task.model)
    return [
        Task(
            model,
            [
                TaskItem(move(task.model, item.encoded, i, RADII["text"], ANTECEDENTS), item.prediction, item.target, 0)
                for i in range(count)
            ],
        )
        for item in task.items
    ]


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_the_aggregate_has_the_shapley_values_of_the_mean_game(family: str) -> None:
    """By linearity: exactly, from all coalitions of the game that is the weighted mean of the neighbors' games."""
    task = task_for(classifier(family, 3), TEXTS)
    made = run("least_sensitive", task, n_neighbors=4, n_samples=4096)
    for item, own, attribution in zip(task.items, neighbors(task, 4), made, strict=True):
        weights = np.array([1 / distance(item.encoded, near.encoded) for near in own.items])

        def game(keep: np.ndarray, own: Task = own, weights: np.ndarray = weights) -> np.ndarray:
            return weights / weights.sum() @ np.stack(own.masked_values([keep] * 4, "mask"))

        expected = shapley.exact(len(item.encoded.features), game)
        np.testing.assert_allclose(attribution.scores[item.encoded.features], expected, atol=1e-6)
        assert attribution.check is not None
        assert attribution.check.ok


def test_near_neighbors_weigh_more() -> None:
    def one(value: float) -> Attribution:
        return Attribution(np.array([value, 0.0]), 3, Check("additivity gap", value / 1e9, 1e-6), ("few samples",))

    mean = weighted_mean([one(1.0), one(4.0)], [1 / 0.5, 1 / 1.0])
    np.testing.assert_allclose(mean.scores, [2.0, 0])
    assert mean.evaluations == 6
    assert mean.check is not None
    assert mean.check.value == pytest.approx(2e-9)
    assert mean.notes == ("few samples",)


def test_it_is_far_less_sensitive_than_the_values_that_it_averages(home: Path) -> None:
    """By the project's metric, which moves the input and draws each method anew."""
    model, example = str(checkpoint("bert", 3)), Example("although the plot drags the ending is warm")
    aggregate, alone = sensitivities(
        [Request(model, method, example, {"n_samples": 64}) for method in ("least_sensitive", "kernel_shap")], samples=3
    )
    assert aggregate.value is not None
    assert alone.value is not None
    assert 0 < aggregate.value < alone.value / 5


def test_the_neighbors_of_a_moved_text_stay() -> None:
    model = classifier("bert", 3)
    encoded = model.encode(Example(TEXTS[0]))
    moved = cast(MovedText, move(model, encoded, 0, 1.0))
    own, same = (fixed_neighbors(classifier_of_neighbors(model), one, 3) for one in (encoded, moved))
    for one, other in zip(own, same, strict=True):
        assert distance(one, other) == 0
        assert distance(moved, other) > distance(encoded, one) > 0


def test_the_key_of_the_least_sensitive_knows_the_version_of_shap(monkeypatch: pytest.MonkeyPatch) -> None:
    shap, own = explainer("kernel_shap"), explainer("least_sensitive")
    assert versions_of(own) == [own.version, shap.version]
    monkeypatch.setitem(EXPLAINERS["text"], "kernel_shap", dataclasses.replace(shap, version=shap.version + 1))
    assert versions_of(own) == [own.version, shap.version + 1]
    assert versions_of(explainer("lime")) == [explainer("lime").version], "the keys of others stay"
