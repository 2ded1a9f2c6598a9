"""Integrated gradients: rules of integration, completeness, Captum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients

from engine.explainers.path import GAP_LIMIT, MOST_STEPS
from engine.explainers.quadrature import RULES, nodes
from engine.operators import BASELINES
from tests.explaining import classifier, logit_of, run, task_for
from tests.linear import bag_of_embeddings
from tests.tiny import FAMILIES

TEXTS = ["the ending is warm", "not worth the price: the battery died", "good food, bad service, lovely view"]


def test_nodes_and_weights_by_hand() -> None:
    root = np.sqrt(3 / 5) / 2
    by_hand = {
        ("gauss_legendre", 1): ([0.5], [1]),
        ("gauss_legendre", 3): ([0.5 - root, 0.5, 0.5 + root], [5 / 18, 8 / 18, 5 / 18]),
        ("trapezoid", 2): ([0, 1], [1 / 2, 1 / 2]),
        ("trapezoid", 5): ([0, 1 / 4, 1 / 2, 3 / 4, 1], [1 / 8, 1 / 4, 1 / 4, 1 / 4, 1 / 8]),
        ("clenshaw_curtis", 2): ([0, 1], [1 / 2, 1 / 2]),
        ("clenshaw_curtis", 3): ([0, 1 / 2, 1], [1 / 6, 4 / 6, 1 / 6]),  # Simpson's rule
        ("clenshaw_curtis", 4): ([0, 1 / 4, 3 / 4, 1], [1 / 18, 8 / 18, 8 / 18, 1 / 18]),
        ("riemann", 4): ([1 / 4, 1 / 2, 3 / 4, 1], [1 / 4] * 4),
        ("riemann", 1): ([1], [1]),
        ("trapezoid", 1): ([1], [1]),
    }
    for (rule, n), (places, weights) in by_hand.items():
        np.testing.assert_allclose(nodes(rule, n)[0], places, atol=1e-14, err_msg=rule)
        np.testing.assert_allclose(nodes(rule, n)[1], weights, atol=1e-14, err_msg=rule)


@pytest.mark.parametrize(
    ("rule", "n", "degree"),
    [("gauss_legendre", 4, 7), ("clenshaw_curtis", 5, 5), ("trapezoid", 4, 1), ("riemann", 4, 0)],
)
def test_rules_are_exact_for_polynomials_up_to_their_degree(rule: str, n: int, degree: int) -> None:
    places, weights = nodes(rule, n)
    errors = [abs(weights @ places**power - 1 / (power + 1)) for power in range(degree + 2)]
    assert max(errors[: degree + 1]) < 1e-14
    assert errors[-1] > 1e-6, "and no further"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [1, 2, 7, 64, 1024])
def test_weights_sum_to_one_inside_the_path(rule: str, n: int) -> None:
    places, weights = nodes(rule, n)
    assert len(places) == len(weights) == n
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert places.min() >= 0
    assert places.max() <= 1
    assert (np.diff(places) > 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_auto_is_under_one_percent_or_says_so_and_the_gap_is_true(family: str) -> None:
    """DistilBERT's head has ReLU kinks: where the logit hardly changes, no number of steps brings them under 1 %."""
    model = classifier(family, 3)
    task = task_for(model, TEXTS)
    for text, item, made in zip(TEXTS, task.items, run("integrated_gradients", task), strict=True):
        f, x = logit_of(model, text, item.target)
        start = x.clone()
        start[0, item.encoded.features] = model.embedding.weight[model.mask_id]
        with torch.no_grad():
            change = float(f(x) - f(start))
        gap = abs(made.scores.sum() - change) / max(abs(change), 1e-3)
        assert made.check is not None
        assert made.check.value == pytest.approx(gap, abs=2e-3)
        assert abs(made.scores.sum() - change) < max(GAP_LIMIT * abs(change), 1e-3)
        assert made.check.ok or (made.evaluations == MOST_STEPS and "completeness gap is" in made.notes[0])
        assert made.check.ok or (family == "distilbert" and abs(change) < 0.05)
        assert not made.scores[item.encoded.special].any()


def test_a_gap_that_stays_is_said() -> None:
    (made,) = run("integrated_gradients", task_for(classifier("t5", 3), TEXTS[:1]), steps="fixed", n_steps=1)
    assert made.check is not None
    assert not made.check.ok
    assert "completeness gap is" in made.notes[0]
    assert made.evaluations == 2, "the one node and the start"


def test_steps_are_doubled_only_for_those_who_need_it() -> None:
    model = bag_of_embeddings()
    assert [a.evaluations for a in run("integrated_gradients", task_for(model, TEXTS))] == [9] * 3
    rough = task_for(classifier("t5", 3), TEXTS)
    spent = [a.evaluations for a in run("integrated_gradients", rough)]
    assert all(s in {8 * 2**k + 1 for k in range(8)} for s in spent), spent
    assert max(spent) > 9


def test_a_doubling_keeps_what_it_has() -> None:
    for n in (9, 17, 513):
        few, many = nodes("clenshaw_curtis", n)[0], nodes("clenshaw_curtis", 2 * n - 1)[0]
        assert set(few.tolist()) < set(many.tolist())


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize(
    ("rule", "theirs", "factor"),
    [
        ("gauss_legendre", "gausslegendre", 1),
        ("riemann", "riemann_right", 1),
        # Captum's trapezoid weights sum to (n - 1) / n, ours to 1.
        ("trapezoid", "riemann_trapezoid", 10 / 9),
    ],
)
def test_against_captum(rule: str, theirs: str, factor: float, baseline: str) -> None:
    model = classifier("bert", 3)
    task = task_for(model, TEXTS[:1], target=1)
    f, x = logit_of(model, TEXTS[0], 1)
    weight = model.embedding.weight
    stand_in = {
        "mask": weight[model.tokenizer.mask_token_id],
        "pad": weight[model.tokenizer.pad_token_id],
        "zero": torch.zeros_like(weight[0]),
        "mean": weight.mean(0),
    }[baseline]
    start = x.clone()
    start[0, task.items[0].encoded.features] = stand_in
    expected = IntegratedGradients(f).attribute(x, start, n_steps=10, method=theirs)[0].sum(-1) * factor
    (made,) = run("integrated_gradients", task, baseline=baseline, quadrature=rule, steps="fixed", n_steps=10)
    np.testing.assert_allclose(made.scores, expected.detach(), atol=1e-6)  # Captum's places are float32


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_stays_near(dtype: str) -> None:
    wide, half = (task_for(classifier("bert", 3, d), TEXTS[:1], target=1) for d in ("float64", dtype))
    (exact,), (rough,) = (run("integrated_gradients", t, steps="fixed", n_steps=20) for t in (wide, half))
    assert np.corrcoef(exact.scores, rough.scores)[0, 1] > 0.98
