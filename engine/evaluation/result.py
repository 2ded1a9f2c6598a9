"""Evaluation results: the values of each example by model, method and metric, their means, and how they are stored."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from cache.codec import Arrays, Meta
from engine.data.labels import PROMPT_LABELS
from engine.data.slices import split_slice
from engine.errors import ExegesisError
from engine.evaluation.plan import READ, EvaluationPlan
from engine.experiments.base import ExperimentResult
from engine.format import join_names
from engine.lazy import LazyModule
from engine.metrics.catalog import METRICS, is_favored
from engine.metrics.results import MetricKey, MetricRow, MetricScore, MetricSkip, mean_scores
from engine.models.catalog import is_causal, model_labels
from engine.models.chance import ModelAccuracy
from engine.registry import explainer

if TYPE_CHECKING:
    from engine.evaluation import operator_comparison as operators
    from engine.evaluation import scores as scoring
else:  # they import this module
    operators = LazyModule("engine.evaluation.operator_comparison")
    scoring = LazyModule("engine.evaluation.scores")

SATURATED = 0.99
"""A probability above it hardly changes even when the logit changes a lot."""
FALLING = {"comprehensiveness", "sufficiency", "without_top", "with_top"}
"""Metrics that are uninformative for saturated probabilities."""
LEAST_SPREAD = 0.05
"""If the middle 90% of a metric's values span less than this, the metric hardly distinguishes methods and examples."""
SECOND = "second"
"""Key of the second operator's results in a cache entry."""
PART_READ = "Of texts that are too long for the model, the marks in the part that it reads count; the rest do not."
CONSTANT_MAPS = "all maps of the method are constant on this model, so they rank nothing"
"""Reason for withdrawn values of metrics that depend on the ranking of units."""
COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "against": str,
    "percent": int, "removal": str,
}  # fmt: skip
"""Columns of the rows. `example`: index in the data set. `against`: the other method of an agreement.

`percent`: position along a curve. `removal`: the operator by which units were removed; empty if the metric removes
none.
"""
_NUMBER = re.compile(r"-?\d[\d,.]*(?<=\d)")


@dataclass(frozen=True)
class ExampleFacts:
    """The facts about one example on one model, by which results are sliced.

    `label`: None if it is unknown. `right`: None if it is unknown. `length`: number of units. `extra`: other fields of
    the data set with JSON-compatible values.
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
class ModelEvaluation:
    """The results on one model.

    `class_note`: how the data set's classes match the model's, if that is not obvious. `complete`: whether no example
    failed, so none needs to be retried. `requested_rows`: number of model rows that the removal metrics needed.
    `evaluated_rows`: number of those that were run now. Both are 0 for results from the cache. `removal`: the operator
    of the removal metrics. `second`: rows and skips for the same maps with a second operator; None if it is off.
    """

    model: str
    dataset: str
    rows: tuple[MetricRow, ...]
    skips: tuple[MetricSkip, ...]
    facts: tuple[ExampleFacts, ...]
    class_note: str = ""
    complete: bool = True
    requested_rows: int = 0
    evaluated_rows: int = 0
    removal: str = ""
    second: ModelEvaluation | None = None

    @property
    def examples(self) -> tuple[int, ...]:
        """Indices of the examples that could be explained."""
        return tuple(fact.example for fact in self.facts)

    def with_second(self, removal: str, rows: Sequence[MetricRow], skips: Sequence[MetricSkip]) -> ModelEvaluation:
        """Return the results with those of a second operator added."""
        own = replace(self, rows=tuple(rows), skips=tuple(skips), removal=removal, requested_rows=0, evaluated_rows=0)
        return replace(self, second=own)

    def narrow(self, wanted: Callable[[MetricKey], bool]) -> ModelEvaluation:
        """Restrict the results to some methods and metrics."""
        rows = tuple(row for row in self.rows if wanted(row.of))
        skips = tuple(skip for skip in self.skips if wanted(skip.of))
        return replace(self, rows=rows, skips=skips, second=self.second and self.second.narrow(wanted))

    def slice(self, wanted: Callable[[ExampleFacts], bool]) -> ModelEvaluation:
        """Restrict the results to some examples."""
        facts = tuple(one for one in self.facts if wanted(one))
        examples = {one.example for one in facts}
        rows = tuple(row for row in self.rows if row.example in examples)
        skips = tuple(skip for skip in self.skips if skip.example in examples)
        return replace(self, rows=rows, skips=skips, facts=facts, second=self.second and self.second.slice(wanted))


@dataclass(frozen=True)
class Evaluation(ExperimentResult):
    """The results on all models. `plan` has its metrics filled in; `query` is the plan as requested."""

    plan: EvaluationPlan
    models: tuple[ModelEvaluation, ...]
    query: EvaluationPlan | None = None

    @property
    def chosen_metrics(self) -> tuple[str, ...]:
        """The metrics that were requested by name; empty if all that apply were requested."""
        metrics: tuple[str, ...] = self.requested_plan.metrics
        return metrics

    @cached_property
    def rows(self) -> tuple[MetricRow, ...]:
        """All values, one row per observation."""
        return tuple(chain.from_iterable(one.rows for one in self.models))

    @cached_property
    def skips(self) -> tuple[MetricSkip, ...]:
        """Examples without a value, each with the reason."""
        return tuple(chain.from_iterable(one.skips for one in self.models))

    @cached_property
    def facts(self) -> tuple[ExampleFacts, ...]:
        """The facts of each example on each model."""
        return tuple(chain.from_iterable(one.facts for one in self.models))

    @property
    def requested_rows(self) -> int:
        """Number of model rows that the removal metrics needed."""
        return sum(one.requested_rows for one in self.models)

    @property
    def evaluated_rows(self) -> int:
        """Number of those model rows that were run now."""
        return sum(one.evaluated_rows for one in self.models)

    @cached_property
    def scores(self) -> list[MetricScore]:
        """A score for each model, method and metric (and pair of methods or percentage), with its 95% interval."""
        return mean_scores(self.rows, self.skips, self.plan.seed)

    @cached_property
    def standings(self) -> list[scoring.Standing]:
        """The leaderboard of the metrics with one value per example. Cached, so resampling runs only once."""
        wanted = set(scoring.scalar_metrics(self))
        return scoring.leaderboard(self.narrow(lambda key: key.metric in wanted))

    @cached_property
    def second(self) -> Evaluation | None:
        """The removal metrics of the same maps with the second operator; None if it is off."""
        results = [one.second for one in self.models]
        plan = None if None in results else self.plan.second_plan
        return None if plan is None else Evaluation(plan, tuple(one for one in results if one is not None))

    @cached_property
    def operator_comparisons(self) -> list[operators.OperatorComparison]:
        """Whether the best method depends on the operator, by model and metric. Cached: resampling runs only once."""
        return operators.compare_operators(self)

    @property
    def class_notes(self) -> tuple[str, ...]:
        """Notes on how the data set's classes match the models' if that is not obvious, and on a single class."""
        return (*dict.fromkeys(one.class_note for one in self.models if one.class_note), *_one_class(self.facts))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Warnings: models at chance, saturated probabilities, marks that do not count, methods tuned on a metric."""
        saturated = _saturated(self) if FALLING & set(self.plan.metrics) else ""
        part = PART_READ if self.plan.marks == READ and (self.plan.needs("marks") or self.plan.needs("pair")) else ""
        return tuple(filter(None, (*map(_at_chance, self.models), saturated, part, *_tuned(self.plan))))

    def narrow(self, wanted: Callable[[MetricKey], bool]) -> Evaluation:
        """Restrict the results to some methods and metrics."""
        return replace(self, models=tuple(one.narrow(wanted) for one in self.models))

    def slice(self, wanted: Callable[[ExampleFacts], bool]) -> Evaluation:
        """Restrict the results to some examples. F1 keeps the share of marked units of all examples."""
        return replace(self, models=tuple(one.slice(wanted) for one in self.models))

    def by(self, group: Callable[[ExampleFacts], str]) -> dict[str, Evaluation]:
        """Split the results into groups of examples, such as by label or pair of languages, sorted by name."""
        names = sorted({group(one) for one in self.facts})
        return {name: self.slice(lambda one, name=name: group(one) == name) for name in names}  # type: ignore[misc]


def _tuned(plan: EvaluationPlan) -> Iterator[str]:
    """Yield a note for each method that is tuned on one of the measured metrics."""
    for method, metric in plan.tuned.items():
        if favored := [one for one in plan.metrics if is_favored(metric, one)]:
            title, others = explainer(method, plan.kind).title, {*plan.metrics} - {*favored, "evaluations", "seconds"}
            where = (
                "there" if favored == [metric] else f"on {join_names([METRICS[one].title.lower() for one in favored])}"
            )
            advice = "Judge it by the other metrics." if others else "No other metric is measured: add one to judge it."
            yield f"{title} is tuned on {METRICS[metric].title.lower()}, which favors it {where}. {advice}"


def _saturated(evaluation: Evaluation) -> str:
    """A note on classifiers with a probability above `SATURATED` on most examples; empty if there are none."""
    models = []
    for one in evaluation.models:
        above = sum(fact.confidence > SATURATED for fact in one.facts)
        if 2 * above > len(one.facts) and _is_flat(one) and not _is_regression(one.model):
            models.append(f"{one.model} on {above:,} of {len(one.facts):,}")
    if not models:
        return ""
    logits = " and ".join(f"“{METRICS[name].title}”" for name in ("comprehensiveness_logit", "sufficiency_logit"))
    return (
        f"The class probability is above {SATURATED} on most examples: {', '.join(models)}. There it hardly falls, "
        "so comprehensiveness, sufficiency and removal curves are nearly constant and uninformative. "
        f"{'See' if evaluation.plan.logits else 'Measure'} {logits} instead."
    )


def _at_chance(evaluation: ModelEvaluation) -> str:
    """A note on a model that is hardly better than chance; empty for other models, and for a slice of a data set.

    A slice may be chosen because the model is wrong there, so its accuracy on it says nothing about the model.
    """
    if split_slice(evaluation.dataset)[1] is not None:
        return ""
    known = [fact.right for fact in evaluation.facts if fact.right is not None]
    classes = _class_count(evaluation.model) if known else 0
    return ModelAccuracy(sum(known), len(known), classes).note(evaluation.model)


def _is_flat(evaluation: ModelEvaluation) -> bool:
    """Whether no metric in `FALLING` has values that differ clearly."""
    values: dict[str, list[float]] = {}
    for row in evaluation.rows:
        if row.of.metric in FALLING:
            values.setdefault(row.of.metric, []).append(row.value)
    spreads = (np.ptp(np.nanquantile(of, (0.05, 0.95))) for of in values.values())
    return all(spread < LEAST_SPREAD for spread in spreads)


def _is_regression(model: str) -> bool:
    """Whether the model is a regression model, by its files. A missing model counts as a classifier."""
    return _class_count(model) == 1


def _class_count(model: str) -> int:
    """Number of classes by the model's files, or of a prompt for a language model; 0 for a missing model."""
    try:
        return len(PROMPT_LABELS) if is_causal(model) else len(model_labels(model))
    except (ExegesisError, TypeError, ValueError, LookupError, AttributeError):
        return 0


def _one_class(facts: Sequence[ExampleFacts]) -> Iterator[str]:
    labels = {fact.label for fact in facts}
    if len(labels) == 1 and None not in labels and len({fact.example for fact in facts}) > 1:
        yield f"All examples have the label {labels.pop()}, so nothing can be compared between labels."


def group_reasons(skipped: Mapping[str, int]) -> dict[str, int]:
    """Counts by reason. Reasons that differ only in numbers are merged and named by the first one, as an example."""
    groups: dict[str, list[str]] = {}
    for reason in skipped:
        groups.setdefault(_NUMBER.sub("#", reason), []).append(reason)
    return {
        group[0] if len(group) == 1 else f"such as: {group[0]}": sum(skipped[reason] for reason in group)
        for group in groups.values()
    }


def format_reasons(skipped: Mapping[str, int]) -> str:
    """Format the number of examples without a value by reason, most common first; empty if all examples have one."""
    ordered = sorted(group_reasons(skipped).items(), key=lambda one: -one[1])
    return "; ".join(f"{number:,}: {reason.rstrip('.')}" for reason, number in ordered)


def pack(result: ModelEvaluation) -> tuple[Meta, Arrays]:
    """Pack the results on one model into a cache entry."""
    meta, arrays = _pack_values(result)
    meta |= {"facts": [dataclasses.asdict(fact) for fact in result.facts], "said": result.class_note}
    if result.second is not None:
        meta[SECOND], second = _pack_values(result.second)
        arrays |= {f"{SECOND}.{name}": array for name, array in second.items()}
    return meta, arrays


def _pack_values(result: ModelEvaluation) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Pack rows and skips. Each distinct key and reason is stored once."""
    keys = _number([*(row.of for row in result.rows), *(skip.of for skip in result.skips)])
    reasons = _number([skip.reason for skip in result.skips])
    meta = {"ofs": [dataclasses.astuple(key) for key in keys], "reasons": list(reasons)}
    return meta, {
        "row_of": _integers([keys[row.of] for row in result.rows]),
        "row_example": _integers([row.example for row in result.rows]),
        "value": np.array([row.value for row in result.rows], dtype=np.float64),
        "skip_of": _integers([keys[skip.of] for skip in result.skips]),
        "skip_example": _integers([skip.example for skip in result.skips]),
        "reason": _integers([reasons[skip.reason] for skip in result.skips]),
    }


def unpack(plan: EvaluationPlan, meta: Meta, arrays: Arrays) -> ModelEvaluation:
    """Restore the results on one model from a cache entry. `plan`: a plan with one model."""
    [model] = plan.models
    facts = tuple(ExampleFacts(**fact) for fact in meta["facts"])
    values = _unpack_values(meta, arrays)
    result = ModelEvaluation(model, plan.dataset, *values, facts, meta["said"], removal=plan.operator)
    if SECOND not in meta or plan.second_operator is None:
        return result
    own = {name.removeprefix(f"{SECOND}."): array for name, array in arrays.items() if name.startswith(f"{SECOND}.")}
    return result.with_second(plan.second_operator, *_unpack_values(meta[SECOND], own))


def _unpack_values(meta: Meta, arrays: Arrays) -> tuple[tuple[MetricRow, ...], tuple[MetricSkip, ...]]:
    keys = [MetricKey(*values) for values in meta["ofs"]]
    rows = zip(arrays["row_of"].tolist(), arrays["row_example"].tolist(), arrays["value"].tolist(), strict=True)
    skips = zip(arrays["skip_of"].tolist(), arrays["skip_example"].tolist(), arrays["reason"].tolist(), strict=True)
    return (
        tuple(MetricRow(keys[key], example, value) for key, example, value in rows),
        tuple(MetricSkip(keys[key], example, meta["reasons"][reason]) for key, example, reason in skips),
    )


def _number(values: Sequence[Any]) -> dict[Any, int]:
    """Number the distinct values, in order of appearance."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _integers(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)
