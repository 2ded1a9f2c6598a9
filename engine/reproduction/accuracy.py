"""How often a model is right on the examples of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from engine.data.labels import match_classes
from engine.data.sources import ExampleSource, SourceExample
from engine.predictions import predictions
from engine.request import DTYPES
from engine.result import Prediction
from engine.scaffold.simulability import constant

Pair = tuple[SourceExample, Prediction]


def predicted(model: str, source: ExampleSource, indices: Sequence[int], dtype: str = DTYPES[0]) -> list[Pair]:
    """Each example with the model's prediction, from the cache where it is there.

    Errors: those of reading an example, and of the model.
    """
    examples = [source.read(index) for index in indices]
    return list(zip(examples, predictions(model, [one.input for one in examples], dtype), strict=True))


def rights_of(pairs: Sequence[Pair], source: ExampleSource) -> Iterator[bool | None]:
    """Whether each prediction is the example's label; None where that is not known."""
    for example, prediction in pairs:
        classes = match_classes(source.labels, prediction.labels, source.unnamed).indices
        known = None if example.class_index is None or classes is None else classes[example.class_index]
        yield None if known is None else prediction.index == known


def correlation_of(pairs: Sequence[Pair]) -> tuple[float, int] | None:
    """Pearson's correlation of a regression model's scores with the labels that are numbers, and of how many.

    None of fewer than three, or where either is always the same.
    """
    known = [(one.example.label, prediction.probabilities[0]) for one, prediction in pairs]
    labels, scores = np.array([pair for pair in known if isinstance(pair[0], float)], dtype=np.float64).reshape(-1, 2).T
    if len(labels) < 3 or constant(labels) or constant(scores):
        return None
    return float(np.corrcoef(labels, scores)[0, 1]), len(labels)
