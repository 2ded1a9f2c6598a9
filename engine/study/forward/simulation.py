"""People who are made up and guess with a skill that is known: do the intervals find it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from engine.errors import not_allowed
from engine.progress import Report, silent
from engine.study.forward.guesses import SUREST, WITHOUT, Guessed, Target
from engine.study.forward.summary import forward_summary
from engine.study.ratings.partial_order import Interval

MIDDLE = 3.0
"""How sure people are who have no reason to be more or less so."""


@dataclass(frozen=True)
class MadeGuesses:
    """How guesses are made up: a probit model of people who differ.

    `accuracy`: by condition, how often people in general guess what the model said, above 0 and below 1. `taste`: how
    far a person's own probits lie from these, half of it in all conditions alike. `air`: how much surer a condition
    makes people than they would be. `unsure`: how often they cannot tell.
    """

    accuracy: Mapping[str, float]
    annotators: int = 20
    items: int = 20
    taste: float = 0.5
    air: Mapping[str, float] = field(default_factory=dict)
    unsure: float = 0.0
    seed: int = 0


def simulated_guesses(made: MadeGuesses) -> list[Guessed]:
    """One answer of each annotator to each item, their conditions in turn from one that is drawn."""
    _check(made)
    chance = np.random.default_rng(made.seed)
    conditions = tuple(made.accuracy)
    answers = []
    for person in range(made.annotators):
        chances, start = _own_chances(made, chance), int(chance.integers(len(conditions)))
        for turn, item in enumerate(chance.permutation(made.items).tolist()):
            place = (start + turn) % len(conditions)
            answers.append(_answer(made, f"annotator {person + 1}", item, conditions[place], chances[place], chance))
    return answers


@dataclass(frozen=True)
class Coverage:
    """`alone`: share of the intervals of accuracies that hold the truth. `together`: share of studies in which all
    intervals of differences do. Both promise 95 %.
    """

    alone: float
    together: float


def coverage(made: MadeGuesses, studies: int, report: Report = silent) -> Coverage:
    """Over studies that differ in their seed alone."""
    alone, together = [], []
    for study in range(studies):
        report(study, studies, "simulated studies")
        found = forward_summary(simulated_guesses(replace(made, seed=made.seed + 1 + study)), tuple(made.accuracy)[1:])
        for one in found.conditions:
            alone += [_holds(one.share.interval, made.accuracy[one.name])] if one.share else []
        base = made.accuracy[WITHOUT]
        gains = [_holds(one.gain.interval, made.accuracy[one.name] - base) for one in found.conditions if one.gain]
        together.append(all(gains))
    return Coverage(sum(alone) / len(alone), sum(together) / len(together))


def _holds(interval: Interval, true: float) -> bool:
    return interval[0] <= true <= interval[1]


def _own_chances(made: MadeGuesses, chance: np.random.Generator) -> Float[np.ndarray, "condition"]:
    """How often this person guesses right in each condition; over people the mean is `accuracy`."""
    from scipy.special import ndtr, ndtri

    general = ndtri(np.array(list(made.accuracy.values()))) * np.sqrt(1 + made.taste**2)
    alike, apart = chance.standard_normal(), chance.standard_normal(len(general))
    return np.asarray(ndtr(general + made.taste * np.sqrt(0.5) * (alike + apart)))


def _answer(
    made: MadeGuesses, annotator: str, item: int, condition: str, right: float, chance: np.random.Generator
) -> Guessed:
    target, name = Target(item % 2), f"item {item + 1}"
    if chance.random() < made.unsure:
        return Guessed(annotator, name, condition, None, None, target)
    hit = bool(chance.random() < right)
    feeling = MIDDLE + made.air.get(condition, 0.0) + (0.5 if hit else -0.5) + chance.standard_normal()
    sure = int(np.clip(round(feeling), 1, SUREST))
    return Guessed(annotator, name, condition, target.label if hit else 1 - target.label, sure, target)


def _check(made: MadeGuesses) -> None:
    for name in ("annotators", "items"):
        if getattr(made, name) < 1:
            raise not_allowed(name, "a whole number of at least 1", getattr(made, name))
    if not made.accuracy or not all(0 < share < 1 for share in made.accuracy.values()):
        raise not_allowed("accuracy", "a number between 0 and 1 for each condition", dict(made.accuracy))
