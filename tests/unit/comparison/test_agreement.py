"""Agreement of maps on common parts: by hand, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from engine.comparison.agreement import (
    AgreementOptions,
    compare_maps,
    find_random,
    mean_disagreement,
    measure_agreement,
    moved_share,
    rank_moves,
    ranks,
    share_differences,
)
from engine.errors import UsageError
from engine.request import Example
from tests.unit.components.making import explanation

BY_SIGN, BY_SIZE = AgreementOptions(), AgreementOptions(order="size")
NAN = np.nan


def test_every_two_maps_have_the_rho_of_scipy_in_either_order() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 17)).round(1)
    for options, of in ((BY_SIZE, np.abs(scores)), (BY_SIGN, scores)):
        agreement = measure_agreement(scores, ["a", "b", "c", "d"], options)
        for i in range(4):
            for j in range(4):
                assert agreement.values[i, j] == pytest.approx(stats.spearmanr(of[i], of[j]).statistic, abs=1e-12)
        assert (agreement.n, agreement.k, agreement.constant) == (17, 2, ())


def test_two_maps_are_compared_on_what_both_have() -> None:
    scores = np.array([[1.0, 2.0, 3.0, 4.0, NAN], [NAN, 2.0, 3.0, 1.0, 9.0], [5.0, 1.0, 2.0, 3.0, 4.0]])
    agreement = measure_agreement(scores, ["a", "b", "c"], AgreementOptions())
    assert agreement.values[0, 1] == pytest.approx(stats.spearmanr([2, 3, 4], [2, 3, 1]).statistic)
    assert agreement.values[0, 2] == pytest.approx(stats.spearmanr([1, 2, 3, 4], [5, 1, 2, 3]).statistic)


def test_the_shared_top_by_hand() -> None:
    one, other = np.array([9.0, 8.0, -7.0, 1.0]), np.array([1.0, -9.0, 7.0, 2.0])
    top_two = AgreementOptions("top_k", "size", 50)
    assert compare_maps(one, other, top_two) == 0.5, "by size: the first two, and the middle ones"
    assert compare_maps(one, other, AgreementOptions("top_k", "sign", 50)) == 0.0, (
        "by sign: the first two, and the last two"
    )
    assert compare_maps(one, other, AgreementOptions("top_k", percent=1)) == 0.0, "at least one part counts"


def test_equal_scores_stand_in_an_order_of_their_own_in_each_map() -> None:
    """Two in 19 of each other's word, and of the 18 that both have at 0, of three."""
    one, other = np.eye(20)[[3, 11]]
    assert compare_maps(one, other, AgreementOptions("top_k")) == pytest.approx((2 / 19 * 2 + 18 * (2 / 19) ** 2) / 3)


def test_what_only_one_map_has_is_no_part_of_what_is_compared() -> None:
    scores = np.array([[1.0, 2.0, 3.0, NAN], [3.0, NAN, 1.0, 2.0], [2.0, NAN, 1.0, NAN]])
    assert measure_agreement(scores, ["a", "b", "c"], AgreementOptions()).n == 2


def test_a_map_without_order_agrees_with_nobody_and_is_named() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [2.0, -2.0, 2.0], [3.0, 2.0, 1.0]])
    agreement = measure_agreement(scores, ["a", "flat", "b"], BY_SIZE)
    assert agreement.constant == ("flat",)
    assert np.isnan(agreement.values[1]).all()
    assert measure_agreement(scores, ["a", "signed", "b"], BY_SIGN).constant == ()


def test_one_part_has_no_order() -> None:
    agreement = measure_agreement(np.array([[1.0], [2.0]]), ["a", "b"], AgreementOptions("top_k"))
    assert agreement.constant == ("a", "b")
    assert mean_disagreement(agreement) is None


def test_disagreement_is_one_minus_the_mean_of_the_pairs_or_of_those_with_the_reference() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    agreement = measure_agreement(scores, ["a", "b", "c"], AgreementOptions())
    assert mean_disagreement(agreement) == pytest.approx(1 - (1 - 1 - 1) / 3)
    assert mean_disagreement(agreement, 0) == pytest.approx(1.0)
    assert mean_disagreement(agreement, 2) == pytest.approx(2.0)


def test_maps_by_chance_do_not_count_unless_they_are_what_is_asked_about() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
    agreement = measure_agreement(scores, ["a", "b", "random"], AgreementOptions())
    assert mean_disagreement(agreement, random_rows=[2]) == pytest.approx(0.0)
    assert mean_disagreement(agreement, 0, random_rows=[2]) == pytest.approx(0.0)
    assert mean_disagreement(agreement, 2, random_rows=[2]) == pytest.approx(1.5)
    assert mean_disagreement(
        measure_agreement(scores[1:], ["b", "random"], AgreementOptions()), random_rows=[1]
    ) == pytest.approx(1.5)


def test_maps_of_methods_that_know_nothing_are_known_by_their_method() -> None:
    text = Example("warmth stays")
    maps = [explanation(text, method=method) for method in ("occlusion", "random", "gradient")]
    assert find_random(maps) == (1,)


def test_ranks_and_moves_by_hand() -> None:
    assert ranks(np.array([5.0, 9.0, 5.0, 1.0])).tolist() == [2.0, 1.0, 2.0, 4.0]
    reference, other = np.array([4.0, 3.0, -2.0, 1.0, NAN]), np.array([1.0, 3.0, 2.0, -4.0, 8.0])
    assert rank_moves(reference, other, BY_SIZE)[:4].tolist() == [-3.0, 0.0, 0.0, 3.0]
    assert np.isnan(rank_moves(reference, other, AgreementOptions())[4])
    assert rank_moves(reference, other, BY_SIGN)[:4].tolist() == [-2.0, 1.0, 2.0, -1.0]
    assert np.isnan(rank_moves(reference, np.ones(5), AgreementOptions())).all()


@pytest.mark.parametrize(("measure", "order", "named"), [("pearson", "size", "measure"), ("top_k", "up", "order")])
def test_what_is_not_known_is_named(measure: str, order: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        AgreementOptions(measure, order)


def test_differences_are_of_shares_of_what_both_have() -> None:
    """1 and 3 of 4 against 3 and 3 of 6; what one of them does not read counts for neither."""
    agreement = share_differences(np.array([1.0, 3.0, 9.0]), np.array([3.0, -3.0, NAN]), BY_SIZE)
    np.testing.assert_allclose(agreement, [0.25, -0.25, NAN])
    assert moved_share(agreement) == pytest.approx(0.25)
    with_sign = share_differences(np.array([1.0, 3.0]), np.array([3.0, -3.0]), BY_SIGN)
    np.testing.assert_allclose(with_sign, [0.25, -1.25])


def test_the_share_elsewhere_is_0_for_a_multiple_1_for_the_reverse_and_none_without_a_map() -> None:
    row = np.array([2.0, -1.0, 0.5])
    assert moved_share(share_differences(row, 7 * row, BY_SIGN)) == pytest.approx(0, abs=1e-12)
    assert moved_share(share_differences(row, -row, BY_SIGN)) == pytest.approx(1)
    assert moved_share(share_differences(row, np.zeros(3), BY_SIGN)) is None
