"""The four disjoint splits of a data set: which examples teach, which are held out, and which are only measured on."""

from __future__ import annotations

import random
from dataclasses import dataclass

from engine.errors import ExegesisError
from engine.scaffold.plan import Plan


@dataclass(frozen=True)
class Splits:
    """Places in the data set. `pool` holds the training and held-out examples of every seed."""

    pool: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]

    def of_seed(self, seed: int, train_size: int, held_out: int) -> tuple[list[int], list[int]]:
        """(train, held out): disjoint, drawn from the pool by the seed; a larger train set holds the smaller ones."""
        order = list(self.pool)
        random.Random(f"{seed}/scaffold").shuffle(order)
        return order[held_out : held_out + train_size], order[:held_out]


def splits_of(count: int, plan: Plan) -> Splits:
    """The splits of a data set of `count` examples. Validation and test are the same for all students.

    Errors: fewer examples than the four splits need.
    """
    if count < plan.needed:
        recipe = plan.recipe
        raise ExegesisError(
            f"dataset: {plan.dataset} has {count:,} examples, but the four splits need {plan.needed:,}: "
            f"{max(plan.train_sizes):,} to learn, {recipe.held_out:,} held out, {recipe.validation:,} for validation, "
            f"{recipe.test:,} for the test. Lower one of these, or name a larger data set."
        )
    order = random.Random("scaffold splits").sample(range(count), plan.needed)
    test, validation = plan.recipe.test, plan.recipe.test + plan.recipe.validation
    return Splits(tuple(order[validation:]), tuple(order[test:validation]), tuple(order[:test]))
