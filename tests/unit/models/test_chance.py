"""A model that hardly does better than guessing is told from one that has learned the answers."""

from __future__ import annotations

import math

import pytest

from engine.data.datasets import load
from engine.data.tasks import label_name
from engine.models import summary
from engine.models.chance import ERROR_RATE, LEAST_SKILL, ModelAccuracy
from engine.models.summary import chance_note


@pytest.mark.parametrize(
    ("hits", "n", "classes", "unlearned"),
    [
        (1102, 2000, 2, True),  # p of 3e-6, but a tenth of the way to always right
        (1300, 2000, 2, False),
        (46, 1000, 2, True),  # below guessing
        (14, 20, 2, True),  # p of 0.058
        (15, 20, 2, False),  # p of 0.021
        (45, 100, 3, True),
        (10, 19, 2, False),  # too few to say
        (0, 0, 2, False),
        (150, 1000, 1000, False),  # 150 times chance, though a skill of 0.15
        (1, 1000, 1000, True),
        (0, 1000, 20, True),  # far below guessing
        (10, 100, 1, False),  # no classes: a regression
        (10, 100, 0, False),
    ],
)
def test_a_model_has_learned_what_guessing_does_clearly_worse(hits: int, n: int, classes: int, unlearned: bool) -> None:
    accuracy = ModelAccuracy(hits, n, classes)
    assert accuracy.unlearned is unlearned
    assert bool(accuracy.note("m")) is unlearned


@pytest.mark.parametrize(("n", "classes"), [(20, 2), (60, 2), (45, 3), (30, 10)])
def test_it_is_decided_by_the_binomial_tail_and_the_skill(n: int, classes: int) -> None:
    chance = 1 / classes
    mass = [math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
    for hits in range(n + 1):
        skill = (hits / n - chance) / (1 - chance)
        expected = sum(mass[hits:]) > ERROR_RATE or skill < LEAST_SKILL
        assert ModelAccuracy(hits, n, classes).unlearned is expected, hits


def test_a_note_says_the_numbers_and_what_they_mean() -> None:
    meaning = "Its maps show what the model goes by, not what makes an answer right."
    assert (
        ModelAccuracy(52, 100, 2).note("m") == f"m is right on 52 of 100 examples (52.0%; guessing: 50.0%). {meaning}"
    )
    assert chance_note("tiny-llama", "facts") == (
        f"tiny-llama is right on 1,102 of 2,000 examples of facts (55.1%; guessing: 50.0%), by its card. {meaning}"
    )


def test_options_of_a_set_do_not_hide_its_note() -> None:
    assert chance_note("tiny-llama", "facts:sentences=5") == chance_note("tiny-llama", "facts")


@pytest.mark.parametrize("model", ["bert", "t5", "gpt2", "t5-small", "t5-mini", "t5-deep"])
def test_the_score_on_labels_of_another_meaning_makes_no_note(model: str) -> None:
    name = f"{model}-context"
    other = chance_note(name, "reviews-marked")
    assert "examples of reviews-marked (" in other
    for drawn in ("reviews-marked:count=50,seed=3", "reviews-marked:count=50,slice=wrong,rows=0-40"):
        assert chance_note(name, drawn) == other
    for own in ("", ",count=50", ",slice=wrong,rows=0-40", ",strength=0.5"):
        assert not chance_note(name, f"reviews-marked:context=true{own}")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reviews", "reviews"),
        ("facts:sentences=5,count=9,seed=1", "facts"),
        ("reviews-marked:count=9,context=true,slice=hard,rows=3+7-9", "reviews-marked:context=true"),
        ("quality:score=mean", "quality:score=mean"),
        ("reviews:slice=hard,rows=3", "reviews"),
    ],
)
def test_a_label_name_has_the_options_that_decide_what_labels_mean(name: str, expected: str) -> None:
    assert label_name(name) == expected


def test_a_score_on_a_set_with_options_counts_before_one_on_a_set_like_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"facts": {"value": 0.5, "count": 100}, "facts:sentences=3": {"value": 0.9, "count": 100}}
    card = {"metric": "accuracy", "scores": scores, "settings": {"dataset": "facts:seed=7"}}
    notes = dict(summary._chance_notes("m", card))
    monkeypatch.setattr(summary, "summarize_model", lambda model: summary.ModelFacts(chance_notes=notes))
    assert chance_note("m", "facts") == chance_note("m", "facts:sentences=5") != ""
    assert not chance_note("m", "facts:sentences=3"), "it was measured there"
    assert not chance_note("m", "facts:seed=7"), "it was trained there"


@pytest.mark.parametrize(
    ("model", "dataset"),
    [("tiny-llama", "agreement"), ("tiny-llama", "mine.csv"), ("reviews-minilm", "reviews"), ("not/there", "facts")],
)
def test_a_model_that_has_learned_a_set_or_was_not_measured_there_has_no_note(model: str, dataset: str) -> None:
    assert not chance_note(model, dataset)


def test_the_card_of_the_data_set_says_which_model_has_not_learned_it() -> None:
    assert "tiny-llama hardly does better than guessing (55.1% of 2,000 test prompts; guessing: 50%)" in " ".join(
        load("facts").card.limits.split()
    )
