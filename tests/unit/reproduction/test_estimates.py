"""What a contrast comes to, against what is computed by hand from the same values."""

from __future__ import annotations

import numpy as np
import pytest

from engine.reproduction.claims import Contrast, Term
from engine.reproduction.estimates import Cell, NoNumber, Values, estimate
from engine.reproduction.intervals import of_mean
from engine.reproduction.verdicts import CHANCE

Found = dict[Cell, Values]


def cell(model: str, method: str, values: list[float], metric: str = "mean_rank_pct", task: str = "marked") -> Found:
    return {(task, model, method, metric): dict(enumerate(values))}


def term(times: float, methods: str, models: str, metric: str = "mean_rank_pct", **more: str) -> Term:
    return Term(times, more.pop("task", "marked"), metric, tuple(methods.split()), tuple(models.split()), **more)  # type: ignore[arg-type]


LIME = cell("bert", "lime", [0.1, 0.2, 0.3, 0.4]) | cell("t5", "lime", [0.3, 0.2, 0.5, 0.2])
GRADIENT = cell("bert", "gradient", [0.5, 0.4, 0.9, 0.4]) | cell("t5", "gradient", [0.7, 0.8, 0.3, 0.6])


def test_a_difference_is_taken_within_each_example() -> None:
    made = estimate(Contrast("", (term(1, "gradient", "bert t5"), term(-1, "lime", "bert t5"))), LIME | GRADIENT, 3)
    gaps = np.array([0.6 - 0.2, 0.6 - 0.2, 0.6 - 0.4, 0.5 - 0.3])
    assert made.value == pytest.approx(0.3)
    assert made.n == 4
    terms = (term(1, "gradient", "bert t5"), term(-1, "lime", "bert t5"))
    assert made.intervals == (pytest.approx(of_mean(gaps, (-1.0, 1.0), terms, 3, CHANCE)),)


def test_more_is_better_once_it_is_oriented() -> None:
    terms = (term(1, "lime", "bert"), term(-1, "gradient", "bert"))
    plain, oriented = (estimate(Contrast("", terms, flag), LIME | GRADIENT, 0).value for flag in (False, True))
    assert plain == pytest.approx(-0.3)
    assert oriented == pytest.approx(0.3), "a low rank is good"


def test_only_examples_count_that_have_every_number() -> None:
    found = LIME | GRADIENT
    found["marked", "bert", "lime", "mean_rank_pct"] = {0: 0.1, 2: 0.3, 7: 0.9}
    made = estimate(Contrast("", (term(1, "lime", "bert"), term(-1, "gradient", "bert"))), found, 0)
    assert made.value == pytest.approx((-0.4 - 0.6) / 2)
    assert made.n == 2


def test_numbers_of_two_data_sets_are_not_paired() -> None:
    other = cell("bert", "lime", [0.6, 0.8, 0.4], task="nli")
    made = estimate(Contrast("", (term(1, "lime", "bert"), term(-1, "lime", "bert", task="nli"))), LIME | other, 0)
    assert made.value == pytest.approx(0.25 - 0.6)
    assert made.n == 3
    terms = (term(1, "lime", "bert"),)
    here = of_mean(np.array([0.1, 0.2, 0.3, 0.4]), (0.0, 1.0), terms, 0, CHANCE)
    there = of_mean(-np.array([0.6, 0.8, 0.4]), (-1.0, 0.0), terms, 0, CHANCE)
    [(low, high)] = made.intervals
    assert low == pytest.approx(-0.35 - np.hypot(0.25 - here[0], -0.6 - there[0]))
    assert high == pytest.approx(-0.35 + np.hypot(here[1] - 0.25, there[1] + 0.6))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, "no example has a value of mean_rank_pct of lime on bert"),
        (cell("bert", "lime", [0.5]), "fewer than two examples"),
    ],
)
def test_what_has_no_number_says_why(found: Found, said: str) -> None:
    with pytest.raises(NoNumber, match=said):
        estimate(Contrast("", (term(1, "lime", "bert"),)), found, 0)
