"""Curves by hand, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.metrics.results import interval
from engine.randomization.curves import Curve, CurvePoint, curves_of, judge, verdicts_of
from engine.randomization.result import FINE, MEASURES, ModelRandomization, Stage
from engine.randomization.result import rows as rows_of

Ends = tuple[float, float]


def curve(ends: Sequence[Ends | None], method: str = "gradient_l2", n: int = 50) -> Curve:
    points = [
        CurvePoint(Stage("cascading", str(9 - at), at + 1, (str(9 - at),)), None if own is None else sum(own) / 2, own,
              0 if own is None else n, (), {"flat": 50} if own is None else {})
        for at, own in enumerate(ends)
    ]  # fmt: skip
    return Curve("m", "d", method, "spearman", "cascading", 1.0, tuple(points))


ZERO, HALF, HIGH, SAME = (-0.1, 0.15), (0.4, 0.6), (0.75, 0.9), (0.97, 1.0)


@pytest.mark.parametrize(
    ("ends", "kind", "passes", "still"),
    [
        ([ZERO, ZERO, ZERO], "at_once", True, 0),
        ([(-0.9, -0.5), ZERO], "at_once", True, 0),
        ([HALF, ZERO, ZERO], "falls", True, 0),
        ([SAME, SAME, HALF, ZERO], "falls", True, 2),
        ([HIGH, HALF], "partly", False, 0),
        ([SAME, HIGH], "high", False, 1),
        ([SAME, SAME], "invariant", False, 2),
        ([HALF, (0.1, 0.4)], "unsure", None, 0),
        ([None, None], "no_order", None, 0),
    ],
)
def test_the_verdict_follows_from_the_intervals(
    ends: list[Ends | None], kind: str, passes: bool | None, still: int
) -> None:
    made = judge(curve(ends))
    assert (made.kind, made.passes, made.still) == (kind, passes, still)


def test_signs_that_become_random_do_not_hide_sizes_that_stay() -> None:
    made = judge(curve([ZERO, ZERO]), curve([HIGH, HALF]))
    assert (made.kind, made.passes) == ("partly", False)
    assert made.reason.startswith(
        "Its signs become random, but the order of its absolute scores stays similar (0.50, 95% interval 0.40"
    )
    assert judge(curve([ZERO, ZERO]), curve([HIGH, ZERO])).kind == "at_once"


def test_an_order_that_is_turned_round_is_told() -> None:
    told = judge(curve([HALF, (-0.9, -0.5)])).reason
    assert told == "Its correlation falls below zero (−0.70, 95% interval −0.90 to −0.50, block 8 randomized)."
    assert "is about zero from the first stage on (0.02," in judge(curve([ZERO, (-0.9, -0.5)])).reason


def test_the_reason_of_an_open_or_steady_verdict_names_the_limit_that_it_used() -> None:
    open_one = judge(curve([HALF, (0.03, 0.4)])).reason
    assert open_one.startswith(
        "Its final interval has values on both sides of 0.2, up to which a correlation counts as"
    )
    assert judge(curve([SAME, SAME])).reason.startswith(
        "Its maps hardly change: the correlation is at least 0.95 at every stage ("
    )


def test_what_rounds_to_zero_has_no_minus() -> None:
    assert "(0.00, 95% interval −0.05 to 0.05," in judge(curve([HALF, (-0.052, 0.05)])).reason


def test_few_examples_chance_and_methods_that_it_is_not_meant_for() -> None:
    assert judge(curve([ZERO], n=4)).reason == "Only 4 examples have a correlation; a verdict needs at least 5."
    assert judge(curve([ZERO], n=1)).reason == "Only 1 example has a correlation; a verdict needs at least 5."
    assert judge(curve([ZERO], "random")).kind == "baseline"
    made = judge(curve([ZERO], "lime"))
    assert (made.kind, made.passes) == ("at_once", None)
    assert made.reason.endswith("it uses only the model's predictions, not its parameters.")


def test_an_example_counts_by_its_mean_over_the_seeds_and_the_interval_is_over_examples() -> None:
    rho = np.array([[0.1, 0.5, np.nan], [0.3, np.nan, np.nan]])
    likeness = np.full((1, 2, 1, len(MEASURES), 3), np.nan)
    likeness[0, :, 0, 0] = rho
    why = np.where(np.isnan(rho), 0, FINE)[None, :, None]
    found = ModelRandomization(
        "m", "d", (Stage("cascading", "2", 1, ("2",)),), (0, 1), ("gradient_l2",), (4, 7, 9), ("good",) * 3,
        likeness, why, ("flat",), np.array([0.9, 0.8, 0.7]), np.array([[[0.5, 0.6, 0.7], [0.3, 0.2, 0.1]]]),
        np.array([[[True, False, True], [True, False, False]]]), {11: "unread"}, False, True,
    )  # fmt: skip
    signed, *_, likely, changed = curves_of(found)
    [point] = signed.points
    assert point.value == pytest.approx(0.35)
    assert point.n == 2
    assert point.interval == pytest.approx(interval(np.array([0.2, 0.5])))
    assert point.by_seed == pytest.approx((0.3, 0.3))
    assert point.skipped == {"flat": 3, "unread": 2}
    assert (likely.start, likely.points[0].value) == pytest.approx((0.8, 0.4))
    assert changed.points[0].value == pytest.approx(0.5)
    rows = list(rows_of(found))
    assert len(rows) == 3 + 2 * 2 * 3
    assert [row["value"] for row in rows if row["metric"] == "spearman"] == [0.1, 0.5, 0.3]
    assert rows[0] == {
        "model": "m", "dataset": "d", "example": 4, "method": "", "metric": "probability", "value": 0.5,
        "mode": "cascading", "block": "2", "seed": 0, "stage": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "regression", "kinds"),
    [
        ([0, 0], False, ["same_model", "baseline"]),
        ([0, 1], False, ["same_model", "baseline"]),  # of twenty: 95% keep their class
        ([2, 2], False, ["invariant", "baseline"]),  # 90%, which is not more than that
        ([0, 9], False, ["invariant", "baseline"]),
        ([0, 0], True, ["invariant", "baseline"]),
    ],
)
def test_where_the_model_answers_as_before_no_method_is_judged(
    changed: list[int], regression: bool, kinds: list[str]
) -> None:
    """Two stages, one seed, twenty examples, and a method whose maps stay the same to the end."""
    stages = tuple(Stage("cascading", str(2 - at), at + 1, (str(2 - at),)) for at in range(2))
    others = np.arange(20)[None, :] < np.array(changed)[:, None]
    found = ModelRandomization(
        "m", "d", stages, (0,), ("gradient_l2", "random"), tuple(range(20)), ("good",) * 20,
        np.ones((2, 1, 2, len(MEASURES), 20)), np.full((2, 1, 2, 20), FINE), (), np.full(20, 0.9),
        np.full((2, 1, 20), 0.9), others[:, None], {}, regression, True,
    )  # fmt: skip
    made = verdicts_of(found)
    assert [one.kind for one in made] == kinds
    if kinds[0] == "same_model":
        share = "100%" if changed == [0, 0] else "95%"
        assert made[0].passes is None
        assert f"At least {share} of the predictions keep their class at every stage" in made[0].reason
