"""Agreement of a student's answers with its teacher's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr

from engine.scaffold.simulability import simulability

TEACHER = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 3.0], [1.0, 0.0, 0.9]])


def test_classes_count_and_their_sizes_do_not() -> None:
    assert simulability(TEACHER * 7 - 100, TEACHER, regression=False) == 1
    student = TEACHER.copy()
    student[0] = [0.0, 9.0, 0.0]
    assert simulability(student, TEACHER, regression=False) == 0.75
    assert simulability(np.roll(TEACHER, 1, axis=1), TEACHER, regression=False) == 0


def test_scores_are_correlated() -> None:
    draw = np.random.default_rng(0)
    teacher = draw.normal(size=(50, 1))
    student = 0.3 * teacher + draw.normal(size=(50, 1))
    wanted = pearsonr(student[:, 0], teacher[:, 0]).statistic
    assert simulability(student, teacher, regression=True) == pytest.approx(wanted)
    assert simulability(5 - 2 * teacher, teacher, regression=True) == pytest.approx(-1)


@pytest.mark.parametrize("constant", [0.0, 4.0])
def test_a_constant_score_has_no_correlation(constant: float) -> None:
    teacher = np.arange(5.0)[:, None]
    same = np.full((5, 1), constant)
    same[2] += 1e-13
    assert simulability(same, teacher, regression=True) is None
    assert simulability(teacher, same, regression=True) is None


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("regression", [False, True])
def test_answers_that_are_no_numbers_agree_with_nothing(wrong: float, regression: bool) -> None:
    student = TEACHER.copy()
    student[1, 0] = wrong
    assert simulability(student, TEACHER, regression) is None
