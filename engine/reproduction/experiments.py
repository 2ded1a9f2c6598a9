"""Experiments that the thesis's claims rest on: their plans, and their values by example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.attacks.experiment_result import AttackRow
from engine.attacks.plan import AttackParams, AttackPlan
from engine.data.labels import match_classes
from engine.data.sources import ExampleSource as DataSource
from engine.data.sources import SourceExample
from engine.evaluation.plan import NO_OPERATOR, EvaluationPlan
from engine.evaluation.result import CONSTANT_MAPS, Evaluation
from engine.experiments.options import RANDOM
from engine.experiments.run import sample_of
from engine.metrics.ranking import spearman
from engine.metrics.results import MetricKey, MetricRow
from engine.predictions import predictions
from engine.randomization.plan import RandomizationPlan
from engine.randomization.result import ModelRandomization, RandomizationResult
from engine.registry import TOP_THREE
from engine.reproduction.papers import ATTACKS, MEASURES, Source
from engine.request import DTYPES
from engine.result import Prediction
from engine.scaffold.result import is_constant

METHODS = (
    *TOP_THREE, "gradient_l2", "gradient_x_input", "attention_mean", "attention_rollout",
    "ensemble_all", "ensemble_top3",
)  # fmt: skip
"""The thesis's methods. The declaration states why `gradient_l2` stands for its "Gradients"."""
GRADIENTS = ("gradient_l2", "gradient_x_input", "integrated_gradients")
"""Methods that can be attacked."""
RANDOMIZED = (*GRADIENTS, "attention_mean", "attention_rollout")
"""Methods that depend on the parameters."""
SPEARMAN = 0
"""Index of Spearman's rho in the measures of a randomization."""
MODES = ("cascading", "independent")

Curve = Float[np.ndarray, "stage"]
Correctness = Iterable[tuple[str, bool | None]]
"""(model, whether its prediction is correct) for each example; None if that is unknown."""


@dataclass(frozen=True)
class ExperimentRequest:
    """The request for an experiment. `settings`: settings declared for its source."""

    models: tuple[str, ...]
    dataset: str
    metrics: tuple[str, ...]
    examples: int
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)


def are_known_correct(result: Any) -> Correctness:
    """Return whether the predictions are correct, as stored in the result of an evaluation or attack."""
    return ((one.model, one.right) for one in result.facts)


def count_skipped(result: Any) -> int:
    """Return the number of examples that failed, over all models."""
    return len({(skip.of.model, skip.example) for skip in result.skips})


@dataclass(frozen=True)
class ExperimentKind:
    """One kind of experiment, as functions of a request or result.

    `job`: the equivalent kind of job. `rows`: values by model, method, measure and example. `correctness`: whether the
    models' predictions are correct. `skipped`: number of examples that failed, over all models.
    """

    job: str
    plan: Callable[[ExperimentRequest], Any]
    rows: Callable[[Any], Iterable[MetricRow]]
    correctness: Callable[[Any], Correctness] = are_known_correct
    skipped: Callable[[Any], int] = count_skipped


def plan_evaluation(request: ExperimentRequest) -> EvaluationPlan:
    """Plan an evaluation. The claims are about one removal operator, so there is no second one."""
    settings = {"second_removal": NO_OPERATOR, **request.settings}
    return EvaluationPlan(
        request.models, request.dataset, METHODS, request.metrics, request.examples, request.seed, **settings
    )


def evaluation_rows(result: Evaluation) -> Iterator[MetricRow]:
    """Yield the values of an evaluation.

    A method that gives only constant maps on a model gets the values of the random order on the same examples.
    """
    random = {(row.of.model, row.of.metric, row.example): row for row in result.rows if row.of.method == RANDOM}
    yield from result.rows
    for skip in result.skips:
        if skip.reason == CONSTANT_MAPS and (key := (skip.of.model, skip.of.metric, skip.example)) in random:
            yield replace(random[key], of=skip.of)


def plan_randomization(request: ExperimentRequest) -> RandomizationPlan:
    return RandomizationPlan(
        request.models, request.dataset, RANDOMIZED, request.examples, request.seed, **request.settings
    )


def randomization_correctness(result: RandomizationResult) -> Correctness:
    """Yield whether the models are correct, from new or cached predictions: a randomization stores none."""
    source = sample_of(result.plan).source
    for one in result.models:
        pairs = predict_examples(one.model, source, one.examples, result.plan.dtype)
        yield from ((one.model, right) for right in are_correct(pairs, source))


def plan_attack(request: ExperimentRequest) -> AttackPlan:
    every = vars(AttackParams()).items()
    defaults = {name: value for name, value in every if name != "objective" and value is not None}
    own = {**request.settings, "attack": {**defaults, **request.settings.get("attack", {})}}
    return AttackPlan(request.models, request.dataset, GRADIENTS, ATTACKS, request.examples, request.seed, **own)


def attack_rows(rows: Sequence[AttackRow]) -> Iterator[MetricRow]:
    """Yield the measures of the attacked methods by objective, except measures that no claim uses."""
    for row in rows:
        key, id = row.key, f"{row.key.objective}_{row.key.metric}"
        if key.method == key.attacked and id in MEASURES:
            yield MetricRow(MetricKey(key.model, key.dataset, key.method, id), row.example, row.value)


def randomization_rows(models: Sequence[ModelRandomization]) -> Iterator[MetricRow]:
    """Yield the measures of a randomization for each model, method and example that has a rho at every stage."""
    for one in models:
        rho = one.likeness[:, :, :, SPEARMAN]
        # Mean over the seeds that have a value; NaN if none has.
        finite = np.isfinite(rho)
        total, count = np.where(finite, rho, 0.0).sum(1), finite.sum(1)
        means = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
        stages = [[at for at, stage in enumerate(one.stages) if stage.mode == mode] for mode in MODES]
        for place, method in enumerate(one.methods):
            for at, example in enumerate(one.examples):
                cascading, independent = (means[own, place, at] for own in stages)
                for id, value in curve_numbers(cascading, independent).items():
                    yield MetricRow(MetricKey(one.model, one.dataset, method, id), example, value)


def curve_numbers(cascading: Curve, independent: Curve) -> Mapping[str, float]:
    """Summarize one example's curves of Spearman's rho, whose stages go from the last block to the first.

    Empty if a value is missing. The trend includes the trained model as the first stage; it is -1 if rho falls at every
    stage, 1 if it rises, and 0 if it is constant.
    """
    if not np.isfinite([*cascading, *independent]).all():
        return {}
    blocks, whole = len(cascading), np.concatenate([[1.0], cascading])
    return {
        "cascading_first": float(cascading[0]),
        "cascading_second": float(cascading[min(2, blocks) - 1]),
        "cascading_half": float(cascading[(blocks + 1) // 2 - 1]),
        "cascading_end": float(cascading[-1]),
        "cascading_mean": float(cascading.mean()),
        "cascading_trend": spearman(np.arange(len(whole), dtype=np.float64), whole) or 0.0,
        "independent_first": float(independent[-1]),
        "independent_mean": float(independent.mean()),
    }


def predict_examples(
    model: str, source: DataSource, indices: Sequence[int], dtype: str = DTYPES[0]
) -> list[tuple[SourceExample, Prediction]]:
    """Return each example with the model's prediction, cached if possible. Errors: those of the data and the model."""
    examples = [source.read(index) for index in indices]
    return list(zip(examples, predictions(model, [one.input for one in examples], dtype), strict=True))


def are_correct(pairs: Sequence[tuple[SourceExample, Prediction]], source: DataSource) -> Iterator[bool | None]:
    """Yield whether each prediction equals the example's label; None if that is unknown."""
    for example, prediction in pairs:
        classes = match_classes(source.labels, prediction.labels, source.unnamed).indices
        label = None if example.class_index is None or classes is None else classes[example.class_index]
        yield None if label is None else prediction.index == label


def label_correlation(pairs: Sequence[tuple[SourceExample, Prediction]]) -> tuple[float, int] | None:
    """Return (Pearson's correlation of a regression model's scores with numeric labels, number of examples).

    None for fewer than three examples, or if the scores or labels are constant.
    """
    numbers = [(one.example.label, prediction.probabilities[0]) for one, prediction in pairs]
    numbers = [pair for pair in numbers if isinstance(pair[0], float)]
    labels, scores = np.array(numbers, dtype=np.float64).reshape(-1, 2).T
    if len(labels) < 3 or is_constant(labels) or is_constant(scores):
        return None
    return float(np.corrcoef(labels, scores)[0, 1]), len(labels)


KINDS: Mapping[Source, ExperimentKind] = {
    "evaluation": ExperimentKind("evaluate", plan_evaluation, evaluation_rows),
    "randomization": ExperimentKind(
        "randomize",
        plan_randomization,
        lambda result: randomization_rows(result.models),
        randomization_correctness,
        lambda result: sum(len(one.failed) for one in result.models),
    ),
    "attack": ExperimentKind("attack", plan_attack, lambda result: attack_rows(result.rows)),
}
"""The kinds of experiments that the thesis's claims rest on, by source."""
