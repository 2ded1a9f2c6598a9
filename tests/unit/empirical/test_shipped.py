"""The empirical explainers that come with the project: current, small, and near the exact maps of another data set."""

from __future__ import annotations

import numpy as np
import pytest

from engine.data.datasets import load
from engine.data.image_datasets import load_images
from engine.empirical.explainer import LOWEST_COST, SHIPPED, preview_explainer
from engine.empirical.ship import PLANS
from engine.empirical.training import GRADIENT, MEAN, MEAN_MAP, EmpiricalPlan
from engine.explain import explain_many
from engine.models import catalog
from engine.request import Picture, Request
from engine.vision.picture import read_view

MOST_BYTES = 60_000
EXAMPLES = 6


def test_each_plan_has_one_and_all_are_small() -> None:
    files = {file.name: file.stat().st_size for file in SHIPPED.iterdir()}
    assert files.keys() == {f"{plan.out}{ending}" for plan in PLANS for ending in (".json", ".safetensors")}
    assert sum(files.values()) < MOST_BYTES


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.out)
def test_it_serves_and_its_card_says_more_than_cheaper_maps(plan: EmpiricalPlan) -> None:
    trained = preview_explainer(plan.model, plan.method, plan.params)
    assert trained is not None
    assert (trained.name, trained.card.command) == (plan.out, plan.command)
    assert trained.why_not(plan.model, catalog.revision(plan.model)) == ""
    card, own = trained.card, (trained.card.OWN, trained.card.OTHER)
    cheaper = {name: one.relative for name, one in card.errors.items() if name not in own}
    assert {MEAN, GRADIENT, LOWEST_COST} <= cheaper.keys()
    assert (MEAN_MAP in cheaper) == (card.kind == "image")
    assert card.expected() < min(cheaper.values())


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


def test_kernel_shap_of_other_pictures_is_predicted_to_be_on_the_object() -> None:
    """The mean score of the object's patches beside that of the others, where the model is right."""
    data, view = load_images("scenes", split="test", limit=20), read_view("scenes-vit")
    requests = [Request("scenes-vit", "empirical", Picture(data[at].pixels), {"of": "kernel_shap"}) for at in range(20)]
    larger = []
    for at, made in enumerate(explain_many(requests)):
        mask = data[at].mask
        assert mask is not None
        if made.prediction.index == data[at].label:
            inside = view.patches(mask)
            larger.append(made.on_grid[inside].mean() > made.on_grid[~inside].mean())
    assert len(larger) > 12
    assert np.mean(larger) > 0.8
