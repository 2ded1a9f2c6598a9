"""What one writes with Captum: a text at a time, a method at a time, then ten steps of removal of each map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.model_work import task_on
from benchmarks.peers import captum_gradient, captum_ig, captum_kernel_shap, captum_lime, probability_of_masks
from engine.metrics.faithfulness import masks_without_top
from engine.metrics.ranking import count_of_percent
from engine.models.text_classifier import TextClassifier
from engine.task import Task

PERCENTS = tuple(range(10, 101, 10))
"""Percent of the tokens."""


def explain_and_score(
    model: TextClassifier, texts: list[str], settings: Mapping[str, int]
) -> list[tuple[float, float]]:
    """Comprehensiveness and sufficiency of each map. `settings`: steps or samples by method."""
    found = []
    for text in texts:
        task = task_on(model, text)
        for method, amount in settings.items():
            found.append(scored(task, METHODS[method](task, amount)))
    return found


def scored(task: Task, scores: np.ndarray) -> tuple[float, float]:
    """Both from one pass over the ten steps each way, and the text itself."""
    fewer = masks_without_top(np.argsort(-scores), [count_of_percent(percent, len(scores)) for percent in PERCENTS])
    whole = np.ones((1, len(scores)), dtype=bool)
    m = probability_of_masks(task)(np.concatenate([whole, fewer, ~fewer]))
    return float((m[0] - m[1:11]).mean()), float((m[0] - m[11:]).mean())


def _of_embeddings(run: Callable[[], Any], task: Task) -> np.ndarray:
    found: np.ndarray = run().sum(-1)[0].detach().cpu().numpy()
    return found[task.examples[0].features]


METHODS: Mapping[str, Callable[[Task, int], np.ndarray]] = {
    "gradient": lambda task, _: _of_embeddings(captum_gradient(task), task),
    "integrated_gradients": lambda task, steps: _of_embeddings(captum_ig(task, steps), task),
    "lime": lambda task, samples: captum_lime(task, samples)().numpy()[0],
    "kernel_shap": lambda task, samples: captum_kernel_shap(task, samples)().numpy()[0],
}
