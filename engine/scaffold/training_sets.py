"""Training sets of students: four disjoint splits with the teacher's outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from engine import runtime
from engine.data.sources import ExampleSource
from engine.errors import ExegesisError
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier, EncodedInput, as_float64
from engine.params import from_mapping
from engine.progress import check_cancelled
from engine.registry import explainer
from engine.runtime import in_chunks, rows_at_once
from engine.scaffold.plan import (
    ATTENTION,
    GRADIENTS,
    HELD_OUT,
    NONE,
    SMAT,
    UNEXPLAINED,
    ScaffoldPlan,
    Splits,
    StudentRun,
    base_of,
    source_of,
    splits_of,
)
from engine.scaffold.result import is_constant
from engine.scaffold.student import TeachingExamples, load_base, mean_logits
from engine.task import Task, TaskItem

TEMPERATURES = {"gradient_x_input": 0.1, "integrated_gradients": 0.5}
"""Temperatures of the softmax that turns scores into a distribution (the authors' configuration); 1 for other
explainers."""
STEPS = 10
"""Steps of integrated gradients in the simulability experiments (appendix A); 50 for plausibility."""
GRADIENT_CHUNK = 64
"""Number of examples per call of a gradient explainer."""


def predict_logits(teacher: AnyClassifier, examples: Sequence[EncodedInput]) -> Float[np.ndarray, "example label"]:
    """Return the teacher's logits, or its scores for regression."""

    def compute(rows: slice) -> np.ndarray:
        with torch.no_grad():
            return as_float64(teacher.logits(teacher.collate(examples[rows])))

    return np.concatenate(in_chunks(compute, len(examples), _rows(teacher, examples)))


def head_scores(teacher: AnyClassifier, examples: Sequence[EncodedInput]) -> list[Float[np.ndarray, "head _"]]:
    """Return the scores `s^h` of every head in float32, first layer first."""

    def compute(rows: slice) -> list[np.ndarray]:
        chosen = examples[rows]
        batch = teacher.collate(chosen)
        with torch.no_grad():
            _, recorder = teacher.logits_with_attention(batch)
        scores = mean_logits(recorder.logits, batch.visible, teacher.adapter.causal).float().cpu().numpy()
        return [row[:, : len(example)].copy() for row, example in zip(scores, chosen, strict=True)]

    chunks = in_chunks(compute, len(examples), _rows(teacher, examples, attention=True))
    return [row for chunk in chunks for row in chunk]


def static_maps(
    teacher: AnyClassifier, setting: str, examples: Sequence[EncodedInput], steps: int = STEPS
) -> list[Float[np.ndarray, "_"]]:
    """Return a static explainer's distributions over the features for the predicted class; 0 at special tokens."""
    if setting in ATTENTION:
        layer = -teacher.module.config.num_attention_heads if setting == ATTENTION[1] else 0  # type: ignore[union-attr, operator]
        return [
            distribution(scores[layer:].mean(0), example)
            for scores, example in zip(head_scores(teacher, examples), examples, strict=True)
        ]
    return [
        distribution(scores, example, TEMPERATURES.get(setting, 1.0))
        for scores, example in zip(_scores(teacher, setting, examples, steps), examples, strict=True)
    ]


def distribution(
    scores: Float[np.ndarray, "seq"], example: EncodedInput, temperature: float = 1.0
) -> Float[np.ndarray, "seq"]:
    """Return the softmax of scores over the features in float32; special tokens get 0."""
    values = np.where(example.special, -np.inf, scores / temperature)
    weights = np.exp(values - values.max())
    return (weights / weights.sum()).astype(np.float32)


def _scores(teacher: AnyClassifier, setting: str, examples: Sequence[EncodedInput], steps: int) -> list[np.ndarray]:
    assert setting in GRADIENTS, setting
    method = explainer(setting, teacher.kind)
    values: dict[str, Any] = {"steps": "fixed", "n_steps": steps, "baseline": "zero"} if "integrated" in setting else {}
    params = from_mapping(method.params, values, setting)
    scores: list[np.ndarray] = []
    for start in range(0, len(examples), GRADIENT_CHUNK):
        chunk = examples[start : start + GRADIENT_CHUNK]
        predictions = teacher.predictions(torch.from_numpy(predict_logits(teacher, chunk)), chunk)
        items = [TaskItem(e, p, teacher.target_index(None, p, e), 0) for e, p in zip(chunk, predictions, strict=True)]
        scores += [one.scores for one in method.function(Task(teacher, items), params)]
    return scores


def _rows(teacher: AnyClassifier, examples: Sequence[EncodedInput], attention: bool = False) -> int:
    return rows_at_once(teacher, max(len(example) for example in examples), attention=attention)


@dataclass(frozen=True, eq=False)
class TrainingSets:
    """Four splits with the teacher's outputs, and the student's base. The splits are disjoint except for `HELD_OUT`."""

    base: AnyClassifier
    train: TeachingExamples
    held_out: TeachingExamples
    validation: TeachingExamples
    test: TeachingExamples
    outputs: int
    regression: bool


@dataclass(eq=False)
class TrainingSetBuilder:
    """Builder of the training sets of a plan's students. The teacher is run once on each example.

    The caller must hold the device.
    """

    plan: ScaffoldPlan
    _encoded: dict[int, EncodedInput] = field(default_factory=dict)
    _outputs: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)

    @cached_property
    def source(self) -> ExampleSource:
        """The data set. Errors: those of reading it."""
        return source_of(self.plan)

    @cached_property
    def splits(self) -> Splits:
        return splits_of(self.source.count, self.plan)

    @cached_property
    def teacher(self) -> AnyClassifier:
        return load_classifier(self.plan.kind, self.plan.teacher, "float32", runtime.device())

    @cached_property
    def base(self) -> AnyClassifier:
        return load_base(base_of(self.plan), self.teacher)

    def build(self, run: StudentRun) -> TrainingSets:
        """Return the training sets of a student. Errors: too few examples; a teacher with constant outputs."""
        sets = self.collect(run)
        check_varied(self.plan.teacher, sets.test.teacher_logits, sets.regression)
        return sets

    def collect(self, run: StudentRun) -> TrainingSets:
        """Return the training sets of a student without checking that the teacher's outputs vary."""
        splits, regression = self.splits, self.teacher.regression
        train, held_out = splits.of_seed(run.seed, run.train_size, self.plan.recipe.held_out)
        if run.setting == HELD_OUT:
            train += held_out
        held, validation, test = (self._examples(s, NONE) for s in (held_out, splits.validation, splits.test))
        outputs = 1 if regression else len(self.teacher.labels)
        return TrainingSets(self.base, self._examples(train, run.setting), held, validation, test, outputs, regression)

    def _examples(self, indices: Sequence[int], setting: str) -> TeachingExamples:
        logits = np.stack(self._memoized("logits", indices, lambda e: list(predict_logits(self.teacher, e))))
        heads = maps = None
        if setting == SMAT:
            heads = self._memoized("heads", indices, lambda e: head_scores(self.teacher, e))
        elif setting not in UNEXPLAINED:
            maps = self._memoized(setting, indices, lambda e: static_maps(self.teacher, setting, e))
        return TeachingExamples([self._encode(index) for index in indices], logits, heads, maps)

    def _memoized(
        self, output: str, indices: Sequence[int], compute: Callable[[list[EncodedInput]], Sequence[np.ndarray]]
    ) -> list[np.ndarray]:
        """Return an output of the teacher for examples, and compute the missing ones."""
        memo = self._outputs.setdefault(output, {})
        # Sort by length, so that batches need little padding.
        new = sorted({index for index in indices if index not in memo}, key=lambda index: len(self._encode(index)))
        if new:
            check_cancelled()
            memo.update(zip(new, compute([self._encode(index) for index in new]), strict=True))
        return [memo[index] for index in indices]

    def _encode(self, index: int) -> EncodedInput:
        if index not in self._encoded:
            self._encoded[index] = self.teacher.encode(self.source.read(index).input)
        return self._encoded[index]


def check_varied(teacher: str, logits: np.ndarray, regression: bool) -> None:
    """Raise an error if the teacher's outputs are constant, since any student would simulate it at once."""
    if is_constant(logits[:, 0]) if regression else len(set(logits.argmax(1).tolist())) == 1:
        what = "the same score" if regression else "the same class"
        raise ExegesisError(
            f"teacher: {teacher} predicts {what} for all {len(logits):,} test examples, so "
            "simulability would measure nothing. Choose a data set on which its predictions differ."
        )
