"""The empirical explainers that come with the project: current, small, and near the exact maps of another data set."""

from __future__ import annotations

import numpy as np
import pytest

from engine.data.datasets import load
from engine.empirical.explainer import LOWEST_COST, SHIPPED, preview_explainer
from engine.empirical.ship import PLANS
from engine.empirical.training import GRADIENT, EmpiricalPlan
from engine.explain import explain_many
from engine.models import catalog
from engine.request import Request

MOST_BYTES = 60_000
EXAMPLES = 6


def test_each_plan_has_one_and_all_are_small() -> None:
    files = {file.name: file.stat().st_size for file in SHIPPED.iterdir()}
    assert files.keys() == {f"{plan.out}{ending}" for plan in PLANS for ending in (".json", ".safetensors")}
    assert sum(files.values()) < MOST_BYTES


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.method)
def test_it_serves_and_its_card_says_more_than_cheaper_maps(plan: EmpiricalPlan) -> None:
    trained = preview_explainer(plan.model, plan.method, plan.params)
    assert trained is not None
    assert (trained.name, trained.card.command) == (plan.out, plan.command)
    assert trained.why_not(plan.model, catalog.revision(plan.model)) == ""
    errors = {name: one.relative for name, one in trained.card.errors.items()}
    assert trained.card.expected() < min(errors[GRADIENT], errors[LOWEST_COST])


def test_integrated_gradients_of_other_texts_are_predicted_better_than_by_nothing() -> None:
    """The relative squared error on short hand-written reviews, none of which it was trained on."""
    model, method = PLANS[1].model, PLANS[1].method
    data = load("reviews")
    texts = sorted((data[index].example for index in range(60)), key=lambda one: one.length)[:EXAMPLES]
    exact = explain_many([Request(model, method, one) for one in texts])
    made = explain_many([Request(model, "empirical", one, {"of": method}) for one in texts])
    pairs = [(one.scores[one.features], two.scores[two.features]) for one, two in zip(exact, made, strict=True)]
    error = sum(float(((one - two) ** 2).sum()) for one, two in pairs) / sum(float((one**2).sum()) for one, _ in pairs)
    assert error < 0.8
    assert np.mean([np.corrcoef(one, two)[0, 1] for one, two in pairs]) > 0.4
