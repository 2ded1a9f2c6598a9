"""The result of a behavior experiment, and the accuracy of each way of answering."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.behavior.plan import FEATURE, LOCAL, QUERY, RECOURSE, BehaviorPlan
from engine.behavior.queries import BehaviorCases
from engine.experiments.base import ExperimentResult
from engine.experiments.sample import training_half
from engine.lazy import scipy
from engine.metrics.results import LEVEL, Interval, share_interval

COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "task": str,
    "word": str, "position": int,
}  # fmt: skip
"""Columns of the rows. `example`: index in the data set. `method`: a method, "query-" and a budget, or empty for the
truth. `word`: the word or patch that the question is about. `position`: its position in the example, from 1. A method
that failed on an example has no rows for it.
"""
UPPER = (1 + LEVEL) / 2
"""The upper quantile of an interval."""
SIGN, ORDER, FLIP, USE = "sign", "order", "flip", "use"
QUESTIONS = {LOCAL: (SIGN, ORDER), FEATURE: (USE,), RECOURSE: (FLIP,)}
"""The questions of each task. `sign`: does the probability drop? `order`: which of two words lowers it more?"""


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelBehavior(BehaviorCases):
    """The cases of all examples on one model.

    `examples`: indices in the data set. `owner`: position in `examples` of each case's example. `failed`: reasons why
    examples have no question, by index. `failures`: reasons why a method failed, by method and index. `complete`:
    whether nothing failed that may succeed on a retry.
    """

    model: str
    dataset: str
    task: str
    ways: tuple[str, ...]
    examples: tuple[int, ...]
    targets: tuple[str, ...]
    probabilities: Float[np.ndarray, "example"]
    evaluations: Int[np.ndarray, "example way"]
    owner: Int[np.ndarray, "case"]
    failed: dict[int, str]
    complete: bool
    failures: dict[str, dict[int, str]] = field(default_factory=dict)

    @property
    def answered(self) -> Bool[np.ndarray, "example way"]:
        """Whether each way has answers on each example; a method that failed on it has none."""
        failures = [self.failures.get(way, {}) for way in self.ways]
        rows = [[index not in own for own in failures] for index in self.examples]
        return np.array(rows, dtype=bool).reshape(len(self.examples), len(self.ways))

    @property
    def right(self) -> Bool[np.ndarray, "case way"]:
        """Whether each answer agrees with the truth; False if the method failed."""
        right: Bool[np.ndarray, "case way"] = (self.yes == (self.truth > 0)[:, None]) & self.answered[self.owner]
        return right

    def cases_of(self, position: int) -> Int[np.ndarray, "own"]:
        """The cases of the example at this position."""
        return np.flatnonzero(self.owner == position)


@dataclass(frozen=True)
class BehaviorResult(ExperimentResult):
    """The results of a plan, model by model."""

    plan: BehaviorPlan
    models: tuple[ModelBehavior, ...]


@dataclass(frozen=True)
class WayAccuracy:
    """The accuracy of a way: the share of counted cases that it answers correctly, with a 95% interval over examples.

    `accuracy`: None if no case counts. `evaluations`: mean number of model evaluations over the examples with a counted
    case. Examples on which a method failed are left out for this method. A direct answer that is right by definition
    has no interval.
    """

    way: str
    accuracy: float | None
    interval: Interval | None
    evaluations: float

    @property
    def is_query(self) -> bool:
        """Whether the model was asked directly."""
        return self.way.startswith(QUERY)

    @property
    def budget(self) -> int:
        """The budget of a direct query, 0 for a method."""
        return int(self.way.removeprefix(QUERY)) if self.is_query else 0


@dataclass(frozen=True)
class BehaviorAnswer:
    """The accuracies for one question on one model.

    `cases`: number of counted cases, out of `all_cases`. `yes_share`: share of them whose right answer is yes; None if
    the question has no such answer. `chance`: accuracy of random guessing. `best`: the attribution that is most
    accurate on one half of the examples, with its accuracy on the other half.
    """

    model: str
    question: str
    ways: tuple[WayAccuracy, ...]
    cases: int
    all_cases: int
    yes_share: float | None
    chance: float | None
    best: WayAccuracy | None = None

    @property
    def majority(self) -> float | None:
        """The accuracy of always giving the more frequent answer."""
        return None if self.yes_share is None else max(self.yes_share, 1 - self.yes_share)

    @property
    def queries(self) -> tuple[WayAccuracy, ...]:
        """The direct queries, by budget."""
        return tuple(one for one in self.ways if one.is_query)

    @property
    def methods(self) -> tuple[WayAccuracy, ...]:
        """The attributions, most accurate first; ties go to fewer evaluations."""
        own = (one for one in self.ways if not one.is_query)
        return tuple(sorted(own, key=lambda one: (-(one.accuracy or 0.0), one.evaluations)))


def answers_of(found: ModelBehavior, plan: BehaviorPlan) -> tuple[BehaviorAnswer, ...]:
    """Return the accuracies of all ways, for each question of the task."""
    return tuple(_answer(found, question, plan) for question in QUESTIONS[found.task])


def _answer(found: ModelBehavior, question: str, plan: BehaviorPlan) -> BehaviorAnswer:
    right, counts = _right_answers(found, question, plan)
    total = _pair_count(found) if question == ORDER else len(found.truth)
    share = chance = None
    if counts.any():
        counted = found.counted
        chance = 0.5 if question == ORDER else float(found.chance[counted].mean())
        share = float((found.truth[counted] > 0).mean()) if question in (SIGN, USE) else None
    ways = tuple(
        _without_certain_interval(one, plan) for one in _way_accuracies(found, right, counts, range(len(counts)))
    )
    return BehaviorAnswer(
        found.model, question, ways, int(counts.sum()), total, share, chance, _best_method(found, right, counts, plan)
    )


def _right_answers(
    found: ModelBehavior, question: str, plan: BehaviorPlan
) -> tuple[Int[np.ndarray, "example way"], Int[np.ndarray, "example"]]:
    """For each example, the number of right answers of each way, and the number of counted cases or pairs."""
    positions = range(len(found.examples))
    if question == ORDER:
        cases = [order_cases(found, position, plan.margin / 100) for position in positions]
    else:
        members = [found.cases_of(position) for position in positions]
        cases = [found.right[own[found.counted[own]]] for own in members]
    right = np.array([own.sum(axis=0) for own in cases], dtype=np.int64).reshape(len(cases), len(found.ways))
    return right, np.array([len(own) for own in cases], dtype=np.int64)


def _way_accuracies(
    found: ModelBehavior, right: Int[np.ndarray, "example way"], counts: Int[np.ndarray, "example"],
    positions: Sequence[int],
) -> Iterator[WayAccuracy]:  # fmt: skip
    """The accuracy of each way on these examples; for a method, on those that it answers."""
    answered, chosen = found.answered, np.isin(np.arange(len(counts)), positions)
    for at, way in enumerate(found.ways):
        own = chosen & answered[:, at]
        paying = own & (counts > 0) if (own & (counts > 0)).any() else own
        cost = float(found.evaluations[paying, at].mean()) if paying.any() else 0.0
        yield WayAccuracy(way, *accuracy_interval(right[own, at], counts[own]), cost)


def _best_method(
    found: ModelBehavior, right: Int[np.ndarray, "example way"], counts: Int[np.ndarray, "example"], plan: BehaviorPlan
) -> WayAccuracy | None:
    """The attribution that is most accurate on one half of the counted examples, with its accuracy on the other half.

    Selection and evaluation use different examples, so the accuracy is not inflated by picking the best of several.
    None if one half is empty or there is only one method.
    """
    counting = [position for position in range(len(counts)) if counts[position]]
    half = training_half([found.examples[position] for position in counting], plan.seed)
    training = [position for position in counting if found.examples[position] in half]
    if not training or len(plan.methods) < 2:
        return None
    own = [one for one in _way_accuracies(found, right, counts, training) if not one.is_query]
    best = min(own, key=lambda one: (-(one.accuracy or 0.0), one.evaluations)).way
    held_out = [position for position in counting if position not in training]
    return next(one for one in _way_accuracies(found, right, counts, held_out) if one.way == best)


def _without_certain_interval(way: WayAccuracy, plan: BehaviorPlan) -> WayAccuracy:
    certain = way.is_query and plan.answers_by_definition(way.budget)
    return replace(way, interval=None) if certain else way


def _pair_count(found: ModelBehavior) -> int:
    sizes = np.bincount(found.owner, minlength=len(found.examples))
    return int((sizes * (sizes - 1) // 2).sum())


def order_cases(found: ModelBehavior, position: int, margin: float) -> Bool[np.ndarray, "pair way"]:
    """Whether each way tells which of two words of an example lowers the probability more.

    A pair counts if the difference of the drops is at least the margin and larger than its 95% interval. Equal scores
    count as wrong, because they give no order.
    """
    own = found.cases_of(position)
    first, second = (own[places] for places in np.triu_indices(len(own), k=1))
    gap = found.truth[first] - found.truth[second]
    error = np.hypot(found.truth_error[first], found.truth_error[second])
    counts = (np.abs(gap) >= margin) & (np.abs(gap) > error)
    said = np.sign(found.values[first] - found.values[second])
    right: Bool[np.ndarray, "pair way"] = (said == np.sign(gap)[:, None])[counts]
    return right


def accuracy_interval(
    right: Int[np.ndarray, "example"], counts: Int[np.ndarray, "example"]
) -> tuple[float | None, Interval | None]:
    """Share of right answers among all that count, and its 95% interval over examples.

    Answers about the same example are dependent. The exact Clopper-Pearson interval is therefore computed for a smaller
    number of answers, by the design effect of the examples. Source: Korn and Graubard (1998), Confidence intervals for
    proportions with small expected number of positive counts. If all answers are right or all are wrong, the design
    effect cannot be estimated, so each example counts as one answer. There is no interval for fewer than two examples.
    """
    right, counts = right[counts > 0], counts[counts > 0]
    if not len(counts):
        return None, None
    total, share, examples = int(counts.sum()), float(right.sum() / counts.sum()), len(counts)
    if examples < 2:
        return share, None
    if (counts == 1).all() or share in (0, 1):
        return share, share_interval(round(share * examples), examples)
    effective = total * (scipy.stats.t.ppf(UPPER, total - 1) / scipy.stats.t.ppf(UPPER, examples - 1)) ** 2
    variance = examples / (examples - 1) * ((right - share * counts) ** 2).sum() / total**2
    effective *= share * (1 - share) / (total * variance) if variance else 1.0
    effective = min(effective, float(total))
    return share, _fractional_interval(share * effective, effective)


def _fractional_interval(hits: float, n: float) -> Interval:
    """The Clopper-Pearson interval for `hits` and `n` that need not be whole numbers."""
    low = scipy.special.betaincinv(hits, n - hits + 1, 1 - UPPER) if hits > 0 else 0.0
    return float(low), float(scipy.special.betaincinv(hits + 1, n - hits, UPPER)) if hits < n else 1.0


def rows(found: ModelBehavior) -> Iterator[dict[str, Any]]:
    """Yield the rows of each case: its truth, then value, answer and correctness of each way.

    After the cases of an example come the evaluations of each way.
    """
    answered = found.answered
    for position, example in enumerate(found.examples):
        shared = {"model": found.model, "dataset": found.dataset, "example": example}
        for place, case in enumerate(found.cases_of(position).tolist(), 1):
            about = {"task": found.task, "word": found.words[case], "position": place}
            for method, metric, value in _case_values(found, case, answered[position]):
                yield {**shared, "method": method, "metric": metric, "value": value, **about}
        for at in np.flatnonzero(answered[position]).tolist():
            about = {"task": found.task, "word": "", "position": 0}
            value = float(found.evaluations[position, at])
            yield {**shared, "method": found.ways[at], "metric": "evaluations", "value": value, **about}


def _case_values(
    found: ModelBehavior, case: int, answered: Bool[np.ndarray, "way"]
) -> Iterator[tuple[str, str, float]]:  # fmt: skip
    yield "", "truth", float(found.truth[case])
    yield "", "truth_error", float(found.truth_error[case])
    yield "", "counted", float(found.counted[case])
    for at in np.flatnonzero(answered).tolist():
        way = found.ways[at]
        yield way, "value", float(found.values[case, at])
        yield way, "yes", float(found.yes[case, at])
        if found.counted[case]:
            yield way, "right", float(found.right[case, at])
