"""What a contrast comes to, against what is computed by hand from the same values."""

from __future__ import annotations

import numpy as np
import pytest

from engine.metrics.bootstrap import interval
from engine.reproduction.claims import Contrast, Term
from engine.reproduction.estimates import Cell, NoNumber, Values, estimate

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
    assert made.interval == pytest.approx(interval(gaps, 3))


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


def test_a_spread_is_that_of_the_means() -> None:
    chance = np.random.default_rng(1)
    values = chance.normal([[0.2], [0.3], [0.8]], 0.2, (3, 40))
    found = {key: one for m, v in zip("abc", values, strict=True) for key, one in cell(m, "lime", v.tolist()).items()}
    made = estimate(Contrast("", (term(1, "lime", "a b c", take="spread"),)), found, 0)
    assert made.value == pytest.approx(values.mean(axis=1).max() - values.mean(axis=1).min())
    drawn = [np.ptp(values[:, chance.integers(0, 40, 40)].mean(axis=1)) for _ in range(4000)]
    assert made.interval == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.015)


def test_numbers_of_two_data_sets_are_not_paired() -> None:
    other = cell("bert", "lime", [0.6, 0.8, 0.4], task="nli")
    made = estimate(Contrast("", (term(1, "lime", "bert"), term(-1, "lime", "bert", task="nli"))), LIME | other, 0)
    assert made.value == pytest.approx(0.25 - 0.6)
    assert made.n == 3
    here, there = interval(np.array([0.1, 0.2, 0.3, 0.4])), interval(-np.array([0.6, 0.8, 0.4]))
    assert here is not None
    assert there is not None
    assert made.interval[0] == pytest.approx(-0.35 - np.hypot(0.25 - here[0], -0.6 - there[0]))
    assert made.interval[1] == pytest.approx(-0.35 + np.hypot(here[1] - 0.25, there[1] + 0.6))


def test_a_share_that_all_examples_have_leaves_room_for_others() -> None:
    found = cell("bert", "lime", [1.0] * 20, "gt_overlap")
    made = estimate(Contrast("", (term(1, "lime", "bert", "gt_overlap"),)), found, 0)
    assert made.interval == pytest.approx((0.025 ** (1 / 20), 1.0)), "so large a share has 20 of 20 in 2.5 %"


@pytest.mark.parametrize(
    ("found", "said"),
    [({}, "no example has a value of mean_rank_pct of lime"), (cell("bert", "lime", [0.5]), "fewer than two examples")],
)
def test_what_has_no_number_says_why(found: Found, said: str) -> None:
    with pytest.raises(NoNumber, match=said):
        estimate(Contrast("", (term(1, "lime", "bert"),)), found, 0)
