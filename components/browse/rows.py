"""The examples of a data set as rows with what the model says to each; filtered, searched, sorted. Pure."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from components.browse.state import Browse
from engine.data.examples import Dataset, LabeledExample
from engine.data.labels import ClassMatch, match_classes
from engine.result import Prediction

if TYPE_CHECKING:
    from engine.metrics.agreement import Disagreement

CONFIDENT = 0.9
UNSURE = 0.6
TOP_SHARE = 0.25
"""What counts as far off, or as much disagreement: the top quarter."""
NO_LABELS = ClassMatch(None, "This data set has no labels, so what is right cannot be told.")


@dataclass(frozen=True)
class Row:
    """`confidence`: the probability of the predicted class. `error`: distance of the score from the true one.

    None is what is not known or does not exist. `length`: characters of both texts. `marked`: the rationale's words.
    `compared`: whether methods were compared, which gives no number where their maps have no order.
    """

    index: int
    text: str
    pair: str | None
    label: str | None
    marked: str
    length: int
    predicted: str | None = None
    confidence: float | None = None
    score: float | None = None
    right: bool | None = None
    error: float | None = None
    compared: bool = False
    disagreement: float | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """All rows in the order of the data set. `regression`: None while nothing is predicted."""

    rows: tuple[Row, ...]
    label_names: tuple[str, ...]
    regression: bool | None = None
    said: str = ""
    """How labels and predictions were compared, or why they could not be."""

    @property
    def predicted(self) -> int:
        return sum(row.predicted is not None or row.score is not None for row in self.rows)

    @property
    def judged(self) -> bool:
        """Whether some predictions are known to be right or wrong, near or far."""
        return any(row.right is not None or row.error is not None for row in self.rows)

    @property
    def compared(self) -> int:
        return sum(row.compared for row in self.rows)

    @cached_property
    def far(self) -> frozenset[int]:
        """The indices of the rows that are farthest off."""
        return top_quarter([row.error for row in self.rows])

    @cached_property
    def apart(self) -> frozenset[int]:
        """The indices of the rows on which the methods disagree most."""
        return top_quarter([row.disagreement for row in self.rows])


def table(
    data: Dataset, predictions: Sequence[Prediction | None] = (), comparisons: Sequence[Disagreement | None] = ()
) -> Table:
    """The rows of a data set; `predictions` and `comparisons` are those of its examples in their order, or empty."""
    rows = [_plain(data, index, example) for index, example in enumerate(data.examples)]
    names = data.label_names if any(row.label is not None for row in rows) else ()
    rows = [_compared(row, one) for row, one in zip(rows, comparisons, strict=True)] if comparisons else rows
    first = next((prediction for prediction in predictions if prediction is not None), None)
    if first is None:
        return Table(tuple(rows), names)
    classes = _classes(data, first)
    labels = [example.label for example in data.examples]
    told = (judged(*one, classes) for one in zip(rows, labels, predictions, strict=True))
    return Table(tuple(told), names, first.regression, classes.note)


def listed(found: Table, browse: Browse) -> list[int]:
    """The indices of the rows that `browse` lists, in its order; what has no value to sort by comes last."""
    wanted, words = _FILTERS[browse.show], _folded(browse.search)
    rows = [
        row
        for row in found.rows
        if wanted(row, found) and browse.label in ("", row.label) and (not words or words in _searched(row))
    ]
    return [row.index for row in sorted(rows, key=_SORTS[browse.sort])]


def top_quarter(values: Sequence[int | float | None]) -> frozenset[int]:
    """The places of the highest quarter of the values that are known, rounded up; of equal ones the first.

    What is not above 0 is not among them: no error is not far off.
    """
    known = [(-value, place) for place, value in enumerate(values) if value is not None]
    return frozenset(place for value, place in sorted(known)[: math.ceil(TOP_SHARE * len(known))] if value < 0)


def _plain(data: Dataset, index: int, example: LabeledExample) -> Row:
    return Row(
        index=index,
        text=example.text,
        pair=example.text_pair,
        label=_label(data, example.label),
        marked=_marked(example),
        length=len(example.text) + len(example.text_pair or ""),
    )


def _label(data: Dataset, label: int | float | None) -> str | None:
    if label is None:
        return None
    return f"{label:g}" if data.task == "regression" else data.label_names[int(label)]


def _marked(example: LabeledExample) -> str:
    parts = [example.text[start:end] for start, end in example.rationale]
    parts += [(example.text_pair or "")[start:end] for start, end in example.rationale_pair]
    return " · ".join(parts)


def _classes(data: Dataset, prediction: Prediction) -> ClassMatch:
    if all(example.label is None for example in data.examples):
        return NO_LABELS
    if prediction.regression != (data.task == "regression"):
        kinds = ("a class", "a score")
        return ClassMatch(
            None,
            f"The model gives {kinds[prediction.regression]}, the data set has {kinds[data.task == 'regression']} "
            "for each example, so what is right cannot be told.",
        )
    return ClassMatch(()) if prediction.regression else match_classes(data.label_names, prediction.labels)


def _compared(row: Row, found: Disagreement | None) -> Row:
    if found is None:
        return row
    return replace(row, compared=True, disagreement=found.value, left_out=found.left_out)


def judged(row: Row, label: int | float | None, prediction: Prediction | None, classes: ClassMatch) -> Row:
    """The row with what the model says, and how that goes with the true class or score `label`."""
    if prediction is None:
        return row
    if prediction.regression:
        score = prediction.logits[0]
        return replace(row, score=score, error=_error(label, score, classes))
    confidence = prediction.probabilities[prediction.index]
    right = _right(label, prediction, classes)
    return replace(row, predicted=prediction.label, confidence=confidence, right=right)


def _error(label: int | float | None, score: float, classes: ClassMatch) -> float | None:
    return None if classes.indices is None or label is None else abs(score - float(label))


def _right(label: int | float | None, prediction: Prediction, classes: ClassMatch) -> bool | None:
    if classes.indices is None or label is None:
        return None
    of = classes.indices[int(label)]
    return None if of is None else of == prediction.index


def _standing(row: Row) -> float | None:
    """From the surest mistake at -2 over the least sure one and the least sure right answer to the surest at 1."""
    if row.confidence is None:
        return None
    return -1 - row.confidence if row.right is False else row.confidence


def _folded(text: str) -> str:
    """Letters that look the same are the same, in upper and lower case; any white space is one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _searched(row: Row) -> str:
    return _folded(row.text if row.pair is None else f"{row.text} {row.pair}")


Wanted = Callable[[Row, Table], bool]
_FILTERS: dict[str, Wanted] = {
    "all": lambda row, _: True,
    "right": lambda row, _: row.right is True,
    "wrong": lambda row, _: row.right is False,
    "confident_wrong": lambda row, _: row.right is False and (row.confidence or 0) >= CONFIDENT,
    "unsure": lambda row, _: row.confidence is not None and row.confidence < UNSURE,
    "off": lambda row, found: row.index in found.far,
    "disagree": lambda row, found: row.index in found.apart,
    "rationale": lambda row, _: bool(row.marked),
}


def _by(value: Callable[[Row], int | float | None], sign: int) -> Callable[[Row], tuple[int | float, int]]:
    def place(row: Row) -> tuple[int | float, int]:
        found = value(row)
        return (math.inf if found is None else sign * found), row.index

    return place


_SORTS: dict[str, Callable[[Row], tuple[int | float, int]]] = {
    "index": _by(lambda row: row.index, 1),
    "mistakes": _by(_standing, 1),
    "confident": _by(lambda row: row.confidence, -1),
    "doubtful": _by(lambda row: row.confidence, 1),
    "error": _by(lambda row: row.error, -1),
    "disagree": _by(lambda row: row.disagreement, -1),
    "agree": _by(lambda row: row.disagreement, 1),
    "short": _by(lambda row: row.length, 1),
    "long": _by(lambda row: row.length, -1),
}
