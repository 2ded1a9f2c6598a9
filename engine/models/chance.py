"""Accuracy compared with guessing: whether a model has learned the answers of a data set at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.lazy import scipy

ERROR_RATE = 0.05
LEAST_SKILL = 0.2
"""Skill, from 0 (chance) to 1 (always right), below which a model hardly does better than guessing."""
FEW_CLASSES = 10
"""With more classes, a lower skill can still be many times chance, so the binomial test alone decides."""
LEAST_EXAMPLES = 20
"""Minimum number of examples; fewer say little about a model."""
MEANING = "Its maps show what the model goes by, not what makes an answer right."


def share_p_value(hits: int, n: int, classes: int) -> float:
    """Return the p-value of the one-sided exact binomial test that `hits` of `n` exceed random choices of a class."""
    return float(scipy.stats.binomtest(hits, n, 1 / classes, alternative="greater").pvalue)


@dataclass(frozen=True)
class ModelAccuracy:
    """A model's `hits` (correct predictions) on `n` examples, with `classes` to choose from."""

    hits: int
    n: int
    classes: int

    @property
    def skill(self) -> float:
        """Rescaled accuracy: 0 at chance, 1 if always right, negative below chance."""
        return (self.hits / self.n - 1 / self.classes) / (1 - 1 / self.classes)

    @property
    def unlearned(self) -> bool:
        """Whether the model does hardly or no better than guessing: p above 0.05, or a skill below 0.2.

        The skill counts only with at most 10 classes. False for fewer than 20 examples or 2 classes.
        """
        if self.n < LEAST_EXAMPLES or self.classes < 2:
            return False
        if self.classes <= FEW_CLASSES and self.skill < LEAST_SKILL:
            return True
        # Hoeffding (1963), theorem 1, bounds p from above: if the bound suffices, pages need no scipy.
        bound = math.exp(-2 * self.n * max(self.hits / self.n - 1 / self.classes, 0) ** 2)
        return bound > ERROR_RATE and share_p_value(self.hits, self.n, self.classes) > ERROR_RATE

    def note(self, model: str, dataset: str = "") -> str:
        """Return a warning for readers of maps if the model has not learned the answers, else an empty string.

        `dataset`: the whole data set, as measured in the model's card; empty for the examples at hand.
        """
        if not self.unlearned:
            return ""
        of, source = (f" of {dataset}", ", by its card") if dataset else ("", "")
        shares = f"{self.hits / self.n:.1%}; guessing: {1 / self.classes:.1%}"
        return f"{model} is right on {self.hits:,} of {self.n:,} examples{of} ({shares}){source}. {MEANING}"
