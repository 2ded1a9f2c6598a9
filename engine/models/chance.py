"""Accuracy beside that of guessing: whether a model has learned the answers of a data set at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.lazy import scipy

ERROR_RATE = 0.05
LEAST_SKILL = 0.2
"""Of the way from chance (0) to always right (1): below it a model hardly does better than guessing."""
FEW_CLASSES = 10
"""Of more classes, a skill below that can be many times chance: then the binomial test alone decides."""
LEAST_EXAMPLES = 20
"""Fewer examples say little about a model."""
MEANING = "Its maps show what the model goes by, not what makes an answer right."


def share_p_value(hits: int, n: int, classes: int) -> float:
    """P value of the exact binomial test, one-sided: right so often, or more often, by choosing classes at random."""
    return float(scipy.stats.binomtest(hits, n, 1 / classes, alternative="greater").pvalue)


@dataclass(frozen=True)
class ModelAccuracy:
    """How many of `n` examples a model is right on, with `classes` to choose from."""

    hits: int
    n: int
    classes: int

    @property
    def skill(self) -> float:
        """The accuracy rescaled: 0 at chance, 1 where always right, negative below chance."""
        return (self.hits / self.n - 1 / self.classes) / (1 - 1 / self.classes)

    @property
    def unlearned(self) -> bool:
        """Whether the model does no better than guessing, or hardly: p above 0.05, or a skill below 0.2.

        The skill counts with at most 10 classes. False for fewer than 20 examples.
        """
        if self.n < LEAST_EXAMPLES or self.classes < 2:
            return False
        if self.classes <= FEW_CLASSES and self.skill < LEAST_SKILL:
            return True
        # Hoeffding (1963), theorem 1, bounds p from above: where that is enough, pages need no scipy.
        bound = math.exp(-2 * self.n * max(self.hits / self.n - 1 / self.classes, 0) ** 2)
        return bound > ERROR_RATE and share_p_value(self.hits, self.n, self.classes) > ERROR_RATE

    def note(self, model: str, dataset: str = "") -> str:
        """What a reader of maps must know of a model that has not learned the answers; empty for any other.

        `dataset`: the whole set, by the model's card; empty for the examples at hand.
        """
        if not self.unlearned:
            return ""
        of, source = (f" of {dataset}", ", by its card") if dataset else ("", "")
        shares = f"{self.hits / self.n:.1%}; guessing: {1 / self.classes:.1%}"
        return f"{model} is right on {self.hits:,} of {self.n:,} examples{of} ({shares}){source}. {MEANING}"
