"""The four splits: disjoint, nested, the same for whoever asks; and what cannot be split is refused."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ExegesisError
from engine.scaffold.plan import Recipe, ScaffoldPlan
from engine.scaffold.training_sets import check_varied, splits_of

RECIPE = Recipe(held_out=7, validation=5, test=11)
PLAN = ScaffoldPlan("somebody", "something", train_sizes=(10, 30, 20), recipe=RECIPE)
NEEDED = 30 + 7 + 5 + 11


@pytest.mark.parametrize("count", [NEEDED, NEEDED + 1, 500])
@pytest.mark.parametrize("seed", [0, 9, 69])
def test_all_four_are_disjoint_and_as_large_as_asked_for(count: int, seed: int) -> None:
    splits = splits_of(count, PLAN)
    for size in PLAN.train_sizes:
        train, held_out = splits.of_seed(seed, size, RECIPE.held_out)
        parts = [train, held_out, list(splits.validation), list(splits.test)]
        assert [len(part) for part in parts] == [size, 7, 5, 11]
        together = [place for part in parts for place in part]
        assert len(set(together)) == len(together)
        assert set(together) <= set(range(count))


def test_a_larger_train_set_holds_the_smaller_ones_and_the_held_out_stay_the_same() -> None:
    splits = splits_of(200, PLAN)
    (small, held), (middle, same), (large, again) = (splits.of_seed(9, n, 7) for n in (10, 20, 30))
    assert (middle[:10], large[:20]) == (small, middle)
    assert held == same == again


def test_seeds_share_validation_and_test_and_draw_the_rest_anew() -> None:
    splits = splits_of(200, PLAN)
    assert splits == splits_of(200, PLAN)
    (train, held), (other, its) = splits.of_seed(0, 20, 7), splits.of_seed(9, 20, 7)
    assert set(train) != set(other)
    assert set(held) != set(its)


def test_too_few_examples_are_refused_with_what_each_split_needs() -> None:
    with pytest.raises(ExegesisError, match="but the four splits need 53: 30 for training"):
        splits_of(NEEDED - 1, PLAN)


def test_a_teacher_that_says_the_same_of_all_is_refused() -> None:
    same_class = np.array([[0.1, 0.2], [0.0, 5.0], [-2.0, -1.0]])
    with pytest.raises(ExegesisError, match="somebody predicts the same class for all 3 test examples"):
        check_varied("somebody", same_class, regression=False)
    with pytest.raises(ExegesisError, match="the same score"):
        check_varied("somebody", np.full((3, 1), 0.7), regression=True)
    check_varied("somebody", same_class[:, ::-1] * [[1], [-1], [1]], regression=False)
    check_varied("somebody", same_class[:, :1], regression=True)
