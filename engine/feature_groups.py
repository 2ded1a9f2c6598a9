"""Groups of features that are removed together, such as the patches of a superpixel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """The group of each feature of one input, numbered from 0 without gaps."""

    of_feature: Int[np.ndarray, "feature"]

    @property
    def count(self) -> int:
        return int(self.of_feature.max()) + 1

    @cached_property
    def sizes(self) -> Int[np.ndarray, "group"]:
        """Features in each group, at least one."""
        return np.bincount(self.of_feature)

    def features(self, kept: Bool[np.ndarray, "row group"]) -> Bool[np.ndarray, "row feature"]:
        """Expand masks over groups to masks over features."""
        return kept[:, self.of_feature]

    def shared_out(self, scores: Float[np.ndarray, "group"]) -> Float[np.ndarray, "feature"]:
        """Share the score of each group equally among its features; the sum over the input stays the same."""
        return (scores / self.sizes)[self.of_feature]


def singletons(n: int) -> FeatureGroups:
    """Each of n features as a group of its own."""
    return FeatureGroups(np.arange(n))
