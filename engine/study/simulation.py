"""Simulate studies with known preferences or skills, to measure interval coverage and false differences."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtr, ndtri

from engine.errors import not_allowed
from engine.progress import Report, silent
from engine.study.annotators import SUREST
from engine.study.counted_votes import WITHOUT, GuessAnswer, GuessTarget, Ranking, competition_ranks
from engine.study.guesses import summarize_guesses
from engine.study.ratings import Interval, count_differences, rate_methods

NEUTRAL_SURENESS = 3.0
"""Mean sureness, without the effects of right answers and explanations."""


@dataclass(frozen=True)
class RankingSimulation:
    """Thurstone's model of rankings: each method gets a normal draw around its strength for the person.

    `strength`: by method, in standard deviations of one draw. `taste`: standard deviation of a person's strengths
    around these. `ties`: two neighboring draws closer than this are tied.
    """

    strength: Mapping[str, float]
    annotators: int = 20
    items: int = 20
    taste: float = 0.5
    ties: float = 0.25
    seed: int = 0


def simulate_rankings(simulation: RankingSimulation) -> list[Ranking]:
    """Simulate one vote per annotator and item."""
    if len(simulation.strength) < 2:
        raise not_allowed("strength", "a number for each of at least two methods", dict(simulation.strength))
    _check_sizes(simulation)
    rng = np.random.default_rng(simulation.seed)
    methods, strength = tuple(simulation.strength), np.array(list(simulation.strength.values()), dtype=float)
    rankings = []
    for person in range(simulation.annotators):
        own = strength + simulation.taste * rng.standard_normal(len(methods))
        for item in range(simulation.items):
            draws = own + rng.standard_normal(len(methods))
            order = np.argsort(-draws)
            rank, ranks = 1, {methods[order[0]]: 1}
            for before, now in itertools.pairwise(order):
                rank += int(draws[before] - draws[now] >= simulation.ties)
                ranks[methods[now]] = rank
            ranks = competition_ranks({method: ranks[method] for method in methods})
            at = float(item * simulation.annotators + person)
            rankings.append(Ranking(f"annotator {person + 1}", f"item {item + 1}", ranks, at=at))
    return rankings


def false_difference_rate(
    simulation: RankingSimulation, studies: int, orders: int = 20, resamples: int = 300, report: Report = silent
) -> float:
    """Return the share of simulated studies that find any difference between methods. Intended for equal strengths.

    `orders` and `resamples` are fewer than in a real study, since more of them hardly change the intervals.
    """
    different = 0
    for study in range(studies):
        report(study, studies, "simulated studies")
        rankings = simulate_rankings(replace(simulation, seed=simulation.seed + 1 + study))
        ratings = rate_methods(rankings, simulation.seed + study, orders, resamples).ratings
        different += count_differences([rating.interval for rating in ratings]) > 0
    return different / studies


@dataclass(frozen=True)
class GuessSimulation:
    """A probit model of guesses, in which people differ in skill.

    `accuracy`: mean share of guesses that match the prediction, by condition, above 0 and below 1. `taste`: standard
    deviation of a person's probits around these; half of the variance is common to all conditions. `air`: shift of the
    sureness, by condition. `unsure`: share of "cannot tell".
    """

    accuracy: Mapping[str, float]
    annotators: int = 20
    items: int = 20
    taste: float = 0.5
    air: Mapping[str, float] = field(default_factory=dict)
    unsure: float = 0.0
    seed: int = 0


def simulate_guesses(simulation: GuessSimulation) -> list[GuessAnswer]:
    """Simulate one answer per annotator and item. Each person's conditions alternate, from a random start."""
    _check_sizes(simulation)
    if not simulation.accuracy or not all(0 < share < 1 for share in simulation.accuracy.values()):
        raise not_allowed("accuracy", "a number between 0 and 1 for each condition", dict(simulation.accuracy))
    rng = np.random.default_rng(simulation.seed)
    conditions = tuple(simulation.accuracy)
    # The factor makes `accuracy` the mean accuracy over people.
    general = ndtri(np.array(list(simulation.accuracy.values()))) * np.sqrt(1 + simulation.taste**2)
    answers = []
    for person in range(simulation.annotators):
        shared, apart = rng.standard_normal(), rng.standard_normal(len(general))
        chances = ndtr(general + simulation.taste * np.sqrt(0.5) * (shared + apart))
        start = int(rng.integers(len(conditions)))
        for turn, item in enumerate(rng.permutation(simulation.items).tolist()):
            place = (start + turn) % len(conditions)
            answers.append(
                _simulate_guess(simulation, f"annotator {person + 1}", item, conditions[place], chances[place], rng)
            )
    return answers


@dataclass(frozen=True)
class IntervalCoverage:
    """Measured coverage of intervals. The nominal coverage of both is 95%.

    `alone`: share of accuracy intervals that contain the truth. `together`: share of studies in which all intervals of
    differences contain it.
    """

    alone: float
    together: float


def measure_coverage(simulation: GuessSimulation, studies: int, report: Report = silent) -> IntervalCoverage:
    """Measure coverage over simulated studies that differ only in their seed."""
    accuracy, alone, together = simulation.accuracy, [], []
    for study in range(studies):
        report(study, studies, "simulated studies")
        answers = simulate_guesses(replace(simulation, seed=simulation.seed + 1 + study))
        conditions = summarize_guesses(answers, tuple(accuracy)[1:]).conditions
        alone += [_contains(one.share.interval, accuracy[one.name]) for one in conditions if one.share]
        gains = [(one.gain.interval, accuracy[one.name] - accuracy[WITHOUT]) for one in conditions if one.gain]
        together.append(all(_contains(interval, truth) for interval, truth in gains))
    return IntervalCoverage(sum(alone) / len(alone), sum(together) / len(together))


def _contains(interval: Interval, truth: float) -> bool:
    return interval[0] <= truth <= interval[1]


def _simulate_guess(
    simulation: GuessSimulation, annotator: str, item: int, condition: str, chance: float, rng: np.random.Generator
) -> GuessAnswer:
    target, name = GuessTarget(item % 2), f"item {item + 1}"
    if rng.random() < simulation.unsure:
        return GuessAnswer(annotator, name, condition, None, None, target)
    right = bool(rng.random() < chance)
    feeling = NEUTRAL_SURENESS + simulation.air.get(condition, 0.0) + (0.5 if right else -0.5) + rng.standard_normal()
    sure = int(np.clip(round(feeling), 1, SUREST))
    return GuessAnswer(annotator, name, condition, target.label if right else 1 - target.label, sure, target)


def _check_sizes(simulation: RankingSimulation | GuessSimulation) -> None:
    for name in ("annotators", "items"):
        if getattr(simulation, name) < 1:
            raise not_allowed(name, "a whole number of at least 1", getattr(simulation, name))
