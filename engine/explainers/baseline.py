"""The baseline that is always shown: a random order."""

from __future__ import annotations

import numpy as np

from engine.registry import KINDS, Axes, register
from engine.task import Attribution, Task


@register(
    "random",
    title="Random",
    family="baseline",
    axes=Axes("none", "none", "a random order"),
    inputs=KINDS,
    signed=False,
    citation="The baseline of the randomization and faithfulness literature, e.g. Adebayo et al. (2018)",
    caution="It knows nothing of the model: a method that does not beat it says nothing.",
)
def random(task: Task, params: object) -> list[Attribution]:
    """A random permutation of 1..n; unsigned, without unit. Special tokens get 0."""
    made = []
    for item in task.items:
        scores = np.zeros(len(item.encoded))
        n = len(item.encoded.features)
        scores[item.encoded.features] = item.generator().permutation(n) + 1
        made.append(Attribution(scores, 0))
    return made
