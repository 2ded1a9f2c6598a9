"""The results of attacks on many examples: rows of every example, their means, their stored and their printed form."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cache.codec import Arrays, Meta
from engine.attacks.attack import describe_epsilon
from engine.attacks.plan import TOLERANCE, AttackParams, AttackPlan
from engine.attacks.result import BROKEN, CLASS_CHANGED, FAILED, FOOLED, AttackResult
from engine.attacks.transfer import TransferResult
from engine.evaluation.result import ExampleFacts
from engine.metrics.results import EQUAL, ONE, Interval, interval

CLASS_KEPT, CONSTRAINT_KEPT = "class_kept", "constraint_kept"
COUNTED = "Only attacks that kept their constraint count."


@dataclass(frozen=True)
class AttackMetric:
    """`better`: for the method; where the attack is strong, a robust method still has low values."""

    id: str
    title: str
    unit: str
    about: str
    better: str = "low"


METRICS = {
    metric.id: metric
    for metric in (
        AttackMetric("rank_change", "Rank change", "share of the top k",
                     "The share of the first k places that another feature holds after the attack. " + COUNTED),
        AttackMetric("top_k_sum_change", "Top-k sum change", "the unit of the map",
                     "By how much the scores of the features that were the top fell, together. " + COUNTED),
        AttackMetric("top_k_sum_change_normalised", "Top-k sum change, normalised", "from -2 to 2",
                     "The same, each map divided by its sum of absolute values, so that methods compare. " + COUNTED),
        AttackMetric("probability_change", "Probability change", "probability",
                     "The probability of the predicted class before the attack less that after it. Near 0: the model "
                     "answers as before; rises and falls cancel in the mean.", "near 0"),
        AttackMetric("probability_distance", "Probability distance", "probability",
                     "The size of that change, whichever way it goes.", "near 0"),
        AttackMetric(CLASS_KEPT, "Class kept", "share of examples",
                     "The share of examples whose predicted class is the same after the attack.", "neither"),
        AttackMetric(CONSTRAINT_KEPT, "Constraint kept", "share of examples",
                     "The share of examples whose predicted class is the same after the attack and, if constrained, "
                     f"its probability (or the score) within {TOLERANCE:g} of that before.", "neither"),
        AttackMetric(FOOLED, "Fooled", "share of examples",
                     "The share of examples whose top k changed while the constraint was kept. Failed attacks and "
                     "broken constraints count as not fooled."),
    )
}  # fmt: skip
"""The measures of the thesis, section 2.3, and how many attacks succeeded."""
SHARES = (CLASS_KEPT, CONSTRAINT_KEPT, FOOLED)
PROBLEMS = {
    FAILED: "failed: the ascent left the class for good or broke off, which says nothing about the map",
    CLASS_CHANGED: "changed the class",
    BROKEN: f"broke the constraint: the probability of the class, or the score, moved by more than {TOLERANCE:g}",
}
"""Outcomes of attacks whose maps do not count in means, and why. A failed attack counts in no other mean either."""
EXCLUDED = {outcome: f"the attack {words}" for outcome, words in PROBLEMS.items()}
"""The reasons of observations that do not count."""
ATTACK_COLUMNS = ("outcome", "class_kept", "constraint_kept", "start", "relative_epsilon")
"""Columns of an attack beside each of its numbers."""
TRANSFERRED = ("rank_change", "top_k_sum_change", "top_k_sum_change_normalised")
"""Metrics that another method's maps have too."""
ZERO = "a map is zero everywhere, so that it cannot be divided by its sum"
COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "objective": str,
    "attacked": str, "outcome": str, "class_kept": bool, "constraint_kept": bool, "start": int,
    "relative_epsilon": float,
}  # fmt: skip
"""`example`: the place in the data set. `attacked`: the method under attack; `method`, whose map is measured, is
another one where transfer is measured. `outcome` and what follows: of the attack, see
`engine.attacks.result.AttackResult`; all rows are there, also those that count in no mean."""


@dataclass(frozen=True)
class AttackMetricKey:
    """The subject of a number, apart from the example. `attacked`: the method under attack, often `method` itself."""

    model: str
    dataset: str
    method: str
    metric: str
    objective: str
    attacked: str


@dataclass(frozen=True)
class AttackRow:
    """One observation, by the example's place in the data set."""

    key: AttackMetricKey
    example: int
    value: float

    def to_json(self) -> dict[str, str | int | float]:
        """The columns of a tidy table."""
        key = self.key
        return {
            "model": key.model, "dataset": key.dataset, "example": self.example, "method": key.method,
            "metric": key.metric, "value": self.value, "objective": key.objective, "attacked": key.attacked,
        }  # fmt: skip


@dataclass(frozen=True)
class AttackOutcome:
    """One attack in a word. `outcome`: one of `engine.attacks.result.OUTCOMES`; `start`: the one that is kept, from 0.

    `class_kept`: None for a regression head. `relative_epsilon`: see `engine.attacks.result.AttackResult`.
    """

    model: str
    objective: str
    attacked: str
    example: int
    outcome: str
    class_kept: bool | None
    constraint_kept: bool
    start: int
    relative_epsilon: float | None


@dataclass(frozen=True)
class AttackSkip:
    """An example that has no value, and why."""

    key: AttackMetricKey
    example: int
    reason: str


@dataclass(frozen=True)
class AttackScore:
    """The mean over `n` examples with its 95% interval; None where no example has a value. `doubt`: why none."""

    key: AttackMetricKey
    value: float | None
    interval: Interval | None
    n: int
    doubt: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class AttackExperimentResult:
    """All observations of a plan. `facts`: each example as each model sees it; a wrong one is attacked all the same.

    `notes`: sentences that a reader needs beside the numbers.
    """

    plan: AttackPlan
    rows: tuple[AttackRow, ...]
    skips: tuple[AttackSkip, ...]
    facts: tuple[ExampleFacts, ...]
    notes: tuple[str, ...] = ()
    outcomes: tuple[AttackOutcome, ...] = ()

    @property
    def examples(self) -> tuple[int, ...]:
        """Places of the examples that were attacked."""
        return tuple(dict.fromkeys(one.example for one in self.facts))

    @property
    def complete(self) -> bool:
        """Whether nothing failed, so that nothing need be tried again."""
        return all(skip.reason == ZERO for skip in self.skips)

    @cached_property
    def scores(self) -> list[AttackScore]:
        """A score for each model, attacked method, objective, measured method and metric, of what counts in it."""
        values: dict[AttackMetricKey, list[float]] = {}
        reasons: dict[AttackMetricKey, Counter[str]] = {}
        excluded = {(skip.key, skip.example) for skip in self.excluded}
        for row in self.rows:
            if (row.key, row.example) not in excluded:
                values.setdefault(row.key, []).append(row.value)
        for skip in (*self.skips, *self.excluded):
            reasons.setdefault(skip.key, Counter())[skip.reason] += 1
        keys = dict.fromkeys((*(row.key for row in self.rows), *reasons))
        return [_score(key, values.get(key, []), reasons.get(key, {}), self.plan.seed) for key in keys]

    @cached_property
    def excluded(self) -> list[AttackSkip]:
        """Observations that do not count in the means: of maps whose attack broke its constraint, of failed attacks."""
        skips = []
        for row in self.rows:
            one = self._outcome_of(row)
            if one is None or one.outcome not in PROBLEMS or row.key.metric == FOOLED:
                continue
            if row.key.metric in TRANSFERRED or one.outcome == FAILED:
                skips.append(AttackSkip(row.key, row.example, EXCLUDED[one.outcome]))
        return skips

    @property
    def problems(self) -> Iterator[str]:
        """A line for each model, objective, method and problem: how many of its attacks do not count."""
        totals = Counter((one.model, one.objective, one.attacked) for one in self.outcomes)
        for outcome, words in PROBLEMS.items():
            counts = Counter(
                (one.model, one.objective, one.attacked) for one in self.outcomes if one.outcome == outcome
            )
            for (model, objective, attacked), count in counts.items():
                total = totals[model, objective, attacked]
                yield f"{attacked}, {objective}, {model}: {count} of {total} attacks {words}. Not fooled."

    def tidy_rows(self) -> Iterator[dict[str, str | int | float | None]]:
        """One observation a row, with the outcome of its attack."""
        for row in self.rows:
            one = self._outcome_of(row)
            yield {**row.to_json(), **{name: None if one is None else getattr(one, name) for name in ATTACK_COLUMNS}}

    @cached_property
    def _outcomes(self) -> dict[tuple[str, str, str, int], AttackOutcome]:
        return {(one.model, one.objective, one.attacked, one.example): one for one in self.outcomes}

    def _outcome_of(self, row: AttackRow) -> AttackOutcome | None:
        return self._outcomes.get((row.key.model, row.key.objective, row.key.attacked, row.example))

    def subset(self, wanted: Callable[[ExampleFacts], bool]) -> AttackExperimentResult:
        """The result of some examples only."""
        examples = {(one.model, one.example) for one in self.facts if wanted(one)}
        return dataclasses.replace(
            self,
            rows=tuple(row for row in self.rows if (row.key.model, row.example) in examples),
            skips=tuple(skip for skip in self.skips if (skip.key.model, skip.example) in examples),
            facts=tuple(one for one in self.facts if (one.model, one.example) in examples),
            outcomes=tuple(one for one in self.outcomes if (one.model, one.example) in examples),
        )


def metric_values(result: AttackResult | TransferResult) -> dict[str, float | None]:
    """Each metric's value; None where a map is all zero. A regression head has no class to keep."""
    names = TRANSFERRED if isinstance(result, TransferResult) else tuple(METRICS)
    values = {name: getattr(result, name) for name in names}
    return {name: None if own is None else float(own) for name, own in values.items() if _has_metric(name, result)}


def _has_metric(name: str, result: AttackResult | TransferResult) -> bool:
    return name != CLASS_KEPT or result.class_kept is not None  # type: ignore[union-attr]


def _score(key: AttackMetricKey, values: list[float], skipped: Mapping[str, int], seed: int) -> AttackScore:
    if not values:
        return AttackScore(key, None, None, 0, skipped=dict(skipped))
    numbers = np.array(values, dtype=np.float64)
    bounds = interval(numbers, seed, share=key.metric in SHARES)
    doubt = ONE if bounds is None else EQUAL if bounds[0] == bounds[1] else ""
    return AttackScore(key, float(numbers.mean()), bounds, len(values), doubt, dict(skipped))


def pack(result: AttackExperimentResult) -> tuple[Meta, Arrays]:
    """Plain metadata, and no arrays."""
    meta: dict[str, Any] = {
        "rows": [[*dataclasses.astuple(row.key), row.example, row.value] for row in result.rows],
        "skips": [[*dataclasses.astuple(skip.key), skip.example, skip.reason] for skip in result.skips],
        "facts": [dataclasses.asdict(fact) for fact in result.facts],
        "said": list(result.notes),
        "outcomes": [list(dataclasses.astuple(one)) for one in result.outcomes],
    }
    return meta, {}


def unpack(plan: AttackPlan, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> AttackExperimentResult:
    """The result that `pack` took apart."""
    return AttackExperimentResult(
        plan,
        tuple(AttackRow(AttackMetricKey(*key), example, value) for *key, example, value in meta["rows"]),
        tuple(AttackSkip(AttackMetricKey(*key), example, reason) for *key, example, reason in meta["skips"]),
        tuple(ExampleFacts(**fact) for fact in meta["facts"]),
        tuple(meta["said"]),
        tuple(AttackOutcome(*one) for one in meta["outcomes"]),
    )


def to_json(result: AttackExperimentResult) -> dict[str, Any]:
    """The contract of `exegesis attack --json`; rows of examples go to `--out`.

    The plan, a score for each model, objective, attacked method, measured method and metric, the outcome of each attack
    (the fields of `AttackOutcome`), the examples, and notes.
    """
    return {
        "plan": result.plan.as_plain(),
        "scores": [_score_json(score) for score in result.scores],
        "attacks": [dataclasses.asdict(one) for one in result.outcomes],
        "examples": [
            {"model": one.model, "example": one.example, "label": one.label, "predicted": one.predicted,
             "confidence": one.confidence, "right": one.right, "length": one.length}
            for one in result.facts
        ],
        "notes": [*result.problems, *result.notes],
    }  # fmt: skip


def _score_json(score: AttackScore) -> dict[str, Any]:
    """`low`, `high`: ends of the 95% interval. `doubt`: why there is none, or one that tells nothing."""
    key, (low, high) = score.key, score.interval or (None, None)
    return {
        "model": key.model,
        "dataset": key.dataset,
        "objective": key.objective,
        "attacked": key.attacked,
        "method": key.method,
        "metric": key.metric,
        "value": score.value,
        "low": low,
        "high": high,
        "doubt": score.doubt or None,
        "n": score.n,
        "skipped": dict(score.skipped),
    }


def epsilon_notes(outcomes: Sequence[AttackOutcome], params: AttackParams) -> Iterator[str]:
    """The change that epsilon allows, a sentence a model: median and range of the examples' multiples."""
    for model in dict.fromkeys(one.model for one in outcomes):
        own = [one.relative_epsilon for one in outcomes if one.model == model and one.relative_epsilon is not None]
        if not own:
            continue
        words = describe_epsilon(params, float(np.median(own)))
        spread = f" ({min(own):.3g} to {max(own):.3g} over the examples)" if min(own) < max(own) else ""
        yield f"{model}: {words}{spread}."


def summarize_notes(notes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A sentence for each kind of note: how many attacks have it, and the first one.

    `notes`: the name of an attack, and its note. Those that differ in their numbers alone are of one kind.
    """
    kinds: dict[str, list[tuple[str, str]]] = {}
    for attack, note in notes:
        kinds.setdefault(re.sub(r"\d[\d.]*", "", note), []).append((attack, note))
    for own in kinds.values():
        attack, note = own[0]
        yield f"{attack}: {note}" if len(own) == 1 else f"{len(own)} attacks, such as {attack}: {note}"
