"""Suppressors in texts and in pictures: a small transformer is trained on them, and methods are judged on it.

Checks confirm the problem: the suppressor alone predicts nothing, and yet the model uses it. The model is trained by
the project's own training loop within seconds and is not stored; the results are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
import torch
from jaxtyping import Float, Int

from cache import key_for, single_flight
from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import Cancelled, ExegesisError
from engine.explain import predict_encoded, versions_of
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.params import as_plain
from engine.progress import CancelToken, Report, check_cancelled, silent
from engine.registry import Explainer, all_explainers, explainer
from engine.removal_operators import keyed_params
from engine.store import result_store
from engine.suppressor.criterion import NOT_FINITE, Scores, SuppressorVerdict, judge
from engine.suppressor.measurement import run_explainer
from engine.training.config import LoopConfig
from engine.training.loop import CheckpointFolder, TrainingLoop, TrainingSet, copy_weights

SCHEMA = 2
FIRM = "firm"
DATA_SETS, ROWS = 40, 100
"""Number of data sets from which FIRM is estimated, and their size."""
ALL_ZERO = "Every score is zero on this model."


@dataclass(frozen=True)
class ProblemChecks:
    """Checks on held-out examples that the suppressor is one.

    `association`: p-value of the association of the suppressor alone with the class. `unused_association`: that of the
    unused feature. `accuracy`: accuracy of the model. `without`: its accuracy if the suppressor is taken from another,
    random example. `without_unused`: the same for the unused feature. `examples`: number of examples.
    """

    association: float
    unused_association: float
    accuracy: float
    without: float
    without_unused: float
    examples: int


@dataclass(frozen=True)
class TrainedProblem:
    """A trained model with examples to explain. `places`: positions of the three features in every encoded example.

    `firm`: importance of the features by FIRM, which needs data instead of an example: one row per data set
    (`expectation_spreads`).
    """

    model: AnyClassifier
    encoded: Sequence[EncodedInput]
    places: tuple[int, int, int]
    checks: ProblemChecks
    firm: Scores


@dataclass(frozen=True)
class TrainedResult:
    """The verdicts on a trained model.

    `skipped`: reasons why methods have no value. `explained`: number of examples.
    """

    kind: str
    checks: ProblemChecks
    verdicts: tuple[SuppressorVerdict, ...]
    skipped: Mapping[str, str]
    explained: int

    def as_json(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {
            "kind": self.kind,
            "checks": asdict(self.checks),
            "explained": self.explained,
            "skipped": dict(self.skipped),
            "verdicts": [one.as_json() for one in self.verdicts],
        }


def trained_key(kind: str, version: int, config: LoopConfig) -> str:
    """Cache key of a result, from the methods with their defaults and the training. Loads no model."""
    methods: dict[str, list[Any]] = {
        method.id: [*versions_of(method), keyed_params(as_plain(method.params()))]
        for method in applicable_methods(kind)
    }
    return key_for(
        {
            "schema": SCHEMA, "kind": f"suppressor {kind}", "version": version, "methods": methods,
            "training": config.identity(),
        }
    )  # fmt: skip


def applicable_methods(kind: str) -> list[Explainer]:
    """The methods that are judged, in display order: all except those that are trained for one model beforehand."""
    return [method for method in all_explainers(kind).values() if method.resolver is None]


def method_title(id: str, kind: str) -> str:
    """The display title of a method in the results."""
    return "FIRM" if id == FIRM else explainer(id, kind).title


def cached_result(key: str) -> TrainedResult | None:
    """Return the result if it is cached or shipped with the project, else None."""
    entry = result_store().get(key)
    return None if entry is None else _unpacked(entry[0])


def compute_result(
    kind: str, key: str, build: Callable[[Report, CancelToken], TrainedProblem], report: Report = silent,
    cancel: CancelToken | None = None,
) -> TrainedResult:  # fmt: skip
    """Return the cached result, or train, explain and judge. Concurrent callers share one computation."""

    def compute() -> tuple[Meta, Arrays]:
        with runtime.turn(lends=True):
            result = judge_model(kind, build(report, cancel or CancelToken()), report)
        return _packed(result), {}

    meta, _, _ = single_flight(result_store(), key, compute, check=check_cancelled)
    return _unpacked(meta)


def judge_model(kind: str, problem: TrainedProblem, report: Report = silent) -> TrainedResult:
    """Run every applicable method on every example and judge the scores. The caller must hold the device.

    A method that fails, or whose scores are all zero or not finite, is skipped with a reason.
    """
    scores: dict[str, Scores] = {}
    skipped: dict[str, str] = {}
    methods = applicable_methods(kind)
    targets = [prediction.index for prediction in predict_encoded(problem.model, problem.encoded)]
    for done, method in enumerate(methods):
        check_cancelled()
        report(done, len(methods), method.title)
        try:
            own = run_explainer(method.id, {}, problem.model, problem.encoded, targets, 0)
        except Cancelled:
            raise
        except ExegesisError as error:
            skipped[method.id] = str(error)
            continue
        if not np.isfinite(own).all():
            skipped[method.id] = NOT_FINITE
        elif not own.any():
            skipped[method.id] = ALL_ZERO
        else:
            scores[method.id] = own[:, problem.places]
    scores[FIRM] = problem.firm
    report(len(methods), len(methods), "")
    return TrainedResult(kind, problem.checks, tuple(judge(scores)), skipped, len(problem.encoded))


def train(
    module: torch.nn.Module, sets: Sequence[TrainingSet], config: LoopConfig, report: Report, cancel: CancelToken
) -> None:
    """Train a module in place. It ends with the best weights, without gradients and in eval mode.

    `sets`: the training set, and the set on which the best epoch is selected.
    """
    data, held_out = sets
    with tempfile.TemporaryDirectory() as folder:
        loop = TrainingLoop(module, data, held_out, config, False, config.identity())
        best = loop.run(CheckpointFolder(Path(folder)), report, cancel)
    copy_weights(loop.weights, best)
    module.eval().requires_grad_(False)


def accuracy(model: AnyClassifier, encoded: Sequence[EncodedInput], labels: Int[np.ndarray, "example"]) -> float:
    """Share of examples whose label the model predicts."""
    return float(((second_class(model, encoded) > 0.5) == labels).mean())


def second_class(model: AnyClassifier, encoded: Sequence[EncodedInput]) -> Float[np.ndarray, "example"]:
    """Probability of the second of two classes."""
    return np.array([prediction.probabilities[1] for prediction in predict_encoded(model, encoded)])


def association(values: Iterable[object], labels: Int[np.ndarray, "example"]) -> float:
    """P-value of Pearson's chi-squared test of words or levels against the labels."""
    names, places = np.unique(np.array(list(values)), return_inverse=True)
    counts = np.zeros((len(names), 2))
    np.add.at(counts, (places, labels), 1)
    return float(scipy.stats.chi2_contingency(counts).pvalue)


def expectation_spreads(
    values: Int[np.ndarray, "example 3"], outputs: Float[np.ndarray, "example"]
) -> Float[np.ndarray, "data_set 3"]:
    """Standard deviation of E[output | feature] over the values of each feature, in each of `DATA_SETS` data sets.

    Source: Zien et al. (2009), The feature importance ranking measure, eq. 1 and 2.
    """
    rows = values.reshape(DATA_SETS, ROWS, 3), outputs.reshape(DATA_SETS, ROWS)
    return np.array([[_spread(own[:, column], m) for column in range(3)] for own, m in zip(*rows, strict=True)])


def _spread(values: Int[np.ndarray, "example"], outputs: Float[np.ndarray, "example"]) -> float:
    counts = np.bincount(values)
    means = np.bincount(values, outputs) / np.maximum(counts, 1)
    return float(np.sqrt(counts @ (means - outputs.mean()) ** 2 / len(values)))


def shuffled(count: int, seed: int) -> Int[np.ndarray, "example"]:
    """Draw a permutation: the index of the example whose feature each example receives."""
    return np.random.default_rng(seed).permutation(count)


def _packed(result: TrainedResult) -> Meta:
    return {
        "kind": result.kind,
        "checks": asdict(result.checks),
        "verdicts": [asdict(one) for one in result.verdicts],
        "skipped": dict(result.skipped),
        "explained": result.explained,
    }


def _unpacked(meta: Mapping[str, Any]) -> TrainedResult:
    verdicts = tuple(SuppressorVerdict(**one) for one in meta["verdicts"])
    return TrainedResult(meta["kind"], ProblemChecks(**meta["checks"]), verdicts, meta["skipped"], meta["explained"])
