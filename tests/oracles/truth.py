"""Scores against a truth once more, feature by feature, and what chance gives, by walking all orders."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import mean


def scores_of_order(order: Sequence[int], true: set[int]) -> dict[str, float]:
    """`order`: the features, the most important first."""
    top = set(order[: len(true)])
    reached = next(r for r in range(len(order) + 1) if true <= set(order[:r]))
    return {
        "overlap": len(top & true) / len(true),
        "exact": float(top == true),
        "pointing": float(order[0] in true),
        "mean_rank": float(reached),
        "mean_of_ranks": mean(order.index(feature) + 1 for feature in true),
    }


def scores_by_all_orders(n: int, size: int) -> dict[str, float]:
    """The mean over all n! orders (n <= 7), the first `size` features being true."""
    every = [scores_of_order(order, set(range(size))) for order in itertools.permutations(range(n))]
    return {name: mean(one[name] for one in every) for name in every[0]}
