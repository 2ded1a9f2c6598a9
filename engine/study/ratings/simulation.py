"""Annotators who are made up, with preferences that are known: does the study find them, and no others?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.errors import not_allowed
from engine.progress import Report, silent
from engine.study.ratings.headline import headline
from engine.study.ratings.matches import Match, competition
from engine.study.ratings.partial_order import claims


@dataclass(frozen=True)
class Made:
    """How votes are made up: Thurstone's model, a normal draw a method and a person's own taste beside it.

    `strength`: how good each method is, in standard deviations of one look. `taste`: how far a person's own strengths
    lie from these. `ties`: two looks closer than that are a tie.
    """

    strength: Mapping[str, float]
    annotators: int = 20
    items: int = 20
    taste: float = 0.5
    ties: float = 0.25
    seed: int = 0


def simulated(made: Made) -> list[Match]:
    """One vote of each annotator on each item."""
    _check(made)
    chance = np.random.default_rng(made.seed)
    methods, strength = tuple(made.strength), np.array(list(made.strength.values()), dtype=float)
    votes = []
    for person in range(made.annotators):
        own = strength + made.taste * chance.standard_normal(len(methods))
        for item in range(made.items):
            looks = own + chance.standard_normal(len(methods))
            ranks = _ranked(methods, looks, made.ties)
            at = float(item * made.annotators + person)
            votes.append(Match(f"annotator {person + 1}", f"item {item + 1}", ranks, at=at))
    return votes


def false_claims(made: Made, studies: int, orders: int = 20, resamples: int = 300, report: Report = silent) -> float:
    """Share of simulated studies whose partial order says that some methods differ. Meant for equal strengths.

    Fewer orders and resamples than a real study has: more of them hardly move its intervals.
    """
    found = 0
    for study in range(studies):
        report(study, studies, "simulated studies")
        votes = simulated(replace(made, seed=made.seed + 1 + study))
        ratings = headline(votes, made.seed + study, orders, resamples)
        found += claims([rating.interval for rating in ratings]) > 0
    return found / studies


def _ranked(methods: Sequence[str], looks: np.ndarray, ties: float) -> dict[str, int]:
    """The best first; who is closer than `ties` to the one before shares their rank."""
    order = np.argsort(-looks)
    level, levels = 1, {methods[order[0]]: 1}
    for before, now in itertools.pairwise(order):
        level += int(looks[before] - looks[now] >= ties)
        levels[methods[now]] = level
    return competition({method: levels[method] for method in methods})


def _check(made: Made) -> None:
    if len(made.strength) < 2:
        raise not_allowed("strength", "one number for each of at least two methods", dict(made.strength))
    for name in ("annotators", "items"):
        if getattr(made, name) < 1:
            raise not_allowed(name, "a whole number of at least 1", getattr(made, name))
