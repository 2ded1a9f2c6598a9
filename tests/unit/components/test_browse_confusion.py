"""The confusion matrix of a list: its counts and shares, the lists of its cells, its table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix as reference
from sklearn.metrics import precision_score, recall_score

from components.browse.confusion import (
    MOST_CLASSES,
    PRECISION,
    RECALL,
    TRUE,
    class_column,
    confusion_matrix,
    matrix_frame,
)
from components.browse.examples import ExampleRow, ExampleTable, list_examples
from components.browse.listing import Listing

LABELS, CLASSES = ("bird", "cat", "dog"), ("DOG", "FISH", "BIRD", "CAT")
OWN = (2, 3, 0)
PLAIN = ExampleRow(0, "a picture", None, None, "", 9)


def table(pairs: list[tuple[int | None, int | None]]) -> ExampleTable:
    """Examples by the places of their label and of their predicted class."""
    rows = [
        replace(
            PLAIN, index=index, label=None if label is None else LABELS[label],
            predicted=None if name is None else CLASSES[name],
            right=None if None in (label, name) else OWN[int(label or 0)] == name,
        )
        for index, (label, name) in enumerate(pairs)
    ]  # fmt: skip
    return ExampleTable(tuple(rows), LABELS, False, "", CLASSES, OWN)


@pytest.fixture
def drawn() -> list[tuple[int | None, int | None]]:
    random = np.random.default_rng(4)
    return [(int(random.integers(3)), int(random.choice([0, 2, 3]))) for _ in range(200)]


def test_the_counts_and_shares_are_scikit_learns(drawn: list[tuple[int | None, int | None]]) -> None:
    matrix = confusion_matrix(table([*drawn, (None, 0), (1, None)]))
    assert matrix is not None
    truth, predicted = [OWN[int(label or 0)] for label, _ in drawn], [name for _, name in drawn]
    order = [OWN[LABELS.index(label)] for label in matrix.labels]
    columns = [CLASSES.index(name) for name in matrix.predicted]
    assert (matrix.labels, matrix.predicted) == (LABELS, ("DOG", "BIRD", "CAT")), "FISH is neither true nor predicted"
    whole = reference(truth, predicted, labels=range(4))
    assert np.array_equal(matrix.counts, whole[np.ix_(order, columns)])
    assert matrix.recall == pytest.approx(recall_score(truth, predicted, labels=order, average=None))
    assert matrix.precision == pytest.approx(precision_score(truth, predicted, labels=columns, average=None))
    assert sum(int(str(row["count"])) for row in matrix.rows()) == 200


def test_a_cell_lists_as_many_examples_as_it_counts(drawn: list[tuple[int | None, int | None]]) -> None:
    examples = table(drawn)
    matrix = confusion_matrix(examples)
    assert matrix is not None
    for row in matrix.rows():
        listing = Listing(label=str(row["label"]), predicted=str(row["predicted"]))
        assert len(list_examples(examples, listing)) == row["count"]


def test_its_table_names_classes_and_shares() -> None:
    matrix = confusion_matrix(table([(1, 3), (1, 3), (1, 0), (2, 1)]))
    assert matrix is not None
    frame = matrix_frame(matrix)
    assert list(frame.columns) == [TRUE, *map(class_column, ("DOG", "FISH", "CAT")), RECALL]
    assert frame.to_numpy().tolist() == [
        ["cat", "1", "0", "2", "66.7%"],
        ["dog", "0", "1", "0", "0.0%"],
        [PRECISION, "0.0%", "0.0%", "100.0%", ""],
    ]


def test_a_class_that_is_never_predicted_has_no_precision() -> None:
    matrix = confusion_matrix(table([(0, 3)]))
    assert matrix is not None
    assert (matrix.predicted, matrix.precision, matrix.recall) == (("BIRD", "CAT"), [None, 0.0], [0.0])


def test_without_judged_predictions_or_with_too_many_classes_there_is_none() -> None:
    assert confusion_matrix(table([(None, 1), (1, None)])) is None
    assert confusion_matrix(replace(table([(1, 1)]), class_names=(), matches=())) is None
    names = tuple(map(str, range(MOST_CLASSES + 1)))
    rows = tuple(replace(PLAIN, label=name, predicted=name, right=True) for name in names)
    assert Counter(row.right for row in rows) == {True: MOST_CLASSES + 1}
    assert confusion_matrix(ExampleTable(rows, names, False, "", names, tuple(range(len(names))))) is None
