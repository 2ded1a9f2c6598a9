"""Which views make sense, and what the others need."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.evaluation.groups import Sizes
from engine.evaluation.result import Evaluation
from engine.evaluation.views import (
    VIEWS,
    ViewContext,
    cost_metrics,
    faithfulness_metrics,
    plausibility_metrics,
    quality_metrics,
)
from engine.models.summary import ModelSize
from tests.unit.evaluation.by_hand import by_hand, fact

ALL = ("comprehensiveness", "without_top", "plausibility_auc", "truth_mass", "evaluations", "seconds")
ONE: Sizes = {"m": ModelSize(1_000, 2, 2, "BERT")}
FOUR: Sizes = {**ONE, "w": ModelSize(2_000, 4, 2, "BERT"), "v": ModelSize(1_500, 2, 2, "T5")}


def evaluated(metrics: Sequence[str] = ALL, dataset: str = "reviews-marked") -> Evaluation:
    return by_hand({("m", "lime", metrics[0]): [1.0]}, [fact(0)], dataset, metrics[1:])


def reasons(found: Evaluation, beside: ViewContext | None = None) -> dict[str, str]:
    each = {id: view.obstacle(found, beside or ViewContext()) for id, view in VIEWS.items()}
    return {id: why for id, why in each.items() if why is not None}


def test_all_views_make_sense_where_all_is_measured() -> None:
    assert reasons(evaluated(), ViewContext(FOUR, strengths=3)) == {}
    assert list(VIEWS) == ["curves", "plausibility", "cost", "scaling", "architecture", "slices", "strength"]
    for one in VIEWS.values():
        assert one.question.endswith("?")
        assert one.about.endswith(".")


@pytest.mark.parametrize(
    ("metrics", "view", "words"),
    [
        (["complexity"], "curves", "evaluate without_top or with_top"),
        (["complexity"], "cost", "evaluate evaluations or seconds"),
        (["seconds"], "cost", "Only costs were measured"),
        (["comprehensiveness"], "plausibility", "use a data set with rationales"),
        (["plausibility_auc"], "plausibility", "evaluate comprehensiveness or sufficiency"),
        (["without_top"], "slices", "one value per example"),
        (["comprehensiveness"], "strength", "It needs the metric truth_mass"),
    ],
)
def test_what_was_not_measured_is_named(metrics: list[str], view: str, words: str) -> None:
    assert words in reasons(evaluated(metrics), ViewContext(FOUR, strengths=3))[view]


def test_views_of_several_models_say_which_there_are() -> None:
    why = reasons(evaluated(), ViewContext(ONE, strengths=2))
    assert why == {
        "scaling": "It needs one architecture in two sizes, and has BERT with 1,000 parameters: "
        "add a larger or smaller model of it.",
        "architecture": "It needs models of two architectures, and has BERT with 1,000 parameters: "
        "add a model of another one.",
    }
    assert "has no model of known size" in reasons(evaluated())["scaling"]


def test_the_view_of_strength_needs_a_marked_set_in_several_strengths() -> None:
    assert "evaluate on reviews-marked or scenes-marked" in reasons(evaluated(dataset="reviews"))["strength"]
    assert "several strengths" in reasons(evaluated())["strength"]


def test_metrics_are_told_apart_by_what_they_measure() -> None:
    found = evaluated()
    assert faithfulness_metrics(found) == ["comprehensiveness"]
    assert plausibility_metrics(found) == ["plausibility_auc", "truth_mass"]
    assert cost_metrics(found) == ["evaluations", "seconds"]
    assert quality_metrics(found) == ["comprehensiveness", "plausibility_auc", "truth_mass"]
    nothing = by_hand({("m", "lime", "complexity"): ["broken"]})
    assert reasons(nothing)["slices"].startswith("No example could be explained")
