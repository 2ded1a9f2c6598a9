"""The answer above a leaderboard, on values whose differences are known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from components.evaluate.answers import NO_RANDOM, join_names, leaderboard_summary, summary_texts
from components.evaluate.leaderboard import boards
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import compare_with_random
from tests.unit.evaluation.by_hand import by_hand

TITLES = {"lime": "LIME", "kernel_shap": "Kernel SHAP", "gradient": "Gradient", "occlusion": "Occlusion",
          "random": "Random"}  # fmt: skip
SWING = (0.4, -0.4) * 5
"""Differences whose mean is 0, so that no interval excludes it."""


def around(mean: float, swing: Sequence[float] = (0.01, -0.01) * 5) -> list[float]:
    return [mean + one for one in swing]


def evaluated(metric: str, values: Mapping[str, Sequence[int | float | str]], model: str = "m") -> Evaluation:
    return by_hand({(model, method, metric): own for method, own in values.items()})


def texts(metric: str, **values: Sequence[int | float | str]) -> list[str]:
    found = evaluated(metric, values)
    [board] = boards(found.standings, found.plan.methods_with_baselines, [metric])
    return summary_texts(board, metric, TITLES, compare_with_random(found, "m", metric))


def test_the_best_the_level_and_those_no_better_than_random_are_named() -> None:
    """Occlusion is 0.05 below Kernel SHAP on average, but by 0.4 more or less; Gradient likewise around Random."""
    given = {
        "kernel_shap": [0.5] * 9 + [0.6],
        "occlusion": around(0.46, SWING),
        "lime": around(0.3),
        "gradient": around(0.1, SWING),
        "random": [0.1] * 10,
    }
    found = texts("comprehensiveness", **given)
    assert found[0].startswith("Kernel SHAP is best (0.510, 95% interval 0.5")
    assert found[0].endswith("; Occlusion is not significantly different from it.")
    assert found[1:] == ["Gradient is not significantly better than Random."]


def test_where_lower_is_better_a_higher_mean_is_no_better_than_random() -> None:
    found = texts("sufficiency", lime=around(0.1), gradient=around(0.6), random=[0.3] * 10)
    assert found[0].startswith("LIME is best (0.100, 95% interval ")
    assert found[0].endswith("), significantly better than the others.")
    assert found[1:] == ["Gradient is not significantly better than Random."]


def test_all_better_than_random_is_said_once() -> None:
    found = texts("comprehensiveness", lime=around(0.5), gradient=around(0.4), random=[0.1] * 10)
    assert found[1:] == ["Every other method is significantly better than Random."]


def test_no_method_better_than_random_and_no_significant_difference() -> None:
    swung = around(0.1, SWING)
    found = texts("comprehensiveness", lime=around(0.11, SWING[::-1]), gradient=swung, random=[0.1] * 10)
    assert "has the best mean (" in found[0]
    assert "but neither of the other two is significantly different from it." in found[0]
    assert found[1:] == ["No method is significantly better than Random."]


def test_ties_are_said_plainly() -> None:
    same = [0, 1] * 5
    found = texts("gt_overlap", lime=same, gradient=same, random=same)
    assert found == ["All 3 methods tie.", "No method is significantly better than Random."]
    found = texts("gt_overlap", lime=[1] * 10, gradient=[1] * 10, occlusion=[0] * 10, random=[0] * 10)
    assert found == [
        "LIME and Gradient tie for best (1.00, 95% interval 0.69 to 1.00).",
        "Occlusion is not significantly better than Random.",
    ]


def test_a_tie_has_its_interval_too() -> None:
    found = texts("comprehensiveness", lime=around(0.5), gradient=around(0.5), random=[0.1] * 10)
    assert found[0].startswith("LIME and Gradient tie for best (0.500, 95% interval 0.49")
    apart = texts("comprehensiveness", lime=around(0.5), gradient=around(0.5, SWING), random=[0.1] * 10)
    assert "tie for best (0.500, 95% intervals 0." in apart[0]


def test_methods_without_values_are_named_and_so_is_a_missing_baseline() -> None:
    found = texts("comprehensiveness", lime=around(0.5), gradient=["constant"] * 10, random=["failed"] * 10)
    assert found == ["LIME is the only method with a value.", NO_RANDOM, "Gradient and Random have no value."]
    assert texts("comprehensiveness", lime=["failed"], random=["failed"]) == ["No method has a value."]


@pytest.mark.parametrize(
    ("metric", "size", "expected"),
    [
        ("comprehensiveness", 1, "One example is too few to compare methods."),
        ("seconds", 10, "Not ranked: examples that were explained together share one measurement."),
    ],
)
def test_what_has_no_ranking_says_why(metric: str, size: int, expected: str) -> None:
    assert texts(metric, lime=around(0.5)[:size], random=[0.1] * size) == [expected]


def test_methods_that_share_too_few_examples_with_random_are_not_compared_with_it() -> None:
    none = ["failed"] * 5
    found = texts("comprehensiveness", lime=[*around(0.5)[:5], *none], gradient=around(0.4), random=[*none, *[0.1] * 5])
    assert found[-1] == "Every method that shares examples with it is significantly better than Random."


def test_the_head_names_metric_model_and_examples_and_escapes_them() -> None:
    evil = "<img src=x>"
    given = {"lime": [*around(0.5)[:9], "failed"], "random": [0.1] * 10}
    found = evaluated("comprehensiveness", given, evil)
    [board] = boards(found.standings, found.plan.methods_with_baselines, ["comprehensiveness"])
    drawn = leaderboard_summary(found, {"lime": evil, "random": "Random"}, board, "comprehensiveness")
    assert drawn.startswith(
        '<p class="xg-answer"><b>Comprehensiveness on &lt;img src=x&gt; (9 to 10 examples):</b> '
        "&lt;img src=x&gt; is best "
    )
    assert drawn.endswith(
        "significantly better than Random. Every other method is significantly better than Random.</p>"
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [("a", "a"), ("ab", "a and b"), ("abcde", "a, b, c, d and e"), ("abcdefg", "a, b, c, d and 3 more")],
)
def test_long_lists_are_counted(names: str, expected: str) -> None:
    assert join_names(names) == expected
