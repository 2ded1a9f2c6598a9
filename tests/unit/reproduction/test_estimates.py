"""What a contrast comes to, against what is computed by hand from the same values."""

from __future__ import annotations

import numpy as np
import pytest

from engine.reproduction.claims import Contrast, MethodTerm
from engine.reproduction.estimates import ExampleValues, ValueKey, estimate
from engine.reproduction.intervals import mean_interval
from engine.reproduction.query import NoNumber
from engine.reproduction.verdicts import ERROR_RATE

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
