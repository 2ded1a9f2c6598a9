"""Scores of an evaluation for charts: means with their intervals, curves, pairs over the same examples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from engine.errors import UsageError
from engine.evaluation.scores import (
    NOT_MEASURED,
    ScoreFilter,
    compute_scores,
    correlate_metrics,
    curve_metrics,
    narrow,
    pair_scores,
    predicts_scores,
    scalar_metrics,
)
from engine.metrics.results import interval
from tests.unit.evaluation.by_hand import by_hand, fact

FOUND = by_hand(
    {
        ("m", "lime", "comprehensiveness"): [0.1, 0.2, 0.6],
        ("m", "gradient", "comprehensiveness"): [0.4, "too long", "too long"],
        ("w", "lime", "comprehensiveness"): ["broken", "broken", "broken"],
        ("m", "lime", "sufficiency"): [0.0, 0.0, 0.3],
    }
)


def test_each_method_has_its_mean_interval_and_counts() -> None:
    lime, gradient, broken = compute_scores(FOUND, "comprehensiveness")
    assert (lime.model, lime.method, lime.n, lime.skipped) == ("m", "lime", 3, {})
    assert lime.value == pytest.approx(0.3)
    assert lime.interval == interval(np.array([0.1, 0.2, 0.6]), 0)
    assert (gradient.value, gradient.interval, gradient.n, gradient.skipped) == (0.4, None, 1, {"too long": 2})
    assert (broken.model, broken.value, broken.n, broken.skipped) == ("w", None, 0, {"broken": 3})


def test_only_the_models_and_methods_wanted_are_given_in_the_order_of_the_plan() -> None:
    found = by_hand({(m, method, "complexity"): [1, 2] for m in ("b", "a") for method in ("random", "lime")})
    assert [(one.model, one.method) for one in compute_scores(found, "complexity")] == [
        ("b", "random"), ("b", "lime"), ("a", "random"), ("a", "lime"),
    ]  # fmt: skip
    assert [one.model for one in compute_scores(found, "complexity", ScoreFilter(["a"], ["lime"]))] == ["a"]
    assert compute_scores(found, "complexity", ScoreFilter([], None)) == []


def test_an_example_without_a_curve_is_missing_at_each_of_its_points() -> None:
    curve = {("m", "lime", "without_top", percent): [1 - percent / 100, 0.5] for percent in (50, 0, 100)}
    lost = by_hand({**curve, ("m", "gradient", "without_top"): ["no gradient", "no gradient"]})  # type: ignore[dict-item]
    found = compute_scores(lost, "without_top")
    assert [(one.method, one.percent, one.value) for one in found] == [
        ("lime", 0, 0.75), ("lime", 50, 0.5), ("lime", 100, 0.25),
        ("gradient", 0, None), ("gradient", 50, None), ("gradient", 100, None),
    ]  # fmt: skip
    assert all(one.skipped == {"no gradient": 2} for one in found if one.value is None)


def test_curves_that_no_example_has_are_one_point_without_a_value() -> None:
    found = compute_scores(by_hand({("m", "lime", "with_top"): ["broken"]}), "with_top")
    assert [(one.percent, one.value, one.skipped) for one in found] == [(None, None, {"broken": 1})]


def test_metrics_with_one_number_and_with_a_curve_are_told_apart() -> None:
    found = by_hand({("m", "lime", "complexity"): [1]}, metrics=("without_top", "rank_spearman", "seconds"))
    assert scalar_metrics(found) == ["complexity", "seconds"]
    assert curve_metrics(found) == ["without_top"]
    for unknown in ("rank_spearman", "gt_overlap"):
        with pytest.raises(UsageError, match=r"metric: unknown name .* Known: complexity, seconds, without_top"):
            compute_scores(found, unknown)


def test_narrowed_keeps_one_metric_and_all_that_is_known_of_the_examples() -> None:
    found = by_hand({("m", "lime", "complexity"): [1, "flat"], ("m", "lime", "seconds"): [3]}, [fact(0), fact(1)])
    own = narrow(found, "complexity")
    assert ([row.value for row in own.rows], [skip.reason for skip in own.skips]) == ([1], ["flat"])
    assert own.facts == found.facts


@pytest.mark.parametrize(
    ("labels", "right", "expected"),
    [
        (("0.4", "1.0"), None, True),
        (("0", "1"), True, False),
        (("good", "bad"), None, False),
        ((None, None), None, False),
    ],
)
def test_a_head_that_gives_a_number_is_known_by_its_labels(
    labels: tuple[str | None, ...], right: bool | None, expected: bool
) -> None:
    facts = [fact(place, label, right) for place, label in enumerate(labels)]
    assert predicts_scores(by_hand({("m", "lime", "complexity"): [1, 2]}, facts)) is expected


def test_only_examples_that_have_both_values_count() -> None:
    found = by_hand(
        {
            ("m", "lime", "plausibility_auc"): [0.5, "nothing is marked", 0.9, 0.7],
            ("m", "lime", "comprehensiveness"): [0.2, 1.0, 0.4, "too long"],
        }
    )
    (pair,) = pair_scores(found, "plausibility_auc", "comprehensiveness")
    assert [pair.x.value, pair.y.value] == pytest.approx([0.7, 0.3]), "over examples 0 and 2"
    assert pair.x.interval == interval(np.array([0.5, 0.9]), 0, share=True)
    assert pair.y.interval == interval(np.array([0.2, 0.4]), 0)
    assert pair.x.n == pair.y.n == 2
    assert pair.x.skipped == pair.y.skipped == {"nothing is marked": 1, "too long": 1}


def test_methods_without_a_common_example_have_no_value() -> None:
    found = by_hand({("m", "lime", "seconds"): [1.0, "broken"], ("m", "lime", "complexity"): ["flat", 2.0]})
    (pair,) = pair_scores(found, "seconds", "complexity")
    assert (pair.x.value, pair.y.value, pair.x.n) == (None, None, 0)
    assert pair.x.skipped == {"flat": 1, "broken": 1}


def test_a_method_that_lacks_one_metric_wholly_is_no_pair_and_an_example_that_does_is_told() -> None:
    found = by_hand(
        {
            ("m", "lime", "seconds"): [1.0, 3.0],
            ("m", "gradient", "seconds"): [1.0],
            ("m", "lime", "complexity"): [2.0],
        }
    )
    (pair,) = pair_scores(found, "seconds", "complexity")
    assert (pair.x.value, pair.x.skipped) == (1.0, {NOT_MEASURED: 1})


def test_pairs_come_in_the_order_of_the_plan_as_far_as_wanted() -> None:
    found = by_hand({(m, id, x): [1, 2] for m in ("b", "a") for id in ("z", "c") for x in ("seconds", "complexity")})
    order = [(one.x.model, one.y.method) for one in pair_scores(found, "seconds", "complexity")]
    assert order == [("b", "z"), ("b", "c"), ("a", "z"), ("a", "c")]
    assert [one.x.model for one in pair_scores(found, "seconds", "complexity", ScoreFilter(["a"], ["c"]))] == ["a"]


def test_the_correlation_of_two_metrics_is_spearmans_over_the_examples_that_all_have() -> None:
    """Sufficiency, of which less is better, is negated. The last example lacks a value and does not count."""
    rng = np.random.default_rng(3)
    x, y = rng.random((2, 5, 12)).round(1)
    found = by_hand(
        {("m", f"m{place}", "comprehensiveness"): [*row, 0.9] for place, row in enumerate(x)}
        | {("m", f"m{place}", "sufficiency"): [*row, "none" if place else 0.1] for place, row in enumerate(y)}
    )
    result = correlate_metrics(found, "comprehensiveness", "sufficiency")
    assert result is not None
    assert (result.methods, result.examples) == (5, 12)
    assert result.rho == pytest.approx(spearmanr(x.mean(1), -y.mean(1)).statistic)
    draws = [rng.integers(12, size=12) for _ in range(4000)]
    rhos = [spearmanr(x[:, draw].mean(1), -y[:, draw].mean(1)).statistic for draw in draws]
    assert result.interval == pytest.approx(np.nanquantile(rhos, [0.025, 0.975]), abs=0.11)


def test_no_correlation_without_three_methods_or_where_all_are_equal() -> None:
    two = {("m", method, metric): [0.1, 0.2] for method in ("a", "b") for metric in ("complexity", "sufficiency")}
    assert correlate_metrics(by_hand(two), "complexity", "sufficiency") is None
    equal = two | {("m", "c", metric): [0.1, 0.2] for metric in ("complexity", "sufficiency")}
    assert correlate_metrics(by_hand(equal), "complexity", "sufficiency") is None
