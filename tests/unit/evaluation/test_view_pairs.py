"""Two metrics against each other: means over the examples that have both, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.evaluation.views.pairs import NOT_MEASURED, pairs
from engine.evaluation.views.points import Wanted
from engine.metrics.results import interval
from tests.unit.evaluation.by_hand import by_hand


def test_only_examples_that_have_both_values_count() -> None:
    found = by_hand(
        {
            ("m", "lime", "plausibility_auc"): [0.5, "nothing is marked", 0.9, 0.7],
            ("m", "lime", "comprehensiveness"): [0.2, 1.0, 0.4, "too long"],
        }
    )
    (pair,) = pairs(found, "plausibility_auc", "comprehensiveness")
    assert [pair.x.value, pair.y.value] == pytest.approx([0.7, 0.3]), "over examples 0 and 2"
    assert pair.x.interval == interval(np.array([0.5, 0.9]), 0, share=True)
    assert pair.y.interval == interval(np.array([0.2, 0.4]), 0)
    assert pair.x.n == pair.y.n == 2
    assert pair.x.skipped == pair.y.skipped == {"nothing is marked": 1, "too long": 1}


def test_methods_without_a_common_example_have_no_value() -> None:
    found = by_hand({("m", "lime", "seconds"): [1.0, "broken"], ("m", "lime", "complexity"): ["flat", 2.0]})
    (pair,) = pairs(found, "seconds", "complexity")
    assert (pair.x.value, pair.y.value, pair.x.n) == (None, None, 0)
    assert pair.x.skipped == {"flat": 1, "broken": 1}


def test_a_method_that_lacks_one_metric_wholly_is_no_pair_and_an_example_that_does_is_told() -> None:
    found = by_hand(
        {
            ("m", "lime", "seconds"): [1.0, 3.0],
            ("m", "gradient", "seconds"): [1.0],
            ("m", "lime", "complexity"): [2.0],
        }
    )
    (pair,) = pairs(found, "seconds", "complexity")
    assert (pair.x.value, pair.x.skipped) == (1.0, {NOT_MEASURED: 1})


def test_pairs_come_in_the_order_of_the_plan_as_far_as_wanted() -> None:
    found = by_hand({(m, id, x): [1, 2] for m in ("b", "a") for id in ("z", "c") for x in ("seconds", "complexity")})
    order = [(one.x.model, one.y.method) for one in pairs(found, "seconds", "complexity")]
    assert order == [("b", "z"), ("b", "c"), ("a", "z"), ("a", "c")]
    assert [one.x.model for one in pairs(found, "seconds", "complexity", Wanted(["a"], ["c"]))] == ["a"]
