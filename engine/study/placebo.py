"""The placebo of a study: a real explanation of the same item whose scores stand where chance put them.

A made-up ramp of scores would be known by its colours; these are the colours of a method.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from engine.registry import explainer
from engine.result import Explanation
from engine.study.design import PLACEBO, Design


def with_placebo(made: Sequence[Explanation], design: Design, place: int) -> list[Explanation]:
    """The explanations of the item at that place, one a method of `Design.shown`.

    `made` are those of its methods; where people are shown `random`, as the placebo or chosen, one of them is mixed.
    """
    real = iter(made)
    return [_mixed(made, design, place) if method.id == PLACEBO else next(real) for method in design.shown]


def _mixed(made: Sequence[Explanation], design: Design, place: int) -> Explanation:
    """Scores of one of these, in an order by chance; special tokens get 0. The seed and the place draw both."""
    chance = np.random.default_rng([design.seed, place])
    differing = [one for one in made if np.ptp(one.scores[one.features])] or made  # equal scores mixed are the same
    chosen = differing[int(chance.integers(len(differing)))]
    scores = np.zeros_like(chosen.scores)
    scores[chosen.features] = chance.permutation(chosen.scores[chosen.features])
    return _as_random(chosen, scores, design.seed)


def _as_random(chosen: Explanation, scores: np.ndarray, seed: int) -> Explanation:
    """It has no check and no cost of its own; `extras` say whose scores these are."""
    source, random = chosen.provenance, explainer(PLACEBO, "text" if chosen.grid is None else "image")
    extras = {"permuted": {"method": source.method, "params": dict(source.params)}}
    provenance = dataclasses.replace(source, method=PLACEBO, version=random.version, params={}, seed=seed)
    return dataclasses.replace(
        chosen,
        scores=scores,
        provenance=provenance,
        extras=extras,
        evaluations=0,
        seconds=0.0,
        check=None,
        notes=(),
    )
