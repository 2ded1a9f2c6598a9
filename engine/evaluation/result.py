"""Evaluation results: values of every example by model, method and metric, their means, and their stored form."""

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
else:  # they are of evaluations
    operators = LazyModule("engine.evaluation.operator_comparison")
    scoring = LazyModule("engine.evaluation.scores")

SATURATED = 0.99
"""A probability above it hardly moves where the logit moves much."""
FALLING = {"comprehensiveness", "sufficiency", "without_top", "with_top"}
"""The metrics that tell little then."""
LEAST_SPREAD = 0.05
"""If the middle 90% of a metric's values lie closer together, the metric tells methods and examples hardly apart."""
SECOND = "second"
"""In cache entries: what is of the second operator."""
PART_READ = "Of texts that are too long for the model, the marks in the part that it reads count; the rest do not."
CONSTANT_MAPS = "all maps of the method are constant on this model, so they rank nothing"
"""Why values that are of an order are taken back."""
COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "against": str,
    "percent": int, "removal": str,
}  # fmt: skip
"""Of the rows. `example`: the place in the data set. `against`: the other method, of agreement. `percent`: along a
curve. `removal`: the operator by which units were removed; empty where the metric removes none."""
_NUMBER = re.compile(r"-?\d[\d,.]*(?<=\d)")


@dataclass(frozen=True)
class ExampleFacts:
    """An example as one model sees it: by these, results are cut into slices.

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
class ModelEvaluation:
    """The results on one model. `class_note`: how the data set's classes are its own, where that is not plain.

    `complete`: no example failed, so that none need be tried again. `requested_rows`, `evaluated_rows`: model rows that
    the removal metrics needed, and that were run for them now; none of what the cache held. `removal`: the operator of
    the rows that are of removal. `second`: rows and skips of the same maps by a second operator, None where it is off.
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
        """The places of those that could be explained."""
        return tuple(fact.example for fact in self.facts)

    def with_second(self, removal: str, rows: Sequence[MetricRow], skips: Sequence[MetricSkip]) -> ModelEvaluation:
        """The results with these by a second operator beside them."""
        own = replace(self, rows=tuple(rows), skips=tuple(skips), removal=removal, requested_rows=0, evaluated_rows=0)
        return replace(self, second=own)

    def narrow(self, wanted: Callable[[MetricKey], bool]) -> ModelEvaluation:
        """The values of some methods and metrics alone."""
        rows = tuple(row for row in self.rows if wanted(row.of))
        skips = tuple(skip for skip in self.skips if wanted(skip.of))
        return replace(self, rows=rows, skips=skips, second=self.second and self.second.narrow(wanted))

    def slice(self, wanted: Callable[[ExampleFacts], bool]) -> ModelEvaluation:
        """The result on some examples alone."""
        facts = tuple(one for one in self.facts if wanted(one))
        examples = {one.example for one in facts}
        rows = tuple(row for row in self.rows if row.example in examples)
        skips = tuple(skip for skip in self.skips if skip.example in examples)
        return replace(self, rows=rows, skips=skips, facts=facts, second=self.second and self.second.slice(wanted))


@dataclass(frozen=True)
class Evaluation(ExperimentResult):
    """The results on all models; `plan` with its metrics filled in."""

    plan: EvaluationPlan
    models: tuple[ModelEvaluation, ...]
    query: EvaluationPlan | None = None

    @property
    def chosen_metrics(self) -> tuple[str, ...]:
        """The metrics that were asked for by name; none for all that suit."""
        metrics: tuple[str, ...] = self.requested_plan.metrics
        return metrics

    @cached_property
    def rows(self) -> tuple[MetricRow, ...]:
        """All values, an observation a row."""
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
        """Model rows that the removal metrics needed."""
        return sum(one.requested_rows for one in self.models)

    @property
    def evaluated_rows(self) -> int:
        """Model rows that were run for them now."""
        return sum(one.evaluated_rows for one in self.models)

    @cached_property
    def scores(self) -> list[MetricScore]:
        """A score for each model, method and metric (pair of methods, percent), with its 95% interval."""
        return mean_scores(self.rows, self.skips, self.plan.seed)

    @cached_property
    def standings(self) -> list[scoring.Standing]:
        """The leaderboard of the metrics that give each method one number. Differences are resampled once."""
        wanted = set(scoring.scalar_metrics(self))
        return scoring.leaderboard(self.narrow(lambda key: key.metric in wanted))

    @cached_property
    def second(self) -> Evaluation | None:
        """The same maps judged by the second operator, by the metrics of removal alone; None where it is off."""
        results = [one.second for one in self.models]
        plan = None if None in results else self.plan.second_plan
        return None if plan is None else Evaluation(plan, tuple(one for one in results if one is not None))

    @cached_property
    def operator_comparisons(self) -> list[operators.OperatorComparison]:
        """Whether the best method depends on the operator, by model and metric. Differences are resampled once."""
        return operators.compare_operators(self)

    @property
    def class_notes(self) -> tuple[str, ...]:
        """Notes on how the data set's classes match the models', where that is not obvious, and on a single class."""
        return (*dict.fromkeys(one.class_note for one in self.models if one.class_note), *_one_class(self.facts))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Warnings: models at chance or with probabilities too close to 1 to fall, uncounted marks, tuned methods."""
        saturated = _saturated(self) if FALLING & set(self.plan.metrics) else ""
        part = PART_READ if self.plan.marks == READ and (self.plan.needs("marks") or self.plan.needs("pair")) else ""
        return tuple(filter(None, (*map(_at_chance, self.models), saturated, part, *_tuned(self.plan))))

    def narrow(self, wanted: Callable[[MetricKey], bool]) -> Evaluation:
        """The values of some methods and metrics alone."""
        return replace(self, models=tuple(one.narrow(wanted) for one in self.models))

    def slice(self, wanted: Callable[[ExampleFacts], bool]) -> Evaluation:
        """The evaluation of some examples alone. F1 keeps the share of the whole."""
        return replace(self, models=tuple(one.slice(wanted) for one in self.models))

    def by(self, group: Callable[[ExampleFacts], str]) -> dict[str, Evaluation]:
        """The evaluations of each group of examples, such as a label or a pair of languages, in order."""
        names = sorted({group(one) for one in self.facts})
        return {name: self.slice(lambda one, name=name: group(one) == name) for name in names}  # type: ignore[misc]


def _tuned(plan: EvaluationPlan) -> Iterator[str]:
    """A line for each method whose maps are chosen by a metric that is measured."""
    for method, metric in plan.tuned.items():
        if favored := [one for one in plan.metrics if is_favored(metric, one)]:
            title, others = explainer(method, plan.kind).title, {*plan.metrics} - {*favored, "evaluations", "seconds"}
            where = (
                "there" if favored == [metric] else f"on {join_names([METRICS[one].title.lower() for one in favored])}"
            )
            advice = "Judge it by the other metrics." if others else "No other metric is measured: add one to judge it."
            yield f"{title} is tuned on {METRICS[metric].title.lower()}, which favors it {where}. {advice}"


def _saturated(evaluation: Evaluation) -> str:
    """A note on classifiers with a probability above `SATURATED` on most examples; empty without such."""
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
    """A note on a model that hardly does better than guessing; empty for any other, and on a slice.

    A slice may be chosen for being wrong, so the share of right answers there says nothing of the model.
    """
    if split_slice(evaluation.dataset)[1] is not None:
        return ""
    known = [fact.right for fact in evaluation.facts if fact.right is not None]
    classes = _class_count(evaluation.model) if known else 0
    return ModelAccuracy(sum(known), len(known), classes).note(evaluation.model)


def _is_flat(evaluation: ModelEvaluation) -> bool:
    """Whether no metric of the probability's fall has values that differ clearly."""
    values: dict[str, list[float]] = {}
    for row in evaluation.rows:
        if row.of.metric in FALLING:
            values.setdefault(row.of.metric, []).append(row.value)
    spreads = (np.ptp(np.nanquantile(of, (0.05, 0.95))) for of in values.values())
    return all(spread < LEAST_SPREAD for spread in spreads)


def _is_regression(model: str) -> bool:
    """Whether the model is a regression, by its files; a missing model counts as a classifier."""
    return _class_count(model) == 1


def _class_count(model: str) -> int:
    """Number of classes by the model's files, of a language model those of a prompt; 0 for a missing model."""
    try:
        return len(PROMPT_LABELS) if is_causal(model) else len(model_labels(model))
    except (ExegesisError, TypeError, ValueError, LookupError, AttributeError):
        return 0


def _one_class(facts: Sequence[ExampleFacts]) -> Iterator[str]:
    labels = {fact.label for fact in facts}
    if len(labels) == 1 and None not in labels and len({fact.example for fact in facts}) > 1:
        yield f"All examples have the label {labels.pop()}, so nothing can be compared between labels."


def group_reasons(skipped: Mapping[str, int]) -> dict[str, int]:
    """Counts by reason; of reasons that differ in numbers alone, the first, which says that the others are like it."""
    groups: dict[str, list[str]] = {}
    for reason in skipped:
        groups.setdefault(_NUMBER.sub("#", reason), []).append(reason)
    return {
        group[0] if len(group) == 1 else f"such as: {group[0]}": sum(skipped[reason] for reason in group)
        for group in groups.values()
    }


def format_reasons(skipped: Mapping[str, int]) -> str:
    """The numbers of examples without a value by reason, the most common first; empty where all have one."""
    ordered = sorted(group_reasons(skipped).items(), key=lambda one: -one[1])
    return "; ".join(f"{number:,}: {reason.rstrip('.')}" for reason, number in ordered)


def pack(result: ModelEvaluation) -> tuple[Meta, Arrays]:
    """The results on a model as a cache entry."""
    meta, arrays = _pack_values(result)
    meta |= {"facts": [dataclasses.asdict(fact) for fact in result.facts], "said": result.class_note}
    if result.second is not None:
        meta[SECOND], second = _pack_values(result.second)
        arrays |= {f"{SECOND}.{name}": array for name, array in second.items()}
    return meta, arrays


def _pack_values(result: ModelEvaluation) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The rows and skips, each key and each reason once."""
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
    """The results on a model from a cache entry. `plan`: of one model."""
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
    """The distinct values, numbered."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _integers(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)
