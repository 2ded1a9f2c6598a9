"""A model in a few words: its task, its main score and its size, from its card and files. Loads no model."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.data.labels import UNNAMED_CLASS, match_classes
from engine.data.tasks import FACTS, TASK_LABELS, registered_dataset, shipped_dataset, task_of_dataset
from engine.errors import ExegesisError
from engine.models import catalog
from engine.models.sizes import model_size

TEST = "test"


@dataclass(frozen=True)
class ModelFacts:
    """`task` is empty where neither card nor labels tell it, `score` where the model was not measured.

    `dataset`: the registered data set that the model was trained on, or an empty text. `data_scores`: by data set, the
    scores on others.
    """

    task: str = ""
    score: str = ""
    parameters: int | None = None
    labels: tuple[str, ...] = ()
    regression: bool = False
    dataset: str = ""
    data_scores: Mapping[str, str] = field(default_factory=dict)


def summarize_model(model: str) -> ModelFacts:
    """The summary of an embedded model or a folder; an empty one for a base, a hub id, or files that cannot be read."""
    try:
        if model.startswith(catalog.BASE_PREFIX):
            return ModelFacts()
        if catalog.is_embedded(model):
            return _summary(model, ())
        folder = Path(model).expanduser()
        if not folder.is_dir():
            return ModelFacts()
        files = (folder / name for name in ("card.json", "config.json", "adapter_config.json"))
        return _summary(model, tuple(file.stat().st_mtime_ns for file in files if file.exists()))
    except (ExegesisError, OSError, TypeError, ValueError, LookupError, AttributeError):
        return ModelFacts()


@functools.lru_cache(maxsize=256)
def _summary(model: str, stamp: tuple[int, ...]) -> ModelFacts:
    card, labels = catalog.card(model), catalog.model_labels(model)
    dataset = registered_dataset(str((card.get("settings") or {}).get("dataset") or ""))
    scores = catalog.fair_scores(card)
    return ModelFacts(
        task=describe_task(card or {"labels": labels, "regression": len(labels) == 1}),
        score=format_score(card),
        parameters=model_size(model).parameters,
        labels=labels,
        regression=bool(card.get("regression")) if card else len(labels) == 1,
        dataset=dataset,
        data_scores={name: _format(card, one) for name, one in scores.items() if registered_dataset(name) == name},
    )


def describe_task(card: Mapping[str, Any]) -> str:
    """The task of a model in a few words, by what it was trained on or else by its labels."""
    labels = card.get("labels") or []
    dataset = str((card.get("settings") or {}).get("dataset") or "")
    return task_of_dataset(dataset) or ("Regression" if card.get("regression") else f"{len(labels)} classes")


def main_score(card: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The split and the score that stand for a model: of the test split, else of the first; empty without any."""
    scores = catalog.fair_scores(card)
    split = TEST if TEST in scores else next(iter(scores), "")
    return split, scores.get(split, {})


def format_score(card: Mapping[str, Any]) -> str:
    """The main score: an accuracy as "89.2%", a correlation as "r = 0.755"; empty without one."""
    _, score = main_score(card)
    return _format(card, score) if score else ""


def _format(card: Mapping[str, Any], score: Mapping[str, Any]) -> str:
    metric, value = str(card.get("metric") or "score"), float(score["value"])
    return f"{value:.1%}" if metric == "accuracy" else f"{'r =' if metric == 'pearson' else metric} {value:.3f}"


def short_count(number: int) -> str:
    """A large number with at most three digits: 22.7M, 644K."""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if float(f"{number:.3g}") >= unit:
            return f"{float(f'{number:.3g}') / unit:.3g}{name}"
    return str(number)


def fits_task(
    summary: ModelFacts, dataset: str, task: str, labels: tuple[str, ...], unnamed: re.Pattern[str] = UNNAMED_CLASS
) -> bool:
    """Whether a model is one for the labels of a data set; True where either is unknown or nothing is labeled.

    `dataset`: its name. `task`: classification or regression. `labels`: the names of its classes.
    """
    ours, theirs = task_of_dataset(dataset), task_of_dataset(summary.dataset)
    if not summary.labels or (not labels and task == "classification"):
        return True
    if ours and theirs and ours != theirs:
        return False
    if summary.regression or task == "regression":
        return summary.regression and task == "regression"
    return match_classes(labels, summary.labels, unnamed).indices is not None


def fitting_dataset(summary: ModelFacts) -> str:
    """A shipped data set of the model's task: the one that it was trained on, else another; empty if there is none."""
    facts = FACTS.get(summary.dataset)
    if facts is not None and facts.examples is not None:
        return summary.dataset
    if facts is not None:
        task = facts.task
        return "" if task == "Objects" else shipped_dataset(task)
    if summary.regression:
        return ""
    matching = (task for task, labels in TASK_LABELS.items() if match_classes(labels, summary.labels).indices)
    return shipped_dataset(next(matching, ""))
