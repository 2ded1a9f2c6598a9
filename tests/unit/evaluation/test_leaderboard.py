"""Which method is the best, and which are not shown to be worse, on values made by hand."""

from __future__ import annotations

import numpy as np

from engine.evaluation.leaderboard import Standing, leaderboard
from engine.evaluation.plan import Plan
from engine.evaluation.result import Evaluation
from engine.metrics.results import Of, Row, Skip

HARD = np.random.default_rng(0).normal(0, 1, 40)
"""What makes examples hard, for all methods alike: by it alone every interval overlaps with every other."""


def found(metric: str, **values: np.ndarray) -> dict[str, Standing]:
    rows = tuple(
        Row(Of("m", "d", method, metric), example, float(value))
        for method, own in values.items()
        for example, value in enumerate(own)
    )
    skips = (Skip(Of("m", "d", "none", metric), 0, "broken"),)
    plan = Plan(("m",), "d", tuple(values), (metric,))
    return {one.score.method: one for one in leaderboard(Evaluation(plan, rows, skips, (), 0, 0))}


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
    assert said(low) == {"b": "best", "c": "level", "a": "", "none": ""}
    assert list(low) == ["b", "c", "a", "none"]


def test_seconds_have_an_order_and_no_best() -> None:
    standings = found("seconds", a=np.full(40, 2.0), b=np.full(40, 1.0))
    assert list(standings) == ["b", "a", "none"]
    assert set(said(standings).values()) == {""}


def test_of_one_example_nothing_is_told_and_neither_way_has_no_best() -> None:
    assert said(found("comprehensiveness", a=HARD[:1], b=HARD[:1] - 5)) == {"a": "best", "b": "level", "none": ""}
    assert set(said(found("rank_spearman", a=HARD, b=HARD - 5)).values()) == {""}
