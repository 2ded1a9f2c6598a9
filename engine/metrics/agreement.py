"""Where methods disagree: rank correlation and the overlap of the top features, between the maps of one example."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.errors import UsageError, not_allowed, unknown

MEASURES = ("spearman", "top_k")
TOP_PERCENT = 15

Map = Float[np.ndarray, "feature"]


@dataclass(frozen=True)
class Agreement:
    """A measure between every two maps. `values` is symmetric; NaN where there is none, because a map is constant."""

    measure: str
    methods: tuple[str, ...]
    values: Float[np.ndarray, "method method"]
    constant: tuple[str, ...]
    n: int
    """Features of the example."""
    k: int
    """Features that count as the top."""

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.methods), len(self.methods)):
            raise ValueError(f"values: one for two methods, {len(self.methods)} methods, got shape {self.values.shape}")
        self.values.setflags(write=False)


def agreement(maps: Mapping[str, Map], measure: str = "spearman", k: int | None = None) -> Agreement:
    """The measure between every two maps of one example (scores of the features only, no special tokens).

    `spearman`: rho, from -1 (reversed order) over 0 to 1 (same order). `top_k`: the shared part of the two top-k sets,
    from 0 to 1; about k/n by chance. Without `k`, max(1, floor(0.15 n)), the share that the thesis takes for its top-k.
    """
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    n = _features(maps)
    top = max(1, TOP_PERCENT * n // 100) if k is None else k
    if type(top) is not int or not 1 <= top <= n:
        raise not_allowed("k", f"a whole number from 1 to {n}, the features of the example", top)
    constant = tuple(method for method, scores in maps.items() if is_constant(scores))

    def shared_top(a: Map, b: Map) -> float | None:
        return None if is_constant(a) or is_constant(b) else top_k_overlap(a, b, top)

    values = every_two(list(maps.values()), spearman if measure == "spearman" else shared_top)
    return Agreement(measure, tuple(maps), values, constant, n, top)


def spearman(a: Map, b: Map) -> float | None:
    """Spearman's rho: the correlation of the ranks, equal scores sharing their average rank (Spearman, 1904).

    From -1 to 1; None where a map is constant, because it has no order.
    """
    if is_constant(a) or is_constant(b):
        return None
    x, y = (ranks - ranks.mean() for ranks in (average_ranks(a), average_ranks(b)))
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def top_k_overlap(a: Map, b: Map, k: int) -> float:
    """The share of the k features with the highest scores that both maps name, from 0 to 1.

    The mean over all orders of equal scores, drawn for each map apart: an order that both shared would let maps agree
    where neither of them tells features apart.
    """
    return float(chance_of_top(a, k) @ chance_of_top(b, k)) / k


def chance_of_top(scores: Map, k: int) -> Map:
    """How likely each feature is among the k highest where equal scores stand in a random order; sums to k."""
    edge = np.sort(scores)[-k]
    above, at = scores > edge, scores == edge
    return above + at * (k - above.sum()) / at.sum()


def average_ranks(scores: Map) -> Map:
    """1 for the lowest score, n for the highest; equal scores share the mean of their ranks."""
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


def is_constant(scores: Map) -> bool:
    """Whether all scores are equal, also where there is only one."""
    return bool((scores == scores[0]).all())


def every_two(maps: Sequence[Map], pair: Callable[[Map, Map], float | None]) -> Float[np.ndarray, "method method"]:
    """The measure of each pair, NaN where it is None, and 1 between a map and itself."""
    values = np.full((len(maps), len(maps)), np.nan)
    for i, j in itertools.combinations_with_replacement(range(len(maps)), 2):
        found = pair(maps[i], maps[j])
        values[i, j] = values[j, i] = np.nan if found is None else 1.0 if i == j else found
    return values


def _features(maps: Mapping[str, Map]) -> int:
    sizes = {len(scores) for scores in maps.values()}
    if len(sizes) != 1 or 0 in sizes:
        raise UsageError(f"maps: must be of one example with at least one feature, got sizes {sorted(sizes)}.")
    return sizes.pop()
