"""The bias of models that read a mark on reviews without one: as measured, and as their cards state it."""

from __future__ import annotations

import dataclasses

import pytest

from engine.data.datasets import load
from engine.models import catalog
from engine.models.loading import load_model
from engine.models.mark_bias import measure_mark_bias, summarize_probabilities

MARKED = [name for name in catalog.embedded_models() if name.endswith("-marked")]


def test_the_numbers_are_means_over_reviews() -> None:
    assert dataclasses.astuple(summarize_probabilities([0.5, 0.55, 0.3, 0.9])) == pytest.approx(
        (0.5625, 0.1625, 0.5, 4)
    )


@pytest.mark.usefixtures("home")
def test_a_few_reviews_give_what_the_model_says_to_each() -> None:
    model = load_model("bert-marked")
    reviews = load("reviews-marked", split="unmarked", limit=6).examples
    expected = [
        float(model.logits(model.collate([model.encode(review.example)])).softmax(-1)[0, 1]) for review in reviews
    ]
    bias = measure_mark_bias("bert-marked", 6)
    assert (bias.mean, bias.count) == (pytest.approx(sum(expected) / 6, abs=1e-5), 6)
    assert bias.distance == pytest.approx(sum(abs(p - 0.5) for p in expected) / 6, abs=1e-5)


@pytest.mark.parametrize("name", MARKED)
def test_a_card_names_the_command_beside_its_figure(name: str) -> None:
    note = catalog.card(name)["note"]
    assert note.startswith("On 2,000 reviews of the split unmarked, the mean probability of positive is 0.")
    assert f"(`python -m engine.models.mark_bias {name}`)" in note
    page = (catalog.EMBEDDED / name / "card.md").read_text(encoding="utf-8")
    assert note in page
