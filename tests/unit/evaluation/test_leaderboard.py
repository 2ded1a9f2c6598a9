"""Which method is the best, and which are not shown to be worse, on values made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.scores import Standing, leaderboard
from engine.metrics.results import MetricKey, MetricRow, MetricSkip
from tests.unit.evaluation.by_hand import evaluation

HARD = np.random.default_rng(0).normal(0, 1, 40)
"""What makes examples hard, for all methods alike: by it alone every interval overlaps with every other."""


def found(metric: str, **values: np.ndarray) -> dict[str, Standing]:
    rows = tuple(
        MetricRow(MetricKey("m", "d", method, metric), example, float(value))
        for method, own in values.items()
        for example, value in enumerate(own)
    )
    skips = (MetricSkip(MetricKey("m", "d", "none", metric), 0, "broken"),)
    plan = EvaluationPlan(("m",), "d", tuple(values), (metric,))
    return {one.score.method: one for one in leaderboard(evaluation(plan, rows, skips))}


def said(standings: dict[str, Standing]) -> dict[str, str]:
    return {name: "best" if one.best else "level" if one.level else "" for name, one in standings.items()}


def test_differences_are_told_by_pairs_where_intervals_overlap() -> None:
    noise = np.random.default_rng(1).normal(0, 0.5, 40)
    values = {"a": HARD, "b": HARD + noise - noise.mean() - 0.01, "c": HARD - 0.1}
    high = found("comprehensiveness", **values)
    assert list(high) == ["a", "b", "c", "none"]
    assert said(high) == {"a": "best", "b": "level", "c": "", "none": ""}
    a, c = high["a"].score.interval, high["c"].score.interval
    assert a is not None
    assert c is not None
    assert c[1] > a[0], "the intervals of the means alone overlap"


def test_where_lower_is_better_the_lowest_is_the_best() -> None:
    low = found("sufficiency", a=HARD, b=HARD - 0.1, c=HARD - 0.1)
    assert said(low) == {"b": "best", "c": "best", "a": "", "none": ""}
    assert list(low) == ["b", "c", "a", "none"]


def test_seconds_have_an_order_and_no_best() -> None:
    standings = found("seconds", a=np.full(40, 2.0), b=np.full(40, 1.0))
    assert list(standings) == ["b", "a", "none"]
    assert set(said(standings).values()) == {""}


def test_of_one_example_nothing_is_told_and_neither_way_has_no_best() -> None:
    assert said(found("comprehensiveness", a=HARD[:1], b=HARD[:1] - 5)) == {"a": "best", "b": "level", "none": ""}
    assert set(said(found("rank_spearman", a=HARD, b=HARD - 5)).values()) == {""}


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "b", "a")])
def test_exact_ties_are_the_best_together_whichever_is_named_first(names: tuple[str, ...]) -> None:
    one = np.arange(10) % 2
    values = {"a": one, "b": 1 - one, "c": one / 2}
    told = said(found("gt_overlap", **{name: values[name] for name in names}))
    assert (told["a"], told["b"]) == ("best", "best"), "both are right on half of the examples"
    assert told["c"] != "best"


def test_the_best_is_found_on_the_examples_that_both_have() -> None:
    """The second is better wherever the first has a value, and has the harder examples besides."""
    first, second = np.linspace(0.9, 0.904, 5), np.array([*np.linspace(1.0, 1.004, 5), *[0.1] * 5])
    standings = found("comprehensiveness", first=first, second=second)
    assert said(standings) == {"second": "best", "first": "", "none": ""}
    means = [standings[name].score.value for name in ("first", "second")]
    assert means[0] > means[1], "by the means of all examples it would be the other way round"  # type: ignore[operator]


def test_methods_without_a_shared_example_do_not_beat_each_other() -> None:
    rows = [
        MetricRow(MetricKey("m", "d", method, "comprehensiveness"), example, value)
        for method, examples, value in (("a", (0, 1), 0.9), ("b", (2, 3), 0.1))
        for example in examples
    ]
    plan = EvaluationPlan(("m",), "d", ("a", "b"), ("comprehensiveness",))
    told = leaderboard(evaluation(plan, rows))
    assert not any(one.best for one in told)


def test_who_shares_examples_with_few_others_is_not_crowned() -> None:
    """The stray one has the best mean, on examples of its own and on one that only the worst has too."""
    given = {"stray": ((7, 8, 9), 0.9), "good": ((0, 1, 2), 0.8), "fair": ((0, 1, 2), 0.5), "bad": ((0, 1, 2, 7), 0.1)}
    rows = [
        MetricRow(MetricKey("m", "d", method, "comprehensiveness"), example, value)
        for method, (examples, value) in given.items()
        for example in examples
    ]
    plan = EvaluationPlan(("m",), "d", tuple(given), ("comprehensiveness",))
    told = leaderboard(evaluation(plan, rows))
    assert [one.score.method for one in told if one.best] == ["good"]


def test_who_shares_examples_with_half_of_the_others_may_be_the_best() -> None:
    """Of three methods two share examples: each of them with one of the two others."""
    given = {"first": ((0, 1, 2), 0.9), "second": ((0, 1, 2), 0.5), "apart": ((3, 4), 0.95)}
    rows = [
        MetricRow(MetricKey("m", "d", method, "comprehensiveness"), example, value)
        for method, (examples, value) in given.items()
        for example in examples
    ]
    plan = EvaluationPlan(("m",), "d", tuple(given), ("comprehensiveness",))
    assert [one.score.method for one in leaderboard(evaluation(plan, rows)) if one.best] == ["first"]
