"""Disagreement of methods about an example: against scipy, by hand, kept and found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import engine.metrics.disagreement as module
from engine.errors import UsageError
from engine.explain import explain
from engine.metrics.disagreement import QUICK, Disagreement, cached_disagreements, disagreement, disagreements
from engine.request import Example, Request
from tests.explaining import checkpoint
from tests.tiny import CORPUS

pytestmark = pytest.mark.usefixtures("home")

EXAMPLES = [Example(text) for text in CORPUS]


def test_the_same_order_whatever_the_sign_is_no_disagreement() -> None:
    assert disagreement({"a": np.array([1.0, -2.0, 3.0]), "b": np.array([-10.0, 20.0, 30.0])}).value == pytest.approx(0)


def test_the_reversed_order_of_two_is_two() -> None:
    assert disagreement({"a": np.array([1.0, 2.0, 3.0]), "b": np.array([3.0, 2.0, 1.0])}).value == pytest.approx(2)


def test_a_map_without_order_is_left_out_and_named() -> None:
    maps = {"a": np.array([1.0, 2.0, 3.0]), "flat": np.array([2.0, -2.0, 2.0]), "b": np.array([1.0, 3.0, 2.0])}
    found = disagreement(maps)
    assert found.left_out == ("flat",)
    assert found.value == pytest.approx(0.5)
    assert disagreement({"a": np.array([1.0, 2.0]), "flat": np.zeros(2)}) == Disagreement(None, ("flat",))
    assert disagreement({"a": np.array([1.0]), "b": np.array([4.0])}) == Disagreement(None, ("a", "b"))


def test_it_is_one_minus_the_mean_rho_of_scipy_over_the_maps_that_pages_show() -> None:
    model = str(checkpoint("bert", 3))
    for example, found in zip(EXAMPLES, disagreements(model, EXAMPLES), strict=True):
        made = [explain(Request(model, method, example)) for method in QUICK]
        assert all(one.cached for one in made), "the pages find what was compared"
        maps = [np.abs(one.scores[one.features]) for one in made]
        rhos = [stats.spearmanr(a, b).statistic for a, b in itertools.combinations(maps, 2)]
        assert found.value == pytest.approx(1 - np.mean(rhos), abs=1e-9)
        assert found.left_out == ()


def test_what_is_there_is_found_and_explains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, methods = str(checkpoint("bert")), ("gradient_l2", "attention_rollout")
    asked: list[int] = []
    real = module.explain_many
    monkeypatch.setattr(module, "explain_many", lambda requests: asked.append(len(requests)) or real(requests))
    assert cached_disagreements(model, EXAMPLES, methods) == [None] * len(EXAMPLES)
    assert asked == []
    first = disagreements(model, EXAMPLES[:2], methods)
    assert cached_disagreements(model, EXAMPLES, methods) == [*first, *[None] * (len(EXAMPLES) - 2)]
    assert asked == [4]
    again = disagreements(model, [*EXAMPLES, EXAMPLES[0]], methods)
    assert asked == [4, 2 * (len(EXAMPLES) - 2)]
    assert again[:2] == first
    assert again[-1] == first[0]
    assert cached_disagreements(model, EXAMPLES[:1], methods[::-1]) == first[:1], "the order of methods says nothing"
    assert cached_disagreements(model, EXAMPLES[:1], ("gradient_l2", "gradient")) == [None]


@pytest.mark.parametrize("methods", [(), ("gradient",), ("gradient", "gradient")])
def test_one_method_agrees_with_nobody(methods: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="methods: must be at least two different methods"):
        disagreements(str(checkpoint("bert")), EXAMPLES, methods)


def test_an_ensemble_and_an_unknown_method_are_refused() -> None:
    with pytest.raises(UsageError, match="no ensembles of others, got 'ensemble_all'"):
        disagreements(str(checkpoint("bert")), EXAMPLES, ("gradient", "ensemble_all"))
    with pytest.raises(UsageError, match="Did you mean 'gradient'"):
        disagreements(str(checkpoint("bert")), EXAMPLES, ("gradiant", "occlusion"))
