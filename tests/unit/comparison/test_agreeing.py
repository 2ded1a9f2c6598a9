"""Agreement of maps on common parts: by hand, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from engine.comparison.agreeing import (
    How,
    agree,
    agreements,
    apart,
    by_chance,
    differences,
    moved_share,
    rank_moves,
    ranks,
)
from engine.errors import UsageError
from engine.request import Example
from tests.unit.components.making import explanation

BY_SIGN, BY_SIZE = How(), How(order="size")
NAN = np.nan


def test_every_two_maps_have_the_rho_of_scipy_in_either_order() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 17)).round(1)
    for how, of in ((BY_SIZE, np.abs(scores)), (BY_SIGN, scores)):
        found = agreements(scores, ["a", "b", "c", "d"], how)
        for i in range(4):
            for j in range(4):
                assert found.values[i, j] == pytest.approx(stats.spearmanr(of[i], of[j]).statistic, abs=1e-12)
        assert (found.n, found.k, found.constant) == (17, 2, ())


def test_two_maps_are_compared_on_what_both_have() -> None:
    scores = np.array([[1.0, 2.0, 3.0, 4.0, NAN], [NAN, 2.0, 3.0, 1.0, 9.0], [5.0, 1.0, 2.0, 3.0, 4.0]])
    found = agreements(scores, ["a", "b", "c"], How())
    assert found.values[0, 1] == pytest.approx(stats.spearmanr([2, 3, 4], [2, 3, 1]).statistic)
    assert found.values[0, 2] == pytest.approx(stats.spearmanr([1, 2, 3, 4], [5, 1, 2, 3]).statistic)


def test_the_shared_top_by_hand() -> None:
    one, other = np.array([9.0, 8.0, -7.0, 1.0]), np.array([1.0, -9.0, 7.0, 2.0])
    top_two = How("top_k", "size", 50)
    assert agree(one, other, top_two) == 0.5, "by size: the first two, and the middle ones"
    assert agree(one, other, How("top_k", "sign", 50)) == 0.0, "by sign: the first two, and the last two"
    assert agree(one, other, How("top_k", percent=1)) == 0.0, "at least one part counts"


def test_equal_scores_stand_in_an_order_of_their_own_in_each_map() -> None:
    """Two in 19 of each other's word, and of the 18 that both have at 0, of three."""
    one, other = np.eye(20)[[3, 11]]
    assert agree(one, other, How("top_k")) == pytest.approx((2 / 19 * 2 + 18 * (2 / 19) ** 2) / 3)


def test_what_only_one_map_has_is_no_part_of_what_is_compared() -> None:
    scores = np.array([[1.0, 2.0, 3.0, NAN], [3.0, NAN, 1.0, 2.0], [2.0, NAN, 1.0, NAN]])
    assert agreements(scores, ["a", "b", "c"], How()).n == 2


def test_a_map_without_order_agrees_with_nobody_and_is_named() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [2.0, -2.0, 2.0], [3.0, 2.0, 1.0]])
    found = agreements(scores, ["a", "flat", "b"], BY_SIZE)
    assert found.constant == ("flat",)
    assert np.isnan(found.values[1]).all()
    assert agreements(scores, ["a", "signed", "b"], BY_SIGN).constant == ()


def test_one_part_has_no_order() -> None:
    found = agreements(np.array([[1.0], [2.0]]), ["a", "b"], How("top_k"))
    assert found.constant == ("a", "b")
    assert apart(found) is None


def test_disagreement_is_one_minus_the_mean_of_the_pairs_or_of_those_with_the_reference() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    found = agreements(scores, ["a", "b", "c"], How())
    assert apart(found) == pytest.approx(1 - (1 - 1 - 1) / 3)
    assert apart(found, 0) == pytest.approx(1.0)
    assert apart(found, 2) == pytest.approx(2.0)


def test_maps_by_chance_do_not_count_unless_they_are_what_is_asked_about() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
    found = agreements(scores, ["a", "b", "random"], How())
    assert apart(found, by_chance=[2]) == pytest.approx(0.0)
    assert apart(found, 0, by_chance=[2]) == pytest.approx(0.0)
    assert apart(found, 2, by_chance=[2]) == pytest.approx(1.5)
    assert apart(agreements(scores[1:], ["b", "random"], How()), by_chance=[1]) == pytest.approx(1.5)


def test_maps_of_methods_that_know_nothing_are_known_by_their_method() -> None:
    text = Example("warmth stays")
    maps = [explanation(text, method=method) for method in ("occlusion", "random", "gradient")]
    assert by_chance(maps) == (1,)


def test_ranks_and_moves_by_hand() -> None:
    assert ranks(np.array([5.0, 9.0, 5.0, 1.0])).tolist() == [2.0, 1.0, 2.0, 4.0]
    reference, other = np.array([4.0, 3.0, -2.0, 1.0, NAN]), np.array([1.0, 3.0, 2.0, -4.0, 8.0])
    assert rank_moves(reference, other, BY_SIZE)[:4].tolist() == [-3.0, 0.0, 0.0, 3.0]
    assert np.isnan(rank_moves(reference, other, How())[4])
    assert rank_moves(reference, other, BY_SIGN)[:4].tolist() == [-2.0, 1.0, 2.0, -1.0]
    assert np.isnan(rank_moves(reference, np.ones(5), How())).all()


@pytest.mark.parametrize(("measure", "order", "named"), [("pearson", "size", "measure"), ("top_k", "up", "order")])
def test_what_is_not_known_is_named(measure: str, order: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        How(measure, order)


def test_differences_are_of_shares_of_what_both_have() -> None:
    """1 and 3 of 4 against 3 and 3 of 6; what one of them does not read counts for neither."""
    found = differences(np.array([1.0, 3.0, 9.0]), np.array([3.0, -3.0, NAN]), BY_SIZE)
    np.testing.assert_allclose(found, [0.25, -0.25, NAN])
    assert moved_share(found) == pytest.approx(0.25)
    with_sign = differences(np.array([1.0, 3.0]), np.array([3.0, -3.0]), BY_SIGN)
    np.testing.assert_allclose(with_sign, [0.25, -1.25])


def test_the_share_elsewhere_is_0_for_a_multiple_1_for_the_reverse_and_none_without_a_map() -> None:
    row = np.array([2.0, -1.0, 0.5])
    assert moved_share(differences(row, 7 * row, BY_SIGN)) == pytest.approx(0, abs=1e-12)
    assert moved_share(differences(row, -row, BY_SIGN)) == pytest.approx(1)
    assert moved_share(differences(row, np.zeros(3), BY_SIGN)) is None
