"""The rule for a verdict and the number of examples that would settle an open one, by hand and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from engine.metrics.bootstrap import interval
from engine.reproduction.verdicts import Margin, judged, margin, most

INSIDE, OUTSIDE = Margin(0.2, 0.1, 0.3, 100), Margin(-0.2, -0.3, -0.1, 100)
OPEN, DOUBTFUL = Margin(0.1, -0.1, 0.3, 100), Margin(-0.1, -0.2, 0.3, 100)


@pytest.mark.parametrize(
    ("value", "ends", "bounds", "expected"),
    [
        (0.95, (0.92, 0.98), (0.9, None), (0.05, 0.02, 0.08)),
        (0.15, (0.1, 0.3), (None, 0.2), (0.05, -0.1, 0.1)),
        (0.45, (0.42, 0.48), (0.4, 0.6), (0.05, 0.02, 0.08)),
        (0.45, (0.38, 0.7), (0.4, 0.6), (0.05, -0.1, 0.1)),
        (0.7, (0.65, 0.8), (0.4, 0.6), (-0.1, -0.2, -0.05)),
    ],
    ids=["above a bound", "below a bound", "between", "over both bounds and the middle", "outside two"],
)
def test_a_margin_is_the_distance_to_the_nearest_bound(
    value: float, ends: tuple[float, float], bounds: tuple[float | None, float | None], expected: tuple[float, ...]
) -> None:
    found = margin(value, ends, bounds, 50)
    assert (found.value, found.low, found.high) == pytest.approx(expected)
    assert found.n == 50


def test_a_number_on_its_bound_is_inside_unless_more_is_asked() -> None:
    for strict, verdict in ((False, "holds"), (True, "does not hold")):
        assert margin(0.0, (0.0, 0.0), (0.0, None), 9, strict).verdict == verdict
    assert margin(0.1 + 0.2 - 0.3, (0.0, 0.5), (0.0, None), 9).verdict == "holds", "rounding does not count"
    assert margin(0.2, (0.0, 0.5), (0.0, None), 9, strict=True).verdict == "cannot be told"


@pytest.mark.parametrize(
    ("asked", "verdict", "n"),
    [
        ([INSIDE, INSIDE], "holds", None),
        ([INSIDE, OUTSIDE, OPEN], "does not hold", None),
        ([INSIDE, OPEN], "cannot be told", 400),
        ([OPEN, Margin(0.1, -0.2, 0.3, 100)], "cannot be told", 900),
        ([OPEN, DOUBTFUL], "cannot be told", 1600),
        ([Margin(0.0, -0.1, 0.1, 100), INSIDE], "cannot be told", None),
    ],
    ids=["all inside", "one outside", "one open", "all must be told", "one that is outside is enough", "on the bound"],
)
def test_all_that_is_asked_must_hold(asked: list[Margin], verdict: str, n: int | None) -> None:
    """100 examples reach 0.2 from a number 0.1 inside: four times as many reach half as far."""
    assert judged(asked) == (verdict, n)


def test_where_one_of_several_is_enough_the_best_counts() -> None:
    best = most([OUTSIDE, OPEN, INSIDE])
    assert best == INSIDE
    assert judged([most([OUTSIDE, OPEN])])[0] == "cannot be told"
    assert judged([most([OUTSIDE, OUTSIDE])])[0] == "does not hold"


def test_more_examples_are_asked_for_even_where_the_interval_ends_on_the_bound() -> None:
    assert Margin(-0.2, -0.4, 0.0, 30).settled_by == 31


def test_as_many_examples_as_are_said_to_settle_it_do_so_about_half_the_time() -> None:
    """The interval of so many examples ends at the bound on average, so that it excludes it in about every other."""
    chance = np.random.default_rng(5)
    first = chance.normal(0.1, 1.0, 100)
    first += 0.1 - first.mean()
    ends = interval(first)
    assert ends is not None
    asked = margin(0.1, ends, (0.0, None), 100).settled_by
    assert asked == pytest.approx(100 * (1.96 / 0.1 / 10 * first.std(ddof=1)) ** 2, rel=0.15), "n of a normal mean"
    again = [interval(chance.normal(0.1, first.std(ddof=1), asked)) for _ in range(300)]
    told = np.mean([found is not None and found[0] > 0 for found in again])
    assert 0.4 < told < 0.6
