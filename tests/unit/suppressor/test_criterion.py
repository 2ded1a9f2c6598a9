"""The criterion: its verdicts on scores whose answer is known, its error rate, and Holm's correction by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ExegesisError
from engine.suppressor.criterion import CREDITS, NEITHER, PASSES, holm, judge


def test_verdicts_on_scores_whose_answer_is_known() -> None:
    rng = np.random.default_rng(0)
    informative, suppressor, unused = (scale * rng.standard_normal(40) for scale in (3, 3, 0.1))
    verdicts = judge(
        {
            "credits": np.column_stack([informative, suppressor, unused]),
            "passes": np.column_stack([informative, unused, rng.permutation(unused)]),
            "neither": rng.standard_normal((40, 3)),
            "rounding": np.column_stack([informative, np.full(40, 1e-13), np.zeros(40)]),
            "constant": np.tile([1.0, -0.5, 0.0], (40, 1)),
        }
    )
    assert [one.verdict for one in verdicts] == [CREDITS, PASSES, NEITHER, PASSES, CREDITS]
    assert verdicts[-1].share == pytest.approx(1 / 3)
    assert (verdicts[-1].above, verdicts[-1].high) == (1.0, 1.0)
    assert (verdicts[3].above, verdicts[3].p) == (0.0, 1.0), "all are ties"


def test_the_p_value_is_that_of_the_sign_test() -> None:
    amounts = np.zeros((10, 3))
    amounts[:, 0] = 1
    amounts[:8, 1] = 1
    amounts[8:, 2] = 1
    (verdict,) = judge({"one": amounts})
    assert verdict.p == pytest.approx((45 + 10 + 1) / 2**10)
    assert verdict.above == 0.8


def test_methods_that_credit_nothing_are_accused_at_most_as_often_as_declared() -> None:
    rng = np.random.default_rng(1)
    accused = [
        any(one.verdict != NEITHER for one in judge({str(m): rng.random((30, 3)) for m in range(5)}))
        for _ in range(300)
    ]
    assert np.mean(accused) < 0.12, "two features, each at 5% over all methods"


def test_scores_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ExegesisError, match="lime: Some scores are not finite numbers"):
        judge({"lime": np.array([[1.0, np.nan, 0.0]])})


def test_holm_by_hand() -> None:
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.5]), [0.04, 0.09, 0.09, 0.5])
    np.testing.assert_allclose(holm([0.5, 0.9]), [1.0, 1.0])
