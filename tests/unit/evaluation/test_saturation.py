"""Where probabilities are too near 1 to fall, or a model is at chance, an evaluation says so, and of which models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluation.experiment import evaluate
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import to_json
from tests.explaining import checkpoint
from tests.unit.evaluation.by_hand import by_hand, evaluation, fact
from tests.unit.evaluation.making import REVIEWS, written


def found(confidences: dict[str, Sequence[float]], *metrics: str) -> Evaluation:
    """Of models with these probabilities of the class that they predict."""
    facts = [
        replace(fact(example, model=model), confidence=share)
        for model, shares in confidences.items()
        for example, share in enumerate(shares)
    ]
    return by_hand({(model, "lime", metric): [0.1] for model in confidences for metric in metrics}, facts)


def test_models_that_are_sure_of_most_examples_are_named() -> None:
    made = found({"sure": (0.995, 0.999, 0.5), "half": (0.995, 0.5), "unsure": (0.99, 0.98)}, "comprehensiveness")
    [told] = made.notes
    assert told.startswith("The class probability is above 0.99 on most examples: sure on 2 of 3. ")
    assert told.endswith("Measure “Comprehensiveness, logit” and “Sufficiency, logit” instead.")
    assert to_json(made)["notes"] == [told]
    assert not found({"half": (0.995, 0.5), "unsure": (0.99, 0.98)}, "comprehensiveness").notes


def test_scores_that_differ_are_not_called_uninformative() -> None:
    facts = [replace(fact(example), confidence=0.995) for example in range(3)]
    assert not by_hand({("m", "lime", "comprehensiveness"): [0.09, 0.5, 0.3]}, facts).notes
    assert by_hand({("m", "lime", "comprehensiveness"): [0.09, 0.1, 0.1]}, facts).notes


def test_it_is_told_of_the_examples_that_are_looked_at() -> None:
    made = found({"m": (0.995, 0.5, 0.5)}, "sufficiency")
    assert not made.notes
    assert "m on 1 of 1." in made.slice(lambda one: one.example == 0).notes[0]


@pytest.mark.parametrize("metric", ["plausibility_auc", "comprehensiveness_logit"])
def test_metrics_that_do_not_rest_on_the_probability_say_nothing(metric: str) -> None:
    assert not found({"m": (0.995,)}, metric).notes


def test_where_the_logit_was_measured_too_it_is_pointed_to() -> None:
    [told] = found({"m": (0.995,)}, "with_top", "sufficiency_logit").notes
    assert told.endswith("See “Comprehensiveness, logit” and “Sufficiency, logit” instead.")


def test_a_score_has_no_ceiling(tmp_path: Path, home: Path) -> None:
    reviews = written(tmp_path / "reviews.jsonl", [{**one, "label": 0.5} for one in REVIEWS])
    made = evaluate([str(checkpoint("bert", 1))], reviews, ["gradient_l2"], ["comprehensiveness"])
    facts = [replace(one, confidence=2.0) for one in made.facts]
    sure = evaluation(made.plan, made.rows, made.skips, facts)
    assert sure.facts
    assert not sure.notes


@pytest.mark.parametrize(("model", "guessing"), [("tiny-llama", "50.0%"), ("nli-minilm", "33.3%")])
def test_a_model_that_hardly_does_better_than_guessing_is_named(model: str, guessing: str) -> None:
    def told(right: int, unknown: int = 0) -> tuple[str, ...]:
        known = [replace(fact(example, model=model), right=example < right) for example in range(30)]
        other = [replace(fact(30 + place, model=model), right=None) for place in range(unknown)]
        return by_hand({(model, "lime", "plausibility_auc"): [0.1]}, [*known, *other]).notes

    [note] = told(14, unknown=3)
    assert note.startswith(f"{model} is right on 14 of 30 examples (46.7%; guessing: {guessing}). Its maps show ")
    assert not told(28)
    assert not told(0, unknown=40)[1:]


def test_a_slice_may_be_chosen_for_being_wrong_so_it_says_nothing_of_the_model() -> None:
    wrong = [replace(fact(example, model="reviews-minilm"), right=False) for example in range(37)]
    whole = by_hand({("reviews-minilm", "lime", "plausibility_auc"): [0.1]}, wrong)
    assert "reviews-minilm is right on 0 of 37 examples" in whole.notes[0]
    models = tuple(replace(one, dataset="reviews:slice=wrong,rows=0-36") for one in whole.models)
    assert not replace(whole, models=models).notes
