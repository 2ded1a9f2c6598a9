"""The placebo of a study: an explanation of another item, moved by chance, so that it knows nothing of this one.

Its scores come from a method of the study like all others, but from another item: nothing on the ballot has the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from engine.registry import explainer
from engine.result import Explanation
from engine.study.design import PLACEBO, Design

JITTER = 0.1
"""Standard deviation of the logarithm of the factor by which each score is changed."""


def with_placebos(by_item: Sequence[Sequence[Explanation]], design: Design) -> list[list[Explanation]]:
    """The explanations of each item, one a method of `Design.shown`.

    `by_item` are those of its methods; where people are shown `random`, as the placebo or chosen, another item's is
    moved to this one. A study of a single item takes one of its own.
    """
    return [_completed(by_item, design, place) for place in range(len(by_item))]


def _completed(by_item: Sequence[Sequence[Explanation]], design: Design, place: int) -> list[Explanation]:
    real = iter(by_item[place])
    return [_placebo(by_item, design, place) if method.id == PLACEBO else next(real) for method in design.shown]


def _placebo(by_item: Sequence[Sequence[Explanation]], design: Design, place: int) -> Explanation:
    """The seed and the place draw the method, the item and the move. Special tokens get 0."""
    chance = np.random.default_rng([design.seed, place])
    own = by_item[place][0]
    others = [(at, one) for at, answers in enumerate(by_item) if at != place for one in answers]
    candidates = others or [(place, one) for one in by_item[place]]
    differing = [one for one in candidates if np.ptp(one[1].scores[one[1].features])] or candidates
    item, source = differing[int(chance.integers(len(differing)))]
    scores = np.zeros_like(own.scores)
    scores[own.features] = _moved(source, own, chance)
    return _as_random(own, source, item, scores, design.seed)


def _moved(source: Explanation, own: Explanation, chance: np.random.Generator) -> Float[np.ndarray, "feature"]:
    """The other item's scores on this one's tokens or patches: shifted around, perhaps mirrored, a little changed.

    Neighbors stay neighbors: a picture's map stays as smooth as its method makes it.
    """
    values = source.scores[source.features]
    if own.grid is not None and source.grid == own.grid:
        values = values.reshape(own.grid)
    else:
        count = len(own.features)
        values = values[np.arange(count) * len(values) // count]
    for axis, length in enumerate(values.shape):
        values = np.roll(values, int(chance.integers(length)), axis)
        if chance.integers(2):
            values = np.flip(values, axis)
    return np.ravel(values) * np.exp(JITTER * chance.standard_normal(values.size))


def _as_random(own: Explanation, source: Explanation, item: int, scores: np.ndarray, seed: int) -> Explanation:
    """It has no check and no cost of its own; `extras` say whose scores these are."""
    method, random = source.provenance, explainer(PLACEBO, "text" if own.grid is None else "image")
    extras = {"permuted": {"method": method.method, "params": dict(method.params), "item": item}}
    provenance = dataclasses.replace(own.provenance, method=PLACEBO, version=random.version, params={}, seed=seed)
    return dataclasses.replace(
        own, scores=scores, provenance=provenance, extras=extras, evaluations=0, seconds=0.0, check=None, notes=()
    )
