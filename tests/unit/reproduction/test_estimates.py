"""Contrasts and the intervals that decide claims: by hand, against published numbers, and by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest

from engine.metrics.results import interval, share_interval
from engine.reproduction.claims import Contrast, MethodTerm, NoNumber
from engine.reproduction.estimates import (
    ExampleValues,
    ValueKey,
    estimate,
    mean_interval,
    range_of_sum,
    variance_intervals,
    widened_interval,
    with_room,
)
from engine.reproduction.report import ERROR_RATE

Values = dict[ValueKey, ExampleValues]


def cell(model: str, method: str, values: list[float], metric: str = "mean_rank_pct", task: str = "marked") -> Values:
    return {(task, model, method, metric): dict(enumerate(values))}


def term(times: float, methods: str, models: str, metric: str = "mean_rank_pct", **more: str) -> MethodTerm:
    return MethodTerm(times, more.pop("task", "marked"), metric, tuple(methods.split()), tuple(models.split()), **more)  # type: ignore[arg-type]


LIME = cell("bert", "lime", [0.1, 0.2, 0.3, 0.4]) | cell("t5", "lime", [0.3, 0.2, 0.5, 0.2])
GRADIENT = cell("bert", "gradient", [0.5, 0.4, 0.9, 0.4]) | cell("t5", "gradient", [0.7, 0.8, 0.3, 0.6])


def test_a_difference_is_taken_within_each_example() -> None:
    result = estimate(Contrast("", (term(1, "gradient", "bert t5"), term(-1, "lime", "bert t5"))), LIME | GRADIENT, 3)
    gaps = np.array([0.6 - 0.2, 0.6 - 0.2, 0.6 - 0.4, 0.5 - 0.3])
    assert result.value == pytest.approx(0.3)
    assert result.n == 4
    terms = (term(1, "gradient", "bert t5"), term(-1, "lime", "bert t5"))
    assert result.intervals == (pytest.approx(mean_interval(gaps, (-1.0, 1.0), terms, 3, ERROR_RATE)),)


def test_more_is_better_once_it_is_oriented() -> None:
    terms = (term(1, "lime", "bert"), term(-1, "gradient", "bert"))
    plain, oriented = (estimate(Contrast("", terms, flag), LIME | GRADIENT, 0).value for flag in (False, True))
    assert plain == pytest.approx(-0.3)
    assert oriented == pytest.approx(0.3), "a low rank is good"


def test_only_examples_count_that_have_every_number() -> None:
    values = LIME | GRADIENT
    values["marked", "bert", "lime", "mean_rank_pct"] = {0: 0.1, 2: 0.3, 7: 0.9}
    result = estimate(Contrast("", (term(1, "lime", "bert"), term(-1, "gradient", "bert"))), values, 0)
    assert result.value == pytest.approx((-0.4 - 0.6) / 2)
    assert result.n == 2


def test_numbers_of_two_data_sets_are_not_paired() -> None:
    other = cell("bert", "lime", [0.6, 0.8, 0.4], task="nli")
    result = estimate(Contrast("", (term(1, "lime", "bert"), term(-1, "lime", "bert", task="nli"))), LIME | other, 0)
    assert result.value == pytest.approx(0.25 - 0.6)
    assert result.n == 3
    terms = (term(1, "lime", "bert"),)
    here = mean_interval(np.array([0.1, 0.2, 0.3, 0.4]), (0.0, 1.0), terms, 0, ERROR_RATE)
    there = mean_interval(-np.array([0.6, 0.8, 0.4]), (-1.0, 0.0), terms, 0, ERROR_RATE)
    [(low, high)] = result.intervals
    assert low == pytest.approx(-0.35 - np.hypot(0.25 - here[0], -0.6 - there[0]))
    assert high == pytest.approx(-0.35 + np.hypot(here[1] - 0.25, there[1] + 0.6))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "no example has a value of mean_rank_pct of lime on bert"),
        (cell("bert", "lime", [0.5]), "fewer than two examples"),
    ],
)
def test_what_has_no_number_says_why(values: Values, message: str) -> None:
    with pytest.raises(NoNumber, match=message):
        estimate(Contrast("", (term(1, "lime", "bert"),)), values, 0)


HITS = (MethodTerm(1, "marked", "gt_overlap", ("lime",), ("bert",)),)
APART = (*HITS, MethodTerm(-1, "marked", "gt_overlap", ("gradient",), ("bert",)))
FALL = (MethodTerm(1, "marked", "comprehensiveness", ("lime",), ("bert",)),)
FALLS = (*FALL, MethodTerm(-1, "marked", "comprehensiveness", ("gradient",), ("bert",)))
ONE, TWO = (0.0, 1.0), (-1.0, 1.0)
SIZES = tuple(f"size-{number}" for number in range(1, 5))
RUNS = 400


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (19, 20), (20, 20), (7, 200)])
def test_a_share_has_clopper_and_pearsons_interval(hits: int, n: int) -> None:
    expected = binomtest(hits, n).proportion_ci(0.99, "exact")
    assert share_interval(hits, n, 0.01) == pytest.approx((expected.low, expected.high))
    values = np.repeat([1.0, 0.0], [hits, n - hits])
    assert mean_interval(values, ONE, HITS, 0, 0.01) == pytest.approx((expected.low, expected.high))


def test_a_paired_difference_of_shares_is_bonett_and_prices() -> None:
    """By hand: 12 against 5 of 50 that differ, as if 13 and 6 of 52."""
    values = np.repeat([1.0, -1.0, 0.0], [12, 5, 33])
    more, less = 13 / 52, 6 / 52
    half = 1.959964 * np.sqrt((more + less - (more - less) ** 2) / 52)
    assert mean_interval(values, TWO, APART, 0, 0.05) == pytest.approx((more - less - half, more - less + half))


@pytest.mark.parametrize("terms", [HITS, APART, FALL, FALLS], ids=["share", "of shares", "fall", "of falls"])
def test_a_few_equal_examples_settle_nothing(terms: tuple[MethodTerm, ...]) -> None:
    """Without room a claim of `at least -0.05`, or of `more than 0`, would hold with two examples."""
    values = np.full(2, 1.0 if len(terms) == 1 else 0.0)
    low, high = mean_interval(values, range_of_sum(terms, [term.times for term in terms]), terms, 0, 0.05)
    assert high - low > 0.6
    assert low < -0.05 or len(terms) == 1
    many = mean_interval(np.repeat(values, 100), range_of_sum(terms, [term.times for term in terms]), terms, 0, 0.05)
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
    assert range_of_sum(FALL, [1]) == (-1.0, 1.0)
    assert range_of_sum(FALLS, [1, -1]) == (-1.0, 1.0)
    other = MethodTerm(-1, "marked", "comprehensiveness", ("lime",), ("t5",))
    assert range_of_sum((*FALL, other), [1, -1]) == (-2.0, 2.0)


def test_an_interval_is_widened_as_far_as_students_t() -> None:
    values = np.random.default_rng(2).normal(0.3, 1.0, 400)
    assert widened_interval(values, 0, 0.05) == pytest.approx(interval(values))
    low, high = widened_interval(values, 0, 0.05 / 48)
    assert high - low == pytest.approx(2 * 3.31 * values.std() / 20, rel=0.05), "t of 399 at 1 - 0.05 / 96"


@pytest.mark.parametrize(("first", "second"), [(0.98, 0.95), (0.5, 0.5), (0.99, 0.99)])
def test_differences_of_paired_shares_are_covered(first: float, second: float) -> None:
    chance = np.random.default_rng(4)
    drawn = (chance.random((1500, 60)) < first).astype(float) - (chance.random((1500, 60)) < second)
    found = [mean_interval(values, TWO, APART, 0, 0.05) for values in drawn]
    assert np.mean([low <= first - second <= high for low, high in found]) > 0.93


def drawn(chance: np.random.Generator, shares: list[float], n: int = 200) -> np.ndarray:
    return (chance.random((n, len(shares))) < shares).astype(np.float64)


def test_a_variance_is_the_mean_over_pairs_of_different_examples() -> None:
    """The slow way: for each two examples the covariance of their values over models."""
    values = np.random.default_rng(1).normal(size=(7, 4))
    slow = [np.cov(values[a], values[b])[0, 1] for a, b in itertools.permutations(range(7), 2)]
    found, _ = variance_intervals([values], [1.0], [ERROR_RATE])
    assert found == pytest.approx(np.mean(slow))
    assert variance_intervals([values, values[:, ::-1]], [1.0, -1.0], [ERROR_RATE])[0] == pytest.approx(0.0), (
        "of the same means"
    )


@pytest.mark.parametrize("shares", [[0.5] * 4, [0.9] * 4, [0.0, 1.0, 0.1, 0.1], [0.4, 0.5, 0.6, 0.5], [0.5] * 2])
def test_a_true_variance_is_covered_also_where_models_are_equal(shares: list[float]) -> None:
    """The largest mean less the smallest, resampled, covered a true 0 in no run of 200."""
    chance, true = np.random.default_rng(3), float(np.var(shares, ddof=1))
    found = [variance_intervals([drawn(chance, shares)], [1.0], [ERROR_RATE]) for _ in range(RUNS)]
    assert np.mean([value for value, _ in found]) == pytest.approx(true, abs=0.003), "right on average"
    assert np.mean([low <= true <= high for _, [(low, high)] in found]) > 0.93


def test_a_noisy_method_does_not_vary_more_than_a_saturated_one() -> None:
    chance, wrong = np.random.default_rng(5), 0
    pair = ((1, "a"), (-1, "b"))
    terms = (MethodTerm(times, "marked", "gt_overlap", (method,), SIZES, "variance") for times, method in pair)
    contrast = Contrast("", tuple(terms))
    for _ in range(RUNS):
        found: dict[ValueKey, ExampleValues] = {}
        for method, shares in (("a", [0.5] * 4), ("b", [1.0] * 4)):
            columns = drawn(chance, shares).T.tolist()
            for size, values in zip(SIZES, columns, strict=True):
                found["marked", size, method, "gt_overlap"] = dict(enumerate(values))
        [(low, high)] = estimate(contrast, found, 0).intervals
        wrong += low > 0 or high < 0
    assert wrong / RUNS < 0.06


def test_a_method_that_does_vary_is_told_from_one_that_does_not() -> None:
    chance = np.random.default_rng(6)
    pair = [drawn(chance, [0.0, 1.0, 0.1, 0.1]), drawn(chance, [1.0, 0.98, 1.0, 1.0])]
    _, [(low, _)] = variance_intervals(pair, [1.0, -1.0], [ERROR_RATE / 10])
    assert low > 0.1


def test_two_examples_say_of_a_variance_next_to_nothing() -> None:
    _, [(low, high)] = variance_intervals([np.ones((2, 4))], [1.0], [ERROR_RATE])
    assert low < -0.5
    assert high > 0.5
