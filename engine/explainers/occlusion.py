"""Occlusion: what is lost when a word, or a window of words, is removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from engine.operators import OPERATORS
from engine.params import option
from engine.registry import Axes, register
from engine.task import Attribution, Task


@dataclass(frozen=True)
class OcclusionParams:
    removal: str = option("mask", "How features are removed", choices=OPERATORS)
    window: int = option(1, "Neighbouring tokens removed together", low=1, high=64)


@register(
    "occlusion",
    title="Occlusion",
    family="perturbation",
    params=OcclusionParams,
    axes=Axes("chosen operator, one window at a time", "probability of the class", "removal effect"),
    cheap=False,
    citation="Zeiler and Fergus (2014), section 4.2; Li, Monroe and Jurafsky (2016), Erasure",
    caution="Words that say the same thing twice can each seem unimportant: removing one leaves the other.",
)
def occlusion(task: Task, params: OcclusionParams) -> list[Attribution]:
    """`m(x) - m(x without i)`, in probability, signed; with a window, the mean over the windows that hold i."""
    return mean_effects(task, [windows(len(e.features), params.window) for e in task.examples], params.removal)


def mean_effects(task: Task, covers: Sequence[Bool[np.ndarray, "_ _"]], removal: str) -> list[Attribution]:
    """What m loses without each window of features, in probability; each feature gets the mean of those that hold it.

    `covers` has the windows of each item, a row each, which together hold every feature.
    """
    kept = [np.vstack([np.ones((1, cover.shape[1]), dtype=bool), ~cover]) for cover in covers]
    values = task.masked_values(kept, removal)
    made = []
    for example, cover, value in zip(task.examples, covers, values, strict=True):
        scores = np.zeros(len(example))
        scores[example.features] = cover.T @ (value[0] - value[1:]) / cover.sum(0)
        made.append(Attribution(scores, len(value)))
    return made


def windows(n: int, width: int) -> Bool[np.ndarray, "window feature"]:
    """Every window of `width` neighbouring features (of all of them, where there are fewer)."""
    width = min(width, n)
    starts = np.arange(n - width + 1)[:, None]
    place = np.arange(n)[None, :]
    return (place >= starts) & (place < starts + width)
