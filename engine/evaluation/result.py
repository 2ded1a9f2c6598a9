"""What an evaluation found: rows of every example, and what they come to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.errors import ExegesisError
from engine.evaluation.plan import Plan
from engine.metrics.results import MetricRow, MetricScore, MetricSkip, mean_scores
from engine.models.catalog import model_labels

SATURATED = 0.99
"""A probability above it hardly moves where the logit moves much."""
FALLING = {"comprehensiveness", "sufficiency", "without_top", "with_top"}
"""The metrics that tell little then."""


@dataclass(frozen=True)
class Facts:
    """An example as one model sees it: by these, results are looked at in slices.

    `label`: None where it is not known. `right`: None where that cannot be told. `length`: units. `extra`: what the
    data set says besides, as far as it is plain.
    """

    model: str
    example: int
    label: str | None
    predicted: str
    confidence: float
    right: bool | None
    length: int
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class OfModel:
    """What was found on one model. `said`: how the data set's classes are its own, where that is not plain.

    `complete`: no example failed, so that it need not be tried again.
    """

    rows: tuple[MetricRow, ...]
    skips: tuple[MetricSkip, ...]
    facts: tuple[Facts, ...]
    said: str
    complete: bool


@dataclass(frozen=True)
class Evaluation:
    """What was found, an observation a row; `plan` with its metrics filled in.

    `asked`, `run`: model rows that the removal metrics asked for, and that were run for them now.
    """

    plan: Plan
    rows: tuple[MetricRow, ...]
    skips: tuple[MetricSkip, ...]
    facts: tuple[Facts, ...]
    asked: int
    run: int
    said: tuple[str, ...] = ()
    """How the data set's classes are the model's, where that is not plain, and that it has one class only."""

    @cached_property
    def scores(self) -> list[MetricScore]:
        """A score for each model, method and metric (pair of methods, percent), with its 95 % interval."""
        return mean_scores(self.rows, self.skips, self.plan.seed)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the numbers do not say of themselves: the models whose probabilities are too near 1 to fall."""
        told = _saturated(self) if FALLING & set(self.plan.metrics) else ""
        return (told,) if told else ()

    def slice(self, wanted: Callable[[Facts], bool]) -> Evaluation:
        """The same of some examples only. F1 keeps the share of the whole."""
        kept = {(one.model, one.example) for one in self.facts if wanted(one)}
        return dataclasses.replace(
            self,
            rows=tuple(row for row in self.rows if (row.of.model, row.example) in kept),
            skips=tuple(skip for skip in self.skips if (skip.of.model, skip.example) in kept),
            facts=tuple(one for one in self.facts if (one.model, one.example) in kept),
        )

    def by(self, group: Callable[[Facts], str]) -> dict[str, Evaluation]:
        """Apart for each group of examples, such as a label or a pair of languages, in order."""
        names = sorted({group(one) for one in self.facts})
        return {name: self.slice(lambda one, name=name: group(one) == name) for name in names}  # type: ignore[misc]


def joined(plan: Plan, models: Sequence[OfModel], asked: int, run: int) -> Evaluation:
    """The evaluation of several models."""
    return Evaluation(
        plan,
        rows=tuple(row for one in models for row in one.rows),
        skips=tuple(skip for one in models for skip in one.skips),
        facts=tuple(fact for one in models for fact in one.facts),
        asked=asked,
        run=run,
        said=(*dict.fromkeys(one.said for one in models if one.said), *_one_class(models)),
    )


def _saturated(found: Evaluation) -> str:
    """Which classifiers have a probability above `SATURATED` on more than half of the examples; empty where none."""
    models = []
    for model in found.plan.models:
        shares = [fact.confidence for fact in found.facts if fact.model == model]
        above = sum(share > SATURATED for share in shares)
        if 2 * above > len(shares) and not _is_regression(model):
            models.append(f"{model} on {above:,} of {len(shares):,}")
    if not models:
        return ""
    return (
        f"The probability of the class is above {SATURATED} on most examples: {', '.join(models)}. There a fall of "
        "the logit hardly shows in it, so comprehensiveness, sufficiency and removal curves say little. "
        f"{'Read' if found.plan.logits else 'Measure'} comprehensiveness_logit and sufficiency_logit, which are "
        "falls of the logit."
    )


def _is_regression(model: str) -> bool:
    """By its files; a model that is gone is taken for a classifier."""
    try:
        return len(model_labels(model)) == 1
    except (ExegesisError, TypeError, ValueError, LookupError, AttributeError):
        return False


def _one_class(models: Sequence[OfModel]) -> Iterator[str]:
    facts = [fact for one in models for fact in one.facts]
    labels = {fact.label for fact in facts}
    if len(labels) == 1 and None not in labels and len({fact.example for fact in facts}) > 1:
        yield f"All examples have the label {labels.pop()}, so nothing can be compared between labels."
