"""The entropy of a map: by hand, by a slow oracle, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from engine.metrics.complexity import complexity
from tests.oracles.plausibility import entropy_of_shares

SCORES = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=1, max_size=20).filter(
    lambda values: any(abs(value) > 1e-6 for value in values)
)


def test_by_hand() -> None:
    assert complexity(np.array([0.0, -3.0, 0.0])) == 0
    assert complexity(np.array([1.0, -1.0, 1.0, -1.0])) == pytest.approx(np.log(4))
    assert complexity(np.array([3.0, -1.0])) == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert complexity(np.zeros(3)) is None


@given(SCORES)
def test_it_is_the_entropy_of_the_shares_whatever_their_sign_and_scale(values: list[float]) -> None:
    scores = np.array(values)
    assert complexity(scores) == pytest.approx(entropy_of_shares(values), abs=1e-9)
    assert complexity(scores) == pytest.approx(float(stats.entropy(np.abs(scores))), abs=1e-9)
    assert complexity(-7 * scores) == pytest.approx(complexity(scores), abs=1e-9)
