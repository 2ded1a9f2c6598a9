"""What can be said of an evaluation before any model is loaded."""

from __future__ import annotations

from engine.data.labels import match_classes
from engine.data.sources import ExampleSource
from engine.errors import ExegesisError
from engine.evaluation.plan import Plan
from engine.models.catalog import model_labels


def classes_told(plan: Plan, source: ExampleSource) -> dict[str, list[str]]:
    """How the data set's classes are the models', where that is not plain: each sentence with its models."""
    told: dict[str, list[str]] = {}
    for model in plan.models if source.labels else ():
        if said := _told(model, source):
            told.setdefault(said, []).append(model)
    return told


def _told(model: str, source: ExampleSource) -> str:
    """Empty where its files do not say: the work itself tells what is wrong with them."""
    try:
        return match_classes(source.labels, model_labels(model), source.unnamed).note
    except (ExegesisError, TypeError, ValueError, LookupError, AttributeError):
        return ""
