"""Numbers of one map: the same decimals down a column, and 0 only where the score is 0."""

from __future__ import annotations

import numpy as np
import pytest

from components.compare.digits import digits_of
from components.numbers import fixed


def column(scores: list[float], sign: bool = True, share: bool = False) -> list[str]:
    given = np.array(scores)
    digits = digits_of(given, float(np.nanmax(np.abs(given))), sign, share)
    return [digits.cell(score) for score in scores]


@pytest.mark.parametrize(
    ("value", "decimals", "sign", "said"),
    [
        (0.0, 2, True, "0.00"),
        (-0.0, 2, True, "0.00"),
        (0.5, 2, True, "+0.50"),
        (-0.5, 2, True, "−0.50"),
        (0.004, 2, True, "<0.01"),
        (-0.004, 2, True, ">−0.01"),
        (0.006, 2, False, "0.01"),
        (0.4, 0, True, "<1"),
    ],
)
def test_only_0_reads_0(value: float, decimals: int, sign: bool, said: str) -> None:
    assert fixed(value, decimals, sign) == said


def test_a_column_has_the_decimals_of_its_largest_score() -> None:
    assert column([0.1806, -0.0123, 0.005, 0.0]) == ["+0.181", "−0.012", "+0.005", "0.000"]
    assert column([0.1806, 0.0001], sign=False) == ["0.181", "<0.001"]


def test_ranks_are_whole_and_shares_in_percent() -> None:
    assert column([16.0, 1.0], sign=False) == ["16", "1"]
    assert column([0.5, -0.1234], share=True) == ["+50.0\u00a0%", "−12.3\u00a0%"]


def test_a_map_of_tiny_scores_has_one_power_of_ten_beside_its_scale() -> None:
    assert column([3.21e-8, -1e-9]) == ["+3.21", "−0.10"]
    digits = digits_of(np.array([3.21e-8]), 3.21e-8, True, False)
    assert f"{digits.end(3.21e-8)}{digits.power}" == "3.21 × 10⁻⁸"
