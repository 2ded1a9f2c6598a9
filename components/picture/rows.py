"""The pictures of a set as rows of the same list as texts, with what a model says to each. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from components.browse.examples import NO_LABELS, ExampleRow, ExampleTable, add_prediction
from components.picture.focus import picture_classes
from engine.data.examples import ImageDataset
from engine.result import Prediction


def picture_table(data: ImageDataset, predictions: Sequence[Prediction | None]) -> ExampleTable:
    """No picture is read. `predictions`: of the set's pictures in their order."""
    names = data.label_names
    rows = [_plain(index, None if label is None else names[label]) for index, label in enumerate(data.labels)]
    labelled = any(label is not None for label in data.labels)
    first = next((prediction for prediction in predictions if prediction is not None), None)
    if first is None:
        return ExampleTable(tuple(rows), names if labelled else ())
    classes = picture_classes(names, first.labels) if labelled else NO_LABELS
    told = (add_prediction(*one, classes) for one in zip(rows, data.labels, predictions, strict=True))
    return ExampleTable(tuple(told), names if labelled else (), first.regression, classes.note)


def _plain(index: int, label: str | None) -> ExampleRow:
    return ExampleRow(index=index, text="", pair=None, label=label, marked="", length=0)
