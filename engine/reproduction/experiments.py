"""The experiments that claims rest on: how each is planned, carried out and looked up, and its values by example."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.attacks.experiment_result import AttackExperimentResult as AttackFindings
from engine.attacks.experiment_result import AttackRow
from engine.attacks.plan import AttackParams, AttackPlan
from engine.data.labels import match_classes
from engine.data.sources import ExampleSource as DataSource
from engine.data.sources import SourceExample
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import CONSTANT_MAPS, Evaluation
from engine.experiments import run as experiments
from engine.experiments.options import RANDOM
from engine.experiments.run import sample_of
from engine.experiments.sample import Sample
from engine.metrics.ranking import spearman
from engine.metrics.results import MetricKey, MetricRow
from engine.predictions import predictions
from engine.progress import Report, silent
from engine.randomization.plan import RandomizationPlan
from engine.randomization.result import ModelRandomization, RandomizationResult
from engine.registry import TOP_THREE
from engine.reproduction.measures import ATTACKS, MEASURES, Source
from engine.request import DTYPES
from engine.result import Prediction
from engine.scaffold.result import is_constant

METHODS = (
    *TOP_THREE, "gradient_l2", "gradient_x_input", "attention_mean", "attention_rollout",
    "ensemble_all", "ensemble_top3",
)  # fmt: skip
"""The thesis's; why the L2 norm stands for its Gradients is said in the declaration."""
GRADIENTS = ("gradient_l2", "gradient_x_input", "integrated_gradients")
"""Methods that can be attacked."""
RANDOMIZED = (*GRADIENTS, "attention_mean", "attention_rollout")
"""Methods that depend on the parameters."""
SPEARMAN = 0
"""The place of Spearman's rho among the measures of a randomization."""
MODES = ("cascading", "independent")

Curve = Float[np.ndarray, "stage"]
Correctness = Iterable[tuple[str, bool | None]]
"""Of each example, the model and whether it is right; None where that is not known."""


@dataclass(frozen=True)
class ExperimentRequest:
    """What every experiment is told. `settings`: what is declared of it beside the claims."""

    models: tuple[str, ...]
    dataset: str
    metrics: tuple[str, ...]
    examples: int
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)


class ExperimentKind(ABC):
    """One kind of experiment. `job`: the kind of job that does the same. Plans and results are of its own kind."""

    job: str

    @abstractmethod
    def plan(self, request: ExperimentRequest) -> Any:
        """The plan of what is to be carried out."""

    @abstractmethod
    def carry_out(self, plan: Any, report: Report = silent) -> Any:
        """Run it. What is there from before is not computed again."""

    @abstractmethod
    def keys(self, plan: Any) -> list[str]:
        """The cache keys of its results. Errors: those of reading the data set."""

    def sample(self, plan: Any) -> Sample:
        """The examples. Errors: those of reading the data set."""
        return sample_of(plan)

    @abstractmethod
    def rows(self, result: Any) -> Iterable[MetricRow]:
        """A value of an example by model, method and measure."""

    def correctness(self, result: Any) -> Correctness:
        """Whether the models are right."""
        return ((one.model, one.right) for one in result.facts)

    def skipped(self, result: Any) -> int:
        """Number of examples that failed, over all models."""
        return len({(skip.of.model, skip.example) for skip in result.skips})


class EvaluationKind(ExperimentKind):
    job = "evaluate"

    def plan(self, request: ExperimentRequest) -> EvaluationPlan:
        return EvaluationPlan(
            request.models, request.dataset, METHODS, request.metrics, request.examples, request.seed,
            **request.settings,
        )  # fmt: skip

    def carry_out(self, plan: EvaluationPlan, report: Report = silent) -> Evaluation:
        return experiments.carry_out(plan, report)

    def keys(self, plan: EvaluationPlan) -> list[str]:
        whole, sample = experiments.prepare(plan)
        return [experiments.key_of(part, sample) for part in experiments.parts_of(whole)]

    def rows(self, result: Evaluation) -> Iterable[MetricRow]:
        """For a method whose maps order nothing on a model, the values of the random order on the same examples."""
        random = {(row.of.model, row.of.metric, row.example): row for row in result.rows if row.of.method == RANDOM}
        yield from result.rows
        for skip in result.skips:
            if skip.reason == CONSTANT_MAPS and (key := (skip.of.model, skip.of.metric, skip.example)) in random:
                yield replace(random[key], of=skip.of)


class RandomizationKind(ExperimentKind):
    job = "randomize"

    def plan(self, request: ExperimentRequest) -> RandomizationPlan:
        return RandomizationPlan(
            request.models, request.dataset, RANDOMIZED, request.examples, request.seed, **request.settings
        )

    def carry_out(self, plan: RandomizationPlan, report: Report = silent) -> RandomizationResult:
        return experiments.carry_out(plan, report)

    def keys(self, plan: RandomizationPlan) -> list[str]:
        sample = self.sample(plan)
        return [experiments.key_of(part, sample) for part in experiments.parts_of(plan)]

    def sample(self, plan: RandomizationPlan) -> Sample:
        return experiments.sample_of(plan)

    def rows(self, result: RandomizationResult) -> Iterable[MetricRow]:
        return randomization_rows(result.models)

    def correctness(self, result: RandomizationResult) -> Correctness:
        source = self.sample(result.plan).source
        for one in result.models:
            pairs = predict_examples(one.model, source, one.examples, result.plan.dtype)
            yield from ((one.model, right) for right in are_correct(pairs, source))

    def skipped(self, result: RandomizationResult) -> int:
        return sum(len(one.failed) for one in result.models)


class AttackKind(ExperimentKind):
    job = "attack"

    def plan(self, request: ExperimentRequest) -> AttackPlan:
        every = vars(AttackParams()).items()
        defaults = {name: value for name, value in every if name != "objective" and value is not None}
        own = {**request.settings, "attack": {**defaults, **request.settings.get("attack", {})}}
        return AttackPlan(request.models, request.dataset, GRADIENTS, ATTACKS, request.examples, request.seed, **own)

    def carry_out(self, plan: AttackPlan, report: Report = silent) -> AttackFindings:
        return experiments.carry_out(plan, report)

    def keys(self, plan: AttackPlan) -> list[str]:
        return [experiments.key_of(plan, self.sample(plan))]

    def sample(self, plan: AttackPlan) -> Sample:
        return experiments.sample_of(plan)

    def rows(self, result: AttackFindings) -> Iterable[MetricRow]:
        return attack_rows(result.rows)


KINDS: Mapping[Source, ExperimentKind] = {
    "evaluation": EvaluationKind(),
    "randomization": RandomizationKind(),
    "attack": AttackKind(),
}


def attack_rows(rows: Sequence[AttackRow]) -> Iterator[MetricRow]:
    """The attacked methods' measures by objective; leaves out what no claim is about."""
    for row in rows:
        key, id = row.key, f"{row.key.objective}_{row.key.metric}"
        if key.method == key.attacked and id in MEASURES:
            yield MetricRow(MetricKey(key.model, key.dataset, key.method, id), row.example, row.value)


def randomization_rows(models: Sequence[ModelRandomization]) -> Iterator[MetricRow]:
    """The numbers of each model, method and example that has a rho at every stage."""
    for one in models:
        rho = one.likeness[:, :, :, SPEARMAN]
        # By the seeds at which there is a value; NaN where there is none.
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
    """Numbers of one example's curves of Spearman's rho, from the last block to the first; none where one is missing.

    The trend goes from -1, where rho falls from stage to stage, the model as it is included, to 1; it is 0 where rho
    does not move.
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
    """Each example with the model's prediction, from the cache where it is there.

    Errors: those of reading an example, and of the model.
    """
    examples = [source.read(index) for index in indices]
    return list(zip(examples, predictions(model, [one.input for one in examples], dtype), strict=True))


def are_correct(pairs: Sequence[tuple[SourceExample, Prediction]], source: DataSource) -> Iterator[bool | None]:
    """Whether each prediction is the example's label; None where that is not known."""
    for example, prediction in pairs:
        classes = match_classes(source.labels, prediction.labels, source.unnamed).indices
        label = None if example.class_index is None or classes is None else classes[example.class_index]
        yield None if label is None else prediction.index == label


def label_correlation(pairs: Sequence[tuple[SourceExample, Prediction]]) -> tuple[float, int] | None:
    """Pearson's correlation of a regression model's scores with the labels that are numbers, and of how many.

    None of fewer than three, or where either is always the same.
    """
    numbers = [(one.example.label, prediction.probabilities[0]) for one, prediction in pairs]
    numbers = [pair for pair in numbers if isinstance(pair[0], float)]
    labels, scores = np.array(numbers, dtype=np.float64).reshape(-1, 2).T
    if len(labels) < 3 or is_constant(labels) or is_constant(scores):
        return None
    return float(np.corrcoef(labels, scores)[0, 1]), len(labels)
