"""What a teacher says of many examples: its answers, its heads' mean logits, and static explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from engine.models.classifier import AnyClassifier, EncodedInput, as_float64
from engine.params import from_mapping
from engine.registry import explainer
from engine.runtime import in_chunks, rows_at_once
from engine.scaffold.explaining import mean_logits
from engine.scaffold.plan import ATTENTION, GRADIENTS
from engine.task import Item, Task

TEMPERATURES = {"gradient_x_input": 0.1, "integrated_gradients": 0.5}
"""Of the softmax that makes a distribution of scores (the authors' configuration); 1 where none is named."""
STEPS = 10
"""Of integrated gradients in the simulability experiments (appendix A); 50 for plausibility."""


def answers(teacher: AnyClassifier, examples: Sequence[EncodedInput]) -> Float[np.ndarray, "example label"]:
    """The teacher's logits, or its score."""

    def compute(rows: slice) -> np.ndarray:
        with torch.no_grad():
            return as_float64(teacher.logits(teacher.collate(examples[rows])))

    return np.concatenate(in_chunks(compute, len(examples), _rows(teacher, examples)))


def heads(teacher: AnyClassifier, examples: Sequence[EncodedInput]) -> list[Float[np.ndarray, "head _"]]:
    """`s^h` of every head, the first layer's first; float32."""

    def compute(rows: slice) -> list[np.ndarray]:
        chosen = examples[rows]
        batch = teacher.collate(chosen)
        with torch.no_grad():
            _, recorder = teacher.logits_with_attention(batch)
        found = mean_logits(recorder.logits, batch.visible, teacher.adapter.causal).float().cpu().numpy()
        return [row[:, : len(example)].copy() for row, example in zip(found, chosen, strict=True)]

    chunks = in_chunks(compute, len(examples), _rows(teacher, examples, attention=True))
    return [row for chunk in chunks for row in chunk]


def maps(
    teacher: AnyClassifier, setting: str, examples: Sequence[EncodedInput], steps: int = STEPS
) -> list[Float[np.ndarray, "_"]]:
    """A static explainer's distributions over the features, of the class that the teacher predicts; 0 elsewhere."""
    if setting in ATTENTION:
        layer = -teacher.module.config.num_attention_heads if setting == ATTENTION[1] else 0  # type: ignore[union-attr, operator]
        return [
            distribution(found[layer:].mean(0), e) for found, e in zip(heads(teacher, examples), examples, strict=True)
        ]
    return [
        distribution(scores, example, TEMPERATURES.get(setting, 1.0))
        for scores, example in zip(_scores(teacher, setting, examples, steps), examples, strict=True)
    ]


def distribution(
    scores: Float[np.ndarray, "seq"], example: EncodedInput, temperature: float = 1.0
) -> Float[np.ndarray, "seq"]:
    """Softmax over the features; special tokens get 0."""
    values = np.where(example.special, -np.inf, scores / temperature)
    weights = np.exp(values - values.max())
    return (weights / weights.sum()).astype(np.float32)


def _scores(teacher: AnyClassifier, setting: str, examples: Sequence[EncodedInput], steps: int) -> list[np.ndarray]:
    assert setting in GRADIENTS, setting
    method = explainer(setting, teacher.kind)
    values: dict[str, Any] = {"steps": "fixed", "n_steps": steps, "baseline": "zero"} if "integrated" in setting else {}
    params = from_mapping(method.params, values, setting)
    made: list[np.ndarray] = []
    for start in range(0, len(examples), _AT_ONCE):
        chunk = examples[start : start + _AT_ONCE]
        predictions = teacher.predictions(torch.from_numpy(answers(teacher, chunk)))
        items = [Item(e, p, p.index, 0) for e, p in zip(chunk, predictions, strict=True)]
        made += [found.scores for found in method.function(Task(teacher, items), params)]
    return made


_AT_ONCE = 64


def _rows(teacher: AnyClassifier, examples: Sequence[EncodedInput], attention: bool = False) -> int:
    return rows_at_once(teacher, max(len(example) for example in examples), attention=attention)
