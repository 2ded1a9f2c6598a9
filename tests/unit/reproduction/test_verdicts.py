"""The rule for a verdict and the number of examples that would settle an open one, by hand and by simulation."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.stats import t

from engine.reproduction.claims import MethodTerm
from engine.reproduction.estimates import mean_interval
from engine.reproduction.report import (
    ERROR_RATE,
    Judgment,
    Margin,
    Verdict,
    best_margin,
    error_rates,
    judge_margins,
    margin,
)

INSIDE, OUTSIDE = Margin(0.2, 0.1, 0.3, 100), Margin(-0.2, -0.3, -0.1, 100)
OPEN, DOUBTFUL = Margin(0.1, -0.1, 0.3, 100), Margin(-0.1, -0.2, 0.3, 100)
BOUND = Margin(0.0, -0.1, 0.1, 100)
FOUR, NINE, SIXTEEN = 818, 1839, 3270
"""100 examples reach 0.2 from a number 0.1 inside: four times as many reach half as far, and with power 0.8 it takes
(1 + 0.841621 / 1.959964)^2 = 2.043 times that; a reach of 0.3 takes nine, of 0.4 sixteen times as many."""


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
    found = margin(value, ends, ends, bounds, 50)
    assert (found.value, found.low, found.high) == pytest.approx(expected)
    assert found.n == 50


def test_a_number_on_its_bound_is_inside_unless_more_is_asked() -> None:
    for strict, verdict in ((False, "holds"), (True, "does not hold")):
        assert margin(0.0, (0.0, 0.0), (0.0, 0.0), (0.0, None), 9, strict).verdict == verdict
    assert margin(0.1 + 0.2 - 0.3, (0.0, 0.5), (0.0, 0.5), (0.0, None), 9).verdict == "holds", "rounding does not count"
    assert margin(0.2, (0.0, 0.5), (0.0, 0.5), (0.0, None), 9, strict=True).verdict == "undecided"


def test_what_holds_is_inside_by_the_plain_interval_and_what_does_not_outside_by_the_wide_one() -> None:
    assert margin(0.1, (0.05, 0.15), (-0.1, 0.3), (0.0, None), 9).verdict == "holds"
    assert margin(-0.1, (-0.15, -0.05), (-0.3, 0.1), (0.0, None), 9).verdict == "undecided"
    assert margin(-0.1, (-0.15, -0.05), (-0.2, -0.01), (0.0, None), 9).verdict == "does not hold"


def test_what_is_surely_smaller_than_counts_is_outside_unless_it_is_surely_inside() -> None:
    for ends, verdict in (((-0.3, 0.4), "does not hold"), ((-0.3, 0.6), "undecided"), ((0.1, 0.4), "holds")):
        assert margin(0.2, ends, ends, (0.0, None), 9, strict=True, smallest_gain=0.5).verdict == verdict
    assert margin(0.2, (-0.3, 0.4), (-0.4, 0.6), (0.0, None), 9, True, smallest_gain=0.5).verdict == "undecided", (
        "the wide one"
    )


def test_an_open_number_may_be_settled_either_way() -> None:
    """As far below what counts as above the bound, with twice the reach: four times as many."""
    found = Margin(0.1, -0.1, 0.5, 100, smallest_gain=0.2)
    assert found.settled_as == {"holds": FOUR, "does not hold": SIXTEEN}
    assert found.settled_by == FOUR
    assert judge_margins([found, DOUBTFUL]) == Judgment("undecided", SIXTEEN)
    assert Margin(0.0, -0.2, 0.2, 100, smallest_gain=0.1).settled_as == {"does not hold": FOUR}


def test_what_reaches_its_bound_but_for_rounding_is_not_outside() -> None:
    assert Margin(-0.05, -0.1, -1e-12, 9).verdict == "undecided"
    assert Margin(-0.05, -0.1, -1e-6, 9).verdict == "does not hold"


def test_a_number_that_may_be_settled_either_way_is_counted_once() -> None:
    tie, bound = Margin(0.1, -0.1, 0.3, 100, smallest_gain=0.2), Margin(0.0, -0.1, 0.1, 100)
    assert tie.settled_as == {"holds": FOUR, "does not hold": FOUR}
    assert judge_margins([tie, bound, bound], 2) == Judgment("undecided", FOUR, 2)


@pytest.mark.parametrize(
    ("asked", "least", "expected"),
    [
        ([INSIDE, INSIDE], None, Judgment("holds")),
        ([INSIDE, OUTSIDE, OPEN], None, Judgment("does not hold")),
        ([INSIDE, OPEN], None, Judgment("undecided", FOUR)),
        ([OPEN, Margin(0.1, -0.2, 0.3, 100)], None, Judgment("undecided", NINE)),
        ([OPEN, DOUBTFUL], None, Judgment("undecided", SIXTEEN)),
        ([BOUND, INSIDE], None, Judgment("undecided", None, 1)),
        ([BOUND, OPEN, BOUND], None, Judgment("undecided", FOUR, 2)),
        ([BOUND, DOUBTFUL], None, Judgment("undecided", SIXTEEN)),
        ([INSIDE, OUTSIDE, OPEN], 1, Judgment("holds")),
        ([INSIDE, OUTSIDE, OPEN], 2, Judgment("undecided", FOUR)),
        ([INSIDE, OUTSIDE, OUTSIDE], 2, Judgment("does not hold")),
        ([OUTSIDE, DOUBTFUL, OPEN], 2, Judgment("undecided", SIXTEEN)),
    ],
)
def test_as_many_must_hold_as_are_asked(asked: list[Margin], least: int | None, expected: Judgment) -> None:
    assert judge_margins(asked, least) == expected


def test_where_one_of_several_is_enough_the_best_counts() -> None:
    best = best_margin([OUTSIDE, OPEN, INSIDE])
    assert best == INSIDE
    assert judge_margins([best_margin([OUTSIDE, OPEN])]).verdict == "undecided"
    assert judge_margins([best_margin([OUTSIDE, OUTSIDE])]).verdict == "does not hold"


def test_chances_are_shared_wherever_one_stray_interval_would_decide() -> None:
    assert error_rates(1, 1, 1) == (0.05, 0.05)
    assert error_rates(48, 1, 48) == (0.05, pytest.approx(0.05 / 48)), "all must be inside, one outside is enough"
    assert error_rates(1, 2, 1) == (0.025, 0.025), "one of two is enough"
    assert error_rates(7, 1, 4) == (pytest.approx(0.05 / 7),) * 2


FALLS = tuple(MethodTerm(times, "nli", "sufficiency", ("lime",), ("t5",)) for times in (1, -1))


@functools.cache
def quantile(chance: float) -> float:
    return float(t.ppf(1 - chance / 2, 99))


def students(values: np.ndarray, chance: float) -> tuple[float, float]:
    """The textbook's interval, which is quick."""
    half = quantile(chance) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() - half, values.mean() + half


def claimed(chance: np.random.Generator, true: list[float], n: int, choices: int = 1, least: int = 0) -> Verdict:
    """Of a claim that numbers with these true means, in standard deviations, are more than 0."""
    entries = len(true) // choices
    inner, outer = error_rates(entries, choices, least or entries)
    made = []
    for mean in true:
        values = chance.normal(mean, 1.0, n)
        plain, wide = (students(values, one) for one in (inner, outer))
        made.append(margin(values.mean(), plain, wide, (0.0, None), n, error_rates=(inner, outer)))
    asked = [best_margin(made[at : at + choices]) for at in range(0, len(made), choices)]
    return judge_margins(asked, least or None).verdict


@pytest.mark.parametrize(
    ("true", "choices", "least", "wrong"),
    [
        ([0.0] * 48, 1, 0, "does not hold"),
        ([0.05] * 48, 1, 0, "does not hold"),
        ([1.0] * 23 + [-1e-9], 1, 0, "holds"),
        ([0.0] * 8, 4, 0, "holds"),
        ([1.0] * 3 + [0.0] * 4, 1, 4, "holds"),
        ([-1.0] * 3 + [0.0] * 4, 1, 4, "does not hold"),
    ],
    ids=["48 on the bound", "48 true", "one of 24 not", "none of 4, twice", "3 of 7, 4 asked", "4 of 7, 4 asked"],
)
def test_a_wrong_verdict_is_given_to_at_most_5_per_cent(
    true: list[float], choices: int, least: int, wrong: Verdict
) -> None:
    """Without widening 48 numbers on their bound refuted two claims of three, and 48 true ones one of seven."""
    chance = np.random.default_rng(8)
    found = [claimed(chance, true, 100, choices, least) for _ in range(100)]
    assert found.count(wrong) / len(found) <= ERROR_RATE + 2 * np.sqrt(ERROR_RATE * (1 - ERROR_RATE) / len(found))


def test_what_is_clearly_so_is_told_all_the_same() -> None:
    chance = np.random.default_rng(9)
    assert claimed(chance, [0.6] * 48, 200) == "holds"
    assert claimed(chance, [0.6] * 47 + [-0.6], 200) == "does not hold"


@pytest.mark.parametrize("numbers", [1, 24])
def test_as_many_examples_as_are_said_settle_it_four_times_in_five(numbers: int) -> None:
    """An open number that is outside, alone or among others: the level of its interval counts too."""
    chance, own = np.random.default_rng(5), error_rates(numbers, 1, numbers)
    first = chance.normal(0.0, 0.1, 100)
    first += -0.01 - first.mean()
    ends = [mean_interval(first, (-1.0, 1.0), FALLS, 0, one) for one in own]
    needed = margin(-0.01, *ends, (0.0, None), 100, error_rates=own).settled_by
    assert needed is not None
    again = (chance.normal(-0.01, first.std(ddof=1), needed) for _ in range(300))
    told = np.mean([students(values, own[1])[1] < 0 for values in again])
    assert 0.72 < told < 0.88
