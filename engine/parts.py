"""What is removed at a time: groups of an input's features, such as the patches of a superpixel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class Parts:
    """For each feature of one input the number of its part, from 0 without gaps."""

    of_feature: Int[np.ndarray, "feature"]

    @property
    def count(self) -> int:
        return int(self.of_feature.max()) + 1

    @cached_property
    def sizes(self) -> Int[np.ndarray, "part"]:
        """Features in each part, at least one."""
        return np.bincount(self.of_feature)

    def features(self, kept: Bool[np.ndarray, "row part"]) -> Bool[np.ndarray, "row feature"]:
        """Masks over parts as masks over features."""
        return kept[:, self.of_feature]

    def shared_out(self, scores: Float[np.ndarray, "part"]) -> Float[np.ndarray, "feature"]:
        """The score of each part, shared equally by its features: the sum over the input stays what it was."""
        return (scores / self.sizes)[self.of_feature]


def single(n: int) -> Parts:
    """Every one of n features is a part of its own."""
    return Parts(np.arange(n))
