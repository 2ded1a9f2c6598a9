"""The intervals that decide claims: against published numbers, against simulations, and never without width."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from engine.metrics.results import interval
from engine.reproduction.claims import Term
from engine.reproduction.intervals import ends_of, exact, of_mean, widened, with_room

HITS = (Term(1, "marked", "gt_overlap", ("lime",), ("bert",)),)
APART = (*HITS, Term(-1, "marked", "gt_overlap", ("gradient",), ("bert",)))
FALL = (Term(1, "marked", "comprehensiveness", ("lime",), ("bert",)),)
FALLS = (*FALL, Term(-1, "marked", "comprehensiveness", ("gradient",), ("bert",)))
ONE, TWO = (0.0, 1.0), (-1.0, 1.0)


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (19, 20), (20, 20), (7, 200)])
def test_a_share_has_clopper_and_pearsons_interval(hits: int, n: int) -> None:
    expected = binomtest(hits, n).proportion_ci(0.99, "exact")
    assert exact(hits, n, 0.01) == pytest.approx((expected.low, expected.high))
    values = np.repeat([1.0, 0.0], [hits, n - hits])
    assert of_mean(values, ONE, HITS, 0, 0.01) == pytest.approx((expected.low, expected.high))


def test_a_paired_difference_of_shares_is_bonett_and_prices() -> None:
    """By hand: 12 against 5 of 50 that differ, as if 13 and 6 of 52."""
    values = np.repeat([1.0, -1.0, 0.0], [12, 5, 33])
    more, less = 13 / 52, 6 / 52
    half = 1.959964 * np.sqrt((more + less - (more - less) ** 2) / 52)
    assert of_mean(values, TWO, APART, 0, 0.05) == pytest.approx((more - less - half, more - less + half))


@pytest.mark.parametrize("terms", [HITS, APART, FALL, FALLS], ids=["share", "of shares", "fall", "of falls"])
def test_a_few_equal_examples_settle_nothing(terms: tuple[Term, ...]) -> None:
    """Without room a claim of `at least -0.05`, or of `more than 0`, would hold with two examples."""
    values = np.full(2, 1.0 if len(terms) == 1 else 0.0)
    low, high = of_mean(values, ends_of(terms, [term.times for term in terms]), terms, 0, 0.05)
    assert high - low > 0.6
    assert low < -0.05 or len(terms) == 1
    many = of_mean(np.repeat(values, 100), ends_of(terms, [term.times for term in terms]), terms, 0, 0.05)
    assert 0.01 < many[1] - many[0] < 0.08


def test_room_stays_where_one_example_differs_by_a_hair() -> None:
    """Of 200 differences one is not 0; as many may be as Clopper and Pearson say, and reach from -1 to 1."""
    values = np.zeros(200)
    values[0] = 1e-6
    found = with_room(values, interval(values) or ONE, TWO, 0.05)
    most = binomtest(1, 200).proportion_ci(0.95, "exact").high
    assert found == pytest.approx((-most, most))
    values[:5] = [0.1, 0.2, -0.1, 0.3, 0.2]
    assert with_room(values, (0.0, 0.01), TWO, 0.05) == (0.0, 0.01), "enough to go by"


def test_a_difference_on_the_same_model_is_one_of_two_probabilities() -> None:
    assert ends_of(FALL, [1]) == (-1.0, 1.0)
    assert ends_of(FALLS, [1, -1]) == (-1.0, 1.0)
    other = Term(-1, "marked", "comprehensiveness", ("lime",), ("t5",))
    assert ends_of((*FALL, other), [1, -1]) == (-2.0, 2.0)


def test_an_interval_is_widened_as_far_as_students_t() -> None:
    values = np.random.default_rng(2).normal(0.3, 1.0, 400)
    assert widened(values, 0, 0.05) == pytest.approx(interval(values))
    low, high = widened(values, 0, 0.05 / 48)
    assert high - low == pytest.approx(2 * 3.31 * values.std() / 20, rel=0.05), "t of 399 at 1 - 0.05 / 96"


@pytest.mark.parametrize(("first", "second"), [(0.98, 0.95), (0.5, 0.5), (0.99, 0.99)])
def test_differences_of_paired_shares_are_covered(first: float, second: float) -> None:
    chance = np.random.default_rng(4)
    drawn = (chance.random((1500, 60)) < first).astype(float) - (chance.random((1500, 60)) < second)
    found = [of_mean(values, TWO, APART, 0, 0.05) for values in drawn]
    assert np.mean([low <= first - second <= high for low, high in found]) > 0.93
