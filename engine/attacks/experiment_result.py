"""Results of attacks on many examples: rows, means, and how they are stored and printed."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from cache.codec import Arrays, Meta
from engine.attacks.attack import TransferResult, describe_epsilon
from engine.attacks.plan import TOLERANCE, AttackParams, AttackPlan
from engine.attacks.result import BROKEN, CLASS_CHANGED, FAILED, FOOLED, AttackResult
from engine.evaluation.result import ExampleFacts
from engine.metrics.results import EQUAL, ONE, Interval, interval

CLASS_KEPT, CONSTRAINT_KEPT = "class_kept", "constraint_kept"
COUNTED = "Only attacks that met their constraint count."


@dataclass(frozen=True)
class AttackMetric:
    """A measure of an attack. `better`: the direction that is better for the attacked method."""

    id: str
    title: str
    unit: str
    about: str
    better: str = "low"


METRICS = {
    metric.id: metric
    for metric in (
        AttackMetric("rank_change", "Rank change", "share of the top k",
                     "Share of the top k ranks held by another feature after the attack. " + COUNTED),
        AttackMetric("top_k_sum_change", "Top-k sum change", "the unit of the map",
                     "Total drop in the scores of the features that were in the top k. " + COUNTED),
        AttackMetric("top_k_sum_change_normalised", "Top-k sum change, normalized", "from -2 to 2",
                     "The same after dividing each map by its sum of absolute values, to compare methods. " + COUNTED),
        AttackMetric("probability_change", "Probability change", "probability",
                     "Probability of the predicted class before the attack minus that after it. Near 0: the prediction "
                     "is unchanged. In the mean, increases and decreases cancel out.", "near 0"),
        AttackMetric("probability_distance", "Probability distance", "probability",
                     "Absolute change in the probability of the predicted class.", "near 0"),
        AttackMetric(CLASS_KEPT, "Class kept", "share of examples",
                     "Share of examples that keep their predicted class.", "neither"),
        AttackMetric(CONSTRAINT_KEPT, "Constraint kept", "share of examples",
                     "Share of examples that keep their predicted class and, in constrained attacks, its probability "
                     f"(or the score) to within {TOLERANCE:g}.", "neither"),
        AttackMetric(FOOLED, "Fooled", "share of examples",
                     "Share of examples whose top k changed while the constraint was met. Failed attacks and broken "
                     "constraints count as not fooled."),
    )
}  # fmt: skip
"""The measures of the thesis (section 2.3) and the success rates."""
SHARES = (CLASS_KEPT, CONSTRAINT_KEPT, FOOLED)
PROBLEMS = {
    FAILED: "failed (no solution; ended in another class or at a non-finite value), which says nothing about the map",
    CLASS_CHANGED: "changed the class",
    BROKEN: f"broke the constraint: the class probability (or the score) changed by more than {TOLERANCE:g}",
}
"""Outcomes whose maps are excluded from the means, and why. A failed attack is excluded from all other means too."""
NOT_FOOLED = "The share that fooled the method counts them as not fooled."
EXCLUDED = {outcome: f"the attack {words}" for outcome, words in PROBLEMS.items()}
"""Reasons for excluded observations."""
ATTACK_COLUMNS = ("outcome", "class_kept", "constraint_kept", "start", "relative_epsilon")
"""Columns that describe the attack in each row."""
TRANSFERRED = ("rank_change", "top_k_sum_change", "top_k_sum_change_normalised")
"""Metrics that are also measured for other methods."""
ZERO = "a map is zero everywhere, so it cannot be divided by its sum"
COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "objective": str,
    "attacked": str, "outcome": str, "class_kept": bool, "constraint_kept": bool, "start": int,
    "relative_epsilon": float,
}  # fmt: skip
"""Columns of the rows. `example`: index in the data set. `attacked`: the attacked method.

`method`: the measured method, which differs from the attacked one for transfer. `outcome` and the columns after it
describe the attack, see `engine.attacks.result.AttackResult`. Observations that are excluded from the means are
included.
"""


@dataclass(frozen=True)
class AttackMetricKey:
    """The key of a value without the example. `attacked`: the attacked method, often `method` itself."""

    model: str
    dataset: str
    method: str
    metric: str
    objective: str
    attacked: str


@dataclass(frozen=True)
class AttackRow:
    """One observation. `example`: index in the data set."""

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
    """Outcome of one attack. `outcome`: one of `engine.attacks.result.OUTCOMES`; `start`: index of the best start.

    `class_kept`: None for regression. `relative_epsilon`: see `engine.attacks.result.AttackResult`.
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
    """An example without a value, and the reason."""

    key: AttackMetricKey
    example: int
    reason: str


@dataclass(frozen=True)
class AttackScore:
    """Mean over `n` examples with a 95% interval; None without values. `doubt`: why there is no interval."""

    key: AttackMetricKey
    value: float | None
    interval: Interval | None
    n: int
    doubt: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class AttackExperimentResult:
    """All observations of a plan. `facts`: each model's prediction for each example. `notes`: warnings for readers."""

    plan: AttackPlan
    rows: tuple[AttackRow, ...]
    skips: tuple[AttackSkip, ...]
    facts: tuple[ExampleFacts, ...]
    notes: tuple[str, ...] = ()
    outcomes: tuple[AttackOutcome, ...] = ()

    @property
    def examples(self) -> tuple[int, ...]:
        """Indices of the attacked examples."""
        return tuple(dict.fromkeys(one.example for one in self.facts))

    @property
    def complete(self) -> bool:
        """Whether no attack failed with an error."""
        return all(skip.reason == ZERO for skip in self.skips)

    @cached_property
    def scores(self) -> list[AttackScore]:
        """A score for each model, attacked method, objective, measured method and metric."""
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
        """Observations excluded from the means: maps of attacks that broke their constraint, and failed attacks."""
        skips = []
        for row in self.rows:
            one = self._outcome_of(row)
            if one is None or one.outcome not in PROBLEMS or row.key.metric == FOOLED:
                continue
            if row.key.metric in TRANSFERRED or one.outcome == FAILED:
                skips.append(AttackSkip(row.key, row.example, EXCLUDED[one.outcome]))
        return skips

    def problems(self, titles: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
        """A line for each model, objective, method and problem: how many attacks are affected. `titles`: of methods."""
        totals = Counter((one.model, one.objective, one.attacked) for one in self.outcomes)
        for outcome, words in PROBLEMS.items():
            counts = Counter(
                (one.model, one.objective, one.attacked) for one in self.outcomes if one.outcome == outcome
            )
            for (model, objective, attacked), count in counts.items():
                total = totals[model, objective, attacked]
                method = titles.get(attacked, attacked)
                yield f"{method}, {objective}, {model}: {count} of {total} attacks {words}. {NOT_FOOLED}"

    def tidy_rows(self) -> Iterator[dict[str, str | int | float | None]]:
        """One row per observation, with the outcome of its attack."""
        for row in self.rows:
            one = self._outcome_of(row)
            yield {**row.to_json(), **{name: None if one is None else getattr(one, name) for name in ATTACK_COLUMNS}}

    @cached_property
    def _outcomes(self) -> dict[tuple[str, str, str, int], AttackOutcome]:
        return {(one.model, one.objective, one.attacked, one.example): one for one in self.outcomes}

    def _outcome_of(self, row: AttackRow) -> AttackOutcome | None:
        return self._outcomes.get((row.key.model, row.key.objective, row.key.attacked, row.example))

    def subset(self, wanted: Callable[[ExampleFacts], bool]) -> AttackExperimentResult:
        """The result restricted to the examples that meet a condition."""
        examples = {(one.model, one.example) for one in self.facts if wanted(one)}
        return dataclasses.replace(
            self,
            rows=tuple(row for row in self.rows if (row.key.model, row.example) in examples),
            skips=tuple(skip for skip in self.skips if (skip.key.model, skip.example) in examples),
            facts=tuple(one for one in self.facts if (one.model, one.example) in examples),
            outcomes=tuple(one for one in self.outcomes if (one.model, one.example) in examples),
        )


def metric_values(result: AttackResult | TransferResult) -> dict[str, float | None]:
    """Value of each metric, None if a map is all zero. Regression has no `class_kept`."""
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
    """Pack the result into plain metadata; there are no arrays."""
    meta: dict[str, Any] = {
        "rows": [[*dataclasses.astuple(row.key), row.example, row.value] for row in result.rows],
        "skips": [[*dataclasses.astuple(skip.key), skip.example, skip.reason] for skip in result.skips],
        "facts": [dataclasses.asdict(fact) for fact in result.facts],
        "said": list(result.notes),
        "outcomes": [list(dataclasses.astuple(one)) for one in result.outcomes],
    }
    return meta, {}


def unpack(plan: AttackPlan, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> AttackExperimentResult:
    """Restore a packed result."""
    return AttackExperimentResult(
        plan,
        tuple(AttackRow(AttackMetricKey(*key), example, value) for *key, example, value in meta["rows"]),
        tuple(AttackSkip(AttackMetricKey(*key), example, reason) for *key, example, reason in meta["skips"]),
        tuple(ExampleFacts(**fact) for fact in meta["facts"]),
        tuple(meta["said"]),
        tuple(AttackOutcome(*one) for one in meta["outcomes"]),
    )


def to_json(result: AttackExperimentResult) -> dict[str, Any]:
    """The output of `exegesis attack --json`; per-example rows go to `--out`.

    The plan, one score per model, objective, attacked method, measured method and metric, the outcome of each attack
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
        "notes": [*result.problems(), *result.notes],
    }  # fmt: skip


def _score_json(score: AttackScore) -> dict[str, Any]:
    """Plain values of a score. `low`, `high`: ends of the 95% interval. `doubt`: why it is missing or uninformative."""
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
    """A sentence per model on the change that epsilon allows: median and range over examples."""
    for model in dict.fromkeys(one.model for one in outcomes):
        own = [one.relative_epsilon for one in outcomes if one.model == model and one.relative_epsilon is not None]
        if not own:
            continue
        words = describe_epsilon(params, float(np.median(own)))
        spread = f" ({min(own):.3g} to {max(own):.3g} across examples)" if min(own) < max(own) else ""
        yield f"{model}: {words}{spread}."


def summarize_notes(notes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A sentence per kind of note: the number of attacks with it and the first of them.

    `notes`: pairs of attack name and note. Notes that differ only in numbers are of one kind.
    """
    kinds: dict[str, list[tuple[str, str]]] = {}
    for attack, note in notes:
        kinds.setdefault(re.sub(r"\d[\d.]*", "", note), []).append((attack, note))
    for own in kinds.values():
        attack, note = own[0]
        yield f"{attack}: {note}" if len(own) == 1 else f"{len(own)} attacks, for example {attack}: {note}"
