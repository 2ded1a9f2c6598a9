"""Examples of a data set as rows with the model's predictions: filtered, sorted, as table columns. Pure functions."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from components.browse.listing import Listing
from components.numbers import count, percent, plain
from engine.data.examples import Dataset, ImageDataset, LabeledExample
from engine.data.labels import NUMBERED_CLASS, PROMPT_LABELS, ClassMatch, match_classes
from engine.format import shorten
from engine.lazy import pandas
from engine.metrics.agreement import Disagreement
from engine.result import Prediction
from engine.table_io import escape_cell

CONFIDENT = 0.9
UNSURE = 0.6
TOP_SHARE = 0.25
"""Share of the examples that count as far off, or as having much disagreement: the top quarter."""
NO_LABELS = ClassMatch(None, "This data set has no labels, so accuracy cannot be computed.")
MOST_SHOWN = 1000
"""Maximum number of rows that are sent to the browser."""
MOST_CHARACTERS = 160
COMPARING = {"disagree", "agree"}
JUDGING = {"right", "wrong", "confident_wrong", "mistakes", "off", "error"}
PREDICTING = JUDGING | {"unsure", "confident", "doubtful"}
"""Filters and sort orders, grouped by the results that they need."""
JUDGED = {True: "✓ right", False: "✗ wrong", None: ""}


@dataclass(frozen=True)
class ExampleRow:
    """An example as a row. None marks values that are unknown or do not exist.

    `confidence`: probability of the predicted class. `error`: distance of the score from the true one. `length`:
    characters of both texts. `marked`: words of the rationale. `compared`: whether methods were compared;
    `disagreement` is None if their maps have no order.
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
class ExampleTable:
    """All rows in the order of the data set. `regression`: None if nothing is predicted yet.

    `class_names`: the model's classes. `matches`: for each label, the index of its class among these. Both are empty
    unless labels are compared with predicted classes, which are the same for all examples.
    """

    rows: tuple[ExampleRow, ...]
    label_names: tuple[str, ...]
    regression: bool | None = None
    note: str = ""
    """How labels and predictions were compared, or why they could not be."""
    class_names: tuple[str, ...] = ()
    matches: tuple[int | None, ...] = ()

    @property
    def predicted(self) -> int:
        return sum(row.predicted is not None or row.score is not None for row in self.rows)

    @property
    def judged(self) -> bool:
        """Whether any prediction can be judged: right or wrong, or by its error."""
        return any(row.right is not None or row.error is not None for row in self.rows)

    @property
    def compared(self) -> int:
        return sum(row.compared for row in self.rows)

    @cached_property
    def far(self) -> frozenset[int]:
        """The indices of the rows with the largest errors."""
        return top_quarter([row.error for row in self.rows])

    @cached_property
    def apart(self) -> frozenset[int]:
        """The indices of the rows on which the methods disagree most."""
        return top_quarter([row.disagreement for row in self.rows])


def example_table(
    data: Dataset, predictions: Sequence[Prediction | None] = (), comparisons: Sequence[Disagreement | None] = ()
) -> ExampleTable:
    """Return the table of a data set of texts.

    `predictions`, `comparisons`: in the order of its examples, or empty.
    """
    rows = [_row(data, index, example) for index, example in enumerate(data.examples)]
    names = data.label_names if any(row.label is not None for row in rows) else ()
    if names == PROMPT_LABELS:
        names = tuple(sorted({row.label for row in rows if row.label is not None}))
    if comparisons:
        rows = [
            row if one is None else replace(row, compared=True, disagreement=one.value, left_out=one.left_out)
            for row, one in zip(rows, comparisons, strict=True)
        ]
    first = next((prediction for prediction in predictions if prediction is not None), None)
    if first is None:
        return ExampleTable(tuple(rows), names)
    classes = _classes(data, first)
    labels = [example.label for example in data.examples]
    predicted = (add_prediction(*one, classes) for one in zip(rows, labels, predictions, strict=True))
    comparable = not first.regression and data.label_names != PROMPT_LABELS
    return ExampleTable(tuple(predicted), names, first.regression, classes.note, *_matches(first, classes, comparable))


def picture_table(data: ImageDataset, predictions: Sequence[Prediction | None]) -> ExampleTable:
    """Return the table of a picture set. Reads no pictures.

    `predictions`: in the order of its pictures.
    """
    names = data.label_names
    rows = [
        ExampleRow(index, text="", pair=None, label=None if label is None else names[label], marked="", length=0)
        for index, label in enumerate(data.labels)
    ]
    is_labeled = any(label is not None for label in data.labels)
    first = next((prediction for prediction in predictions if prediction is not None), None)
    if first is None:
        return ExampleTable(tuple(rows), names if is_labeled else ())
    classes = match_classes(names, first.labels, NUMBERED_CLASS) if is_labeled else NO_LABELS
    predicted = (add_prediction(*one, classes) for one in zip(rows, data.labels, predictions, strict=True))
    matches = _matches(first, classes, not first.regression)
    return ExampleTable(tuple(predicted), names if is_labeled else (), first.regression, classes.note, *matches)


def _matches(
    first: Prediction, classes: ClassMatch, comparable: bool
) -> tuple[tuple[str, ...], tuple[int | None, ...]]:
    """Return the model's classes and the index of each label's class; both empty if they cannot be compared."""
    return (first.labels, tuple(classes.indices)) if comparable and classes.indices else ((), ())


def list_examples(table: ExampleTable, listing: Listing, selected: Collection[int] | None = None) -> list[int]:
    """Return the indices of the listed rows, in order; rows without a value to sort by are last.

    `selected`: None for all rows.
    """
    fits, words = _FILTERS[listing.show], _folded(listing.search)
    rows = [
        row
        for row in table.rows
        if fits(row, table)
        and (selected is None or row.index in selected)
        and listing.label in ("", row.label)
        and listing.predicted in ("", row.predicted)
        and (not words or words in _folded(row.text if row.pair is None else f"{row.text} {row.pair}"))
    ]
    return [row.index for row in sorted(rows, key=_SORTS[listing.sort])]


def top_quarter(values: Sequence[int | float | None]) -> frozenset[int]:
    """Return the indices of the highest quarter of the known values, rounded up; on ties the first.

    Values that are not above 0 are left out, because an error of 0 is not far off.
    """
    numbers = [(-value, place) for place, value in enumerate(values) if value is not None]
    return frozenset(place for value, place in sorted(numbers)[: math.ceil(TOP_SHARE * len(numbers))] if value < 0)


def _row(data: Dataset, index: int, example: LabeledExample) -> ExampleRow:
    label = None
    if example.label is not None:
        label = f"{example.label:g}" if data.task == "regression" else data.label_names[int(example.label)]
    label = example.answer or label
    marked = [example.text[start:end] for start, end in example.rationale]
    marked += [(example.text_pair or "")[start:end] for start, end in example.rationale_pair]
    return ExampleRow(
        index=index,
        text=example.text,
        pair=example.text_pair,
        label=label,
        marked=" · ".join(marked),
        length=len(example.text) + len(example.text_pair or ""),
    )


def _classes(data: Dataset, prediction: Prediction) -> ClassMatch:
    if all(example.label is None for example in data.examples):
        return NO_LABELS
    if prediction.regression != (data.task == "regression"):
        kinds = ("a class", "a score")
        return ClassMatch(
            None,
            f"The model gives {kinds[prediction.regression]}, the data set has {kinds[data.task == 'regression']} "
            "for each example, so accuracy cannot be computed.",
        )
    return ClassMatch(()) if prediction.regression else match_classes(data.label_names, prediction.labels)


def add_prediction(
    row: ExampleRow, label: int | float | None, prediction: Prediction | None, classes: ClassMatch
) -> ExampleRow:
    """Return the row with the model's prediction, compared with `label`, the true class or score."""
    if prediction is None:
        return row
    indices = None if label is None else classes.indices
    if prediction.regression:
        score = prediction.logits[0]
        return replace(row, score=score, error=None if indices is None else abs(score - float(label or 0)))
    index = None if indices is None else indices[int(label or 0)]
    return replace(
        row,
        predicted=prediction.label,
        confidence=prediction.probabilities[prediction.index],
        right=None if index is None else index == prediction.index,
    )


def _standing(row: ExampleRow) -> float | None:
    """Return the sort key of failures: -2 for the most confident mistake, 1 for the most confident right answer."""
    if row.confidence is None:
        return None
    return -1 - row.confidence if row.right is False else row.confidence


def _folded(text: str) -> str:
    """Normalize a text for search: compatibility characters (NFKC), case, and white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


Filter = Callable[[ExampleRow, ExampleTable], bool]
_FILTERS: dict[str, Filter] = {
    "all": lambda row, _: True,
    "right": lambda row, _: row.right is True,
    "wrong": lambda row, _: row.right is False,
    "confident_wrong": lambda row, _: row.right is False and (row.confidence or 0) >= CONFIDENT,
    "unsure": lambda row, _: row.confidence is not None and row.confidence < UNSURE,
    "off": lambda row, table: row.index in table.far,
    "disagree": lambda row, table: row.index in table.apart,
    "rationale": lambda row, _: bool(row.marked),
}


def _sort_by(
    value: Callable[[ExampleRow], int | float | None], sign: int
) -> Callable[[ExampleRow], tuple[int | float, int]]:
    def place(row: ExampleRow) -> tuple[int | float, int]:
        number = value(row)
        return (math.inf if number is None else sign * number), row.index

    return place


_SORTS: dict[str, Callable[[ExampleRow], tuple[int | float, int]]] = {
    "index": _sort_by(lambda row: row.index, 1),
    "mistakes": _sort_by(_standing, 1),
    "confident": _sort_by(lambda row: row.confidence, -1),
    "doubtful": _sort_by(lambda row: row.confidence, 1),
    "error": _sort_by(lambda row: row.error, -1),
    "disagree": _sort_by(lambda row: row.disagreement, -1),
    "agree": _sort_by(lambda row: row.disagreement, 1),
    "short": _sort_by(lambda row: row.length, 1),
    "long": _sort_by(lambda row: row.length, -1),
}


def example_frame(rows: Sequence[ExampleRow], table: ExampleTable) -> pandas.DataFrame:
    """Return the first `MOST_SHOWN` rows, with only the columns that have values."""
    first = rows[:MOST_SHOWN]
    columns: dict[str, list[object]] = {"#": [row.index for row in first], "Text": [_cell(row.text) for row in first]}
    if any(row.pair is not None for row in table.rows):
        columns["Second text"] = [_cell(row.pair or "") for row in first]
    if any(row.label is not None for row in table.rows):
        columns["Label"] = [_cell(row.label or "") for row in first]
    columns |= _prediction_columns(first, table)
    if table.compared:
        columns["Disagreement"] = [row.disagreement for row in first]
    columns["Length"] = [row.length for row in first]
    if any(row.marked for row in table.rows):
        columns["Rationale"] = [_cell(row.marked) for row in first]
    return pandas.DataFrame(columns)


def _prediction_columns(first: Sequence[ExampleRow], table: ExampleTable) -> dict[str, list[object]]:
    if table.regression is None:
        return {}
    if table.regression:
        scores: dict[str, list[object]] = {"Score": [row.score for row in first]}
        return scores | ({"Error": [row.error for row in first]} if table.judged else {})
    answers: dict[str, list[object]] = {
        "Prediction": [_cell(row.predicted or "") for row in first],
        "Confidence": [row.confidence for row in first],
    }
    return answers | ({"Verdict": [JUDGED[row.right] for row in first]} if table.judged else {})


def _cell(text: str) -> str:
    """Shorten a text to one line, and escape formulas, because the table can be saved for a spreadsheet."""
    return escape_cell(shorten(text, MOST_CHARACTERS))


def describe_examples(table: ExampleTable) -> str:
    """Describe the number of examples, and the accuracy of the model or why there is none."""
    parts = [count(len(table.rows), "example")]
    if table.predicted < len(table.rows):
        parts.append(f"{table.predicted:,} predicted" if table.predicted else "none predicted yet")
    return " ".join(filter(None, [f"{', '.join(parts)}.", _accuracy(table), table.note]))


def _accuracy(table: ExampleTable) -> str:
    errors = [row.error for row in table.rows if row.error is not None]
    if errors:
        return f"Mean absolute error {plain(sum(errors) / len(errors))} on {count(len(errors), 'labeled example')}."
    verdicts = [row for row in table.rows if row.right is not None]
    if not verdicts:
        return ""
    wrong = [row for row in verdicts if not row.right]
    right = len(verdicts) - len(wrong)
    surely = sum((row.confidence or 0) >= CONFIDENT for row in wrong)
    return (
        f"Accuracy {percent(right / len(verdicts))}: {right:,} of {len(verdicts):,} right, {len(wrong):,} wrong, "
        f"{surely:,} of these with a confidence of at least {CONFIDENT:.0%}."
    )


def explain_missing(table: ExampleTable, listing: Listing) -> str:
    """Return why the list cannot be filtered or sorted as chosen, and what to do; empty if it can."""
    needs = {listing.show, listing.sort, *(["right"] if listing.predicted and not table.predicted else [])}
    if needs & COMPARING and not table.compared:
        return "Not compared yet: press Compare methods above."
    if needs & PREDICTING and not table.predicted:
        return "Not predicted yet: press Predict above."
    return table.note if needs & JUDGING and not table.judged else ""


def describe_left_out(table: ExampleTable, titles: dict[str, str]) -> str:
    """Name the methods left out of the comparison because all their scores are equal, with the numbers of examples."""
    counts = Counter(method for row in table.rows for method in row.left_out)
    names = ", ".join(f"{titles.get(method, method)} on {count(n, 'example')}" for method, n in counts.items())
    return f"Not compared, because all scores are equal: {names}." if names else ""


def describe_place(listed: Sequence[int], current: int | None) -> str:
    """Describe the position of the example, such as “Example 7: 3 of 41 in the list”."""
    if not listed:
        return "none listed"
    if current in listed:
        return f"Example {current}: {listed.index(current) + 1:,} of {len(listed):,} in the list"
    return f"{len(listed):,} listed; the current example is not in the list"


def neighbors(listed: Sequence[int], current: int | None) -> tuple[int | None, int | None]:
    """Return the previous and the next example; if the current one is not in the list, its last and its first."""
    if not listed:
        return None, None
    if current not in listed:
        return listed[-1], listed[0]
    at = listed.index(current)
    return (listed[at - 1] if at else None), (listed[at + 1] if at + 1 < len(listed) else None)
