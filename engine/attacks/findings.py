"""What attacks on many examples found: rows of every example, and what they come to."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine.attacks.params import TOLERANCE
from engine.attacks.plan import AttackPlan
from engine.attacks.result import BROKEN, CLASS_CHANGED, FAILED, FOOLED, Attacked
from engine.attacks.transfer import Transferred
from engine.evaluation.result import Facts
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
TROUBLES = {
    FAILED: "failed: the ascent left the class for good or broke off, which says nothing about the map",
    CLASS_CHANGED: "changed the class",
    BROKEN: f"broke the constraint: the probability of the class, or the score, moved by more than {TOLERANCE:g}",
}
"""Outcomes of attacks whose maps do not count in means, and why. A failed attack counts in no other mean either."""
LEFT_OUT = {outcome: f"the attack {words}" for outcome, words in TROUBLES.items()}
"""The same as reasons of observations that do not count."""
ATTACK_COLUMNS = ("outcome", "class_kept", "constraint_kept", "start", "relative_epsilon")
"""What is told of an attack beside each of its numbers."""
TRANSFERRED = ("rank_change", "top_k_sum_change", "top_k_sum_change_normalised")
"""Those that another method's maps have too."""
ZERO = "a map is zero everywhere, so that it cannot be divided by its sum"


@dataclass(frozen=True)
class Of:
    """What a number is of, apart from the example. `attacked`: the method under attack, often `method` itself."""

    model: str
    dataset: str
    method: str
    metric: str
    objective: str
    attacked: str


@dataclass(frozen=True)
class Row:
    """One observation, by the example's place in the data set."""

    of: Of
    example: int
    value: float

    def as_plain(self) -> dict[str, str | int | float]:
        """The columns of a tidy table."""
        of = self.of
        return {
            "model": of.model, "dataset": of.dataset, "example": self.example, "method": of.method,
            "metric": of.metric, "value": self.value, "objective": of.objective, "attacked": of.attacked,
        }  # fmt: skip


@dataclass(frozen=True)
class AttackOutcome:
    """What one attack came to. `outcome`: one of `result.OUTCOMES`; `start`: the random start that is kept, from 0.

    `class_kept`: None for a regression head. `relative_epsilon`: see `result.Attacked`.
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
class Skip:
    """An example that has no value, and why."""

    of: Of
    example: int
    reason: str


@dataclass(frozen=True)
class Score:
    """The mean over `n` examples with its 95 % interval; None where no example has a value. `doubt`: why none."""

    of: Of
    value: float | None
    interval: Interval | None
    n: int
    doubt: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Findings:
    """All observations of a plan. `facts`: each example as each model sees it; a wrong one is attacked all the same."""

    plan: AttackPlan
    rows: tuple[Row, ...]
    skips: tuple[Skip, ...]
    facts: tuple[Facts, ...]
    said: tuple[str, ...] = ()
    outcomes: tuple[AttackOutcome, ...] = ()

    @cached_property
    def scores(self) -> list[Score]:
        """A score for each model, attacked method, objective, measured method and metric, of what counts in it."""
        values: dict[Of, list[float]] = {}
        reasons: dict[Of, Counter[str]] = {}
        left_out = {(skip.of, skip.example) for skip in self.left_out}
        for row in self.rows:
            if (row.of, row.example) not in left_out:
                values.setdefault(row.of, []).append(row.value)
        for skip in (*self.skips, *self.left_out):
            reasons.setdefault(skip.of, Counter())[skip.reason] += 1
        ofs = dict.fromkeys((*(row.of for row in self.rows), *reasons))
        return [_score(of, values.get(of, []), reasons.get(of, {}), self.plan.seed) for of in ofs]

    @cached_property
    def left_out(self) -> list[Skip]:
        """Observations that do not count in the means: of maps whose attack broke its constraint, of failed attacks."""
        skips = []
        for row in self.rows:
            one = self._outcome_of(row)
            if one is None or one.outcome not in TROUBLES or row.of.metric == FOOLED:
                continue
            if row.of.metric in TRANSFERRED or one.outcome == FAILED:
                skips.append(Skip(row.of, row.example, LEFT_OUT[one.outcome]))
        return skips

    @property
    def troubles(self) -> Iterator[str]:
        """A line for each model, objective, method and trouble: how many of its attacks do not count."""
        totals = Counter((one.model, one.objective, one.attacked) for one in self.outcomes)
        for outcome, words in TROUBLES.items():
            found = Counter((one.model, one.objective, one.attacked) for one in self.outcomes if one.outcome == outcome)
            for (model, objective, attacked), count in found.items():
                of = totals[model, objective, attacked]
                yield f"{attacked}, {objective}, {model}: {count} of {of} attacks {words}. Not fooled."

    def table(self) -> Iterator[dict[str, str | int | float | None]]:
        """A tidy table, one observation a row, with what the attack came to."""
        for row in self.rows:
            one = self._outcome_of(row)
            yield {**row.as_plain(), **{name: None if one is None else getattr(one, name) for name in ATTACK_COLUMNS}}

    @cached_property
    def _outcomes(self) -> dict[tuple[str, str, str, int], AttackOutcome]:
        return {(one.model, one.objective, one.attacked, one.example): one for one in self.outcomes}

    def _outcome_of(self, row: Row) -> AttackOutcome | None:
        return self._outcomes.get((row.of.model, row.of.objective, row.of.attacked, row.example))

    def slice(self, wanted: Callable[[Facts], bool]) -> Findings:
        """The same of some examples only."""
        kept = {(one.model, one.example) for one in self.facts if wanted(one)}
        return dataclasses.replace(
            self,
            rows=tuple(row for row in self.rows if (row.of.model, row.example) in kept),
            skips=tuple(skip for skip in self.skips if (skip.of.model, skip.example) in kept),
            facts=tuple(one for one in self.facts if (one.model, one.example) in kept),
            outcomes=tuple(one for one in self.outcomes if (one.model, one.example) in kept),
        )


def values_of(found: Attacked | Transferred) -> dict[str, float | None]:
    """Each metric's value; None where a map is all zero. A regression head has no class to keep."""
    names = TRANSFERRED if isinstance(found, Transferred) else tuple(METRICS)
    values = {name: getattr(found, name) for name in names}
    return {name: None if own is None else float(own) for name, own in values.items() if _has(name, found)}


def _has(name: str, found: Attacked | Transferred) -> bool:
    return name != CLASS_KEPT or found.class_kept is not None  # type: ignore[union-attr]


def _score(of: Of, values: list[float], skipped: Mapping[str, int], seed: int) -> Score:
    if not values:
        return Score(of, None, None, 0, skipped=dict(skipped))
    found = np.array(values, dtype=np.float64)
    bounds = interval(found, seed, share=of.metric in SHARES)
    doubt = ONE if bounds is None else EQUAL if bounds[0] == bounds[1] else ""
    return Score(of, float(found.mean()), bounds, len(values), doubt, dict(skipped))
