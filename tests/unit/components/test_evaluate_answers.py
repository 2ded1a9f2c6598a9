"""The answers above the charts of an evaluation, on values whose differences are known beforehand."""

from __future__ import annotations

import re
from html import unescape

import pytest

from components.evaluate.answers import (
    ONE_TRAINING,
    TOO_FEW,
    architecture_answer,
    best_answer,
    cost_answer,
    curves_answer,
    plausibility_answer,
    scaling_answer,
    slices_answer,
    strength_answer,
)
from components.evaluate.view import OVER_DATA
from engine.evaluation.groups import GradedScore, split
from engine.metrics.results import MetricScore
from engine.models.summary import ModelSize
from tests.unit.components.test_evaluate_summary import SWING, TITLES, around
from tests.unit.evaluation.by_hand import by_hand, fact

SIZES = {"small": ModelSize(1000, 1, 2, "T5"), "large": ModelSize(9000, 2, 2, "T5")}


def plain(html: str) -> str:
    return unescape(re.sub("<[^>]+>", "", html))


def test_a_removal_curve_is_answered_by_the_mean_over_it() -> None:
    found = by_hand({("m", "lime", "comprehensiveness"): around(0.5), ("m", "random", "comprehensiveness"): [0.1] * 10})
    answer = plain(curves_answer(found, "m", "without_top", TITLES, None))
    assert answer == plain(best_answer(found, "m", "comprehensiveness", TITLES, None))
    assert answer.startswith("Comprehensiveness on m (10 examples): LIME is best (0.500, 95% interval 0.49")
    assert answer.endswith("Every other method is significantly better than Random.")
    assert "Sufficiency" in plain(curves_answer(found, "m", "with_top", TITLES, None))
    assert "was not measured" in curves_answer(found, "m", "with_top", TITLES, None)


def test_only_drawn_methods_are_named() -> None:
    found = by_hand({
        ("m", method, "comprehensiveness"): around(mean)
        for method, mean in {"lime": 0.5, "gradient": 0.4, "occlusion": 0.3, "random": 0.1}.items()
    })  # fmt: skip
    answer = plain(best_answer(found, "m", "comprehensiveness", TITLES, ("gradient", "occlusion")))
    assert "Gradient is best" in answer
    assert "LIME" not in answer


@pytest.mark.parametrize(("flip", "words"), [(1, "do better by the other"), (-1, "do worse by the other")])
def test_two_metrics_that_rank_methods_alike_or_in_reverse(flip: int, words: str) -> None:
    """Sufficiency: lower is better, so equal ranks are a negative relation."""
    means = {"lime": 0.1, "gradient": 0.2, "occlusion": 0.3, "kernel_shap": 0.4}
    found = by_hand(
        {("m", method, "plausibility_auc"): around(mean) for method, mean in means.items()}
        | {("m", method, "sufficiency"): around(0.5 - flip * mean) for method, mean in means.items()}
    )
    answer = plain(plausibility_answer(found, "plausibility_auc", "sufficiency", "m", TITLES, None))
    assert words in answer
    sign = "" if flip > 0 else "−"
    assert f"Spearman's ρ is {sign}1.00 (95% interval over examples {sign}1.00 to {sign}1.00)" in answer
    assert "(4 methods, 10 examples)" in answer


def test_a_relation_that_other_examples_may_turn_is_not_clear() -> None:
    """The second metric's means differ by 0.01, its examples by 0.8."""
    found = by_hand({
        **{("m", method, "plausibility_auc"): around(mean) for method, mean in
           {"lime": 0.1, "gradient": 0.3, "occlusion": 0.5}.items()},
        ("m", "lime", "comprehensiveness"): around(0.2, SWING),
        ("m", "gradient", "comprehensiveness"): [0.205] * 10,
        ("m", "occlusion", "comprehensiveness"): around(0.21, SWING[::-1]),
    })  # fmt: skip
    answer = plain(plausibility_answer(found, "plausibility_auc", "comprehensiveness", "m", TITLES, None))
    assert "It is not clear whether" in answer
    assert "by the other: Spearman's ρ is 1.00 (95% interval over examples −1.00 to 1.00)" in answer


def test_two_methods_are_too_few_for_a_relation() -> None:
    metrics, methods = ("plausibility_auc", "comprehensiveness"), ("lime", "random", "gradient")
    found = by_hand({("m", method, metric): around(0.2) for metric in metrics for method in methods})
    assert "Random does not count" in plausibility_answer(found, *metrics, "m", TITLES, None)


def test_the_cheapest_of_the_best_is_named_beside_the_best() -> None:
    found = by_hand({
        ("m", "kernel_shap", "comprehensiveness"): [0.5] * 9 + [0.6],
        ("m", "occlusion", "comprehensiveness"): around(0.46, SWING),
        ("m", "lime", "comprehensiveness"): around(0.3),
        ("m", "kernel_shap", "evaluations"): [512] * 10,
        ("m", "occlusion", "evaluations"): [12] * 10,
        ("m", "lime", "evaluations"): [1] * 10,
    })  # fmt: skip
    answer = plain(cost_answer(found, "m", "comprehensiveness", "evaluations", TITLES, None))
    assert answer == (
        "Comprehensiveness on m: The cheapest of the best is Occlusion (12 model evaluations). It is not significantly "
        "different from Kernel SHAP (512 model evaluations), which has the best mean."
    )
    alone = plain(cost_answer(found, "m", "comprehensiveness", "evaluations", TITLES, ("kernel_shap", "lime")))
    assert alone == "Comprehensiveness on m: Kernel SHAP (512 model evaluations) is best."


def test_cost_does_not_decide_between_methods_that_random_matches() -> None:
    found = by_hand({
        ("m", "lime", "comprehensiveness"): around(0.1, SWING),
        ("m", "random", "comprehensiveness"): around(0.09, SWING[::-1]),
        ("m", "lime", "evaluations"): [100] * 10,
        ("m", "random", "evaluations"): [0] * 10,
    })  # fmt: skip
    assert plain(cost_answer(found, "m", "comprehensiveness", "evaluations", TITLES, None)) == (
        "Comprehensiveness on m: Cost cannot decide: Random is not significantly worse than LIME. More examples may "
        "tell methods apart."
    )


def test_along_sizes_only_paired_differences_that_exclude_0_count() -> None:
    """Gradient differs by 0.05 on average, but by 0.8 more or less on each example."""
    found = by_hand({
        ("small", "lime", "sufficiency"): around(0.5), ("large", "lime", "sufficiency"): around(0.2),
        ("small", "occlusion", "sufficiency"): around(0.2), ("large", "occlusion", "sufficiency"): around(0.4),
        ("small", "gradient", "sufficiency"): around(0.2, SWING),
        ("large", "gradient", "sufficiency"): around(0.25, SWING[::-1]),
        ("small", "random", "sufficiency"): around(0.2), ("large", "random", "sufficiency"): around(0.9),
    })  # fmt: skip
    answer = plain(scaling_answer(found, "sufficiency", SIZES, "", TITLES, None))
    assert answer == (
        "Sufficiency from small to large: Significantly worse for Occlusion; significantly better for LIME; changes "
        f"for Gradient are not significant. {ONE_TRAINING}"
    )
    single = by_hand({(model, "lime", "sufficiency"): [0.5] for model in SIZES})
    assert TOO_FEW in scaling_answer(single, "sufficiency", SIZES, "T5", TITLES, None)


def test_methods_that_are_best_on_every_model_else_the_best_of_each() -> None:
    def on(model: str, **means: float) -> dict[tuple[str, str, str], list[float]]:
        return {(model, method, "comprehensiveness"): around(mean) for method, mean in means.items()}

    alike = by_hand(on("small", lime=0.5, gradient=0.3) | on("large", lime=0.9, gradient=0.2))
    answer = plain(architecture_answer(alike, "comprehensiveness", SIZES, TITLES, None))
    assert answer.endswith("LIME is best or not significantly different from the best on every model.")
    apart = by_hand(on("small", lime=0.5, gradient=0.3) | on("large", lime=0.1, gradient=0.2))
    answer = plain(architecture_answer(apart, "comprehensiveness", SIZES, TITLES, None))
    assert answer.endswith("No method is among the best on every model. Best means: LIME on small; Gradient on large.")


def test_slices_with_too_few_examples_are_not_counted() -> None:
    labels = ["good"] * 5 + ["bad"] * 4 + ["odd"]
    found = by_hand(
        {
            ("m", "lime", "comprehensiveness"): [0.5, 0.51] * 5,
            ("m", "gradient", "comprehensiveness"): [0.3, 0.29] * 5,
        },
        [fact(place, label) for place, label in enumerate(labels)],
    )
    answer = plain(slices_answer(split(found, "label"), "m", "comprehensiveness", TITLES, None))
    assert answer.endswith(
        "LIME is best or not significantly different from the best in every slice with enough examples."
    )


def test_the_method_with_the_largest_share_on_the_mark_beside_random_and_the_ideal() -> None:
    def graded(strength: float, method: str, value: float) -> GradedScore:
        score = MetricScore("truth_mass", method, value, (value - 0.1, value + 0.1), 10, model="m")
        return GradedScore(strength, score, 0.98 * strength)

    points = [
        graded(0.5, "lime", 0.9),
        graded(1.0, "lime", 0.4),
        graded(1.0, "gradient", 0.6),
        graded(1.0, "random", 0.1),
    ]
    assert plain(strength_answer(points, OVER_DATA, TITLES, None)) == (
        "With the mark in 100.0% of the examples: Gradient puts the largest share of its scores on the mark, 60.0% "
        "(95% interval 50.0% to 70.0%). Random: 10.0% (95% interval 0.0% to 20.0%). Everything on the mark: 98.0%."
    )
    assert "No method" in strength_answer([], OVER_DATA, TITLES, None)
