"""The confusion matrix of a list of examples: counts by true and predicted class. Clicking a count filters the list."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st
from jaxtyping import Int

from components.browse.examples import ExampleTable
from components.controls import Key, restore_controls, set_control
from components.export import file_button
from components.numbers import percent
from components.tables import BORDER_PIXELS, ROW_PIXELS
from engine.lazy import pandas
from engine.table_io import escape_cell, to_csv

MOST_CLASSES = 50
"""Maximum number of classes on a side; a larger matrix is not drawn."""
MOST_IN_VIEW = 12
TITLE = "Confusion matrix"
TRUE = "True class"
RECALL, PRECISION = "Recall", "Precision"
FILE_HELP = "One row for each pair of a true and a predicted class, with the number of examples."
HELP = "True classes in rows, predicted classes in columns. Click on a count to list its examples."
ACCENT = "31, 95, 153"
"""Red, green and blue of the shade behind a count."""
STRONGEST = 0.45
"""Opacity of the shade of a cell with all examples of a class. Text on it is readable in both themes."""


@dataclass(frozen=True)
class ConfusionMatrix:
    """Counts of examples whose prediction is known to be right or wrong.

    `labels`: the true classes that occur, in the order of the data set. `predicted`: the model's classes that are
    predicted or match one of these, in the order of the model. `correct`: index in `predicted` of each true class.
    """

    labels: tuple[str, ...]
    predicted: tuple[str, ...]
    counts: Int[np.ndarray, "label predicted"]
    correct: tuple[int, ...]

    @property
    def recall(self) -> list[float]:
        """The share of each true class that is predicted correctly, from 0 to 1."""
        totals = self.counts.sum(axis=1)
        return [int(self.counts[row, place]) / int(totals[row]) for row, place in enumerate(self.correct)]

    @property
    def precision(self) -> list[float | None]:
        """The share of each predicted class that is correct, from 0 to 1; None if it is never predicted."""
        totals = self.counts.sum(axis=0)
        right = np.zeros(len(self.predicted), dtype=np.int64)
        for row, place in enumerate(self.correct):
            right[place] += self.counts[row, place]
        return [int(hits) / int(total) if total else None for hits, total in zip(right, totals, strict=True)]

    def rows(self) -> list[dict[str, str | int]]:
        """Return the counts as rows of a table, one per cell."""
        return [
            {"label": label, "predicted": name, "count": int(self.counts[row, place])}
            for row, label in enumerate(self.labels)
            for place, name in enumerate(self.predicted)
        ]


def confusion_matrix(table: ExampleTable) -> ConfusionMatrix | None:
    """Return the matrix of the judged examples; None if there are none, or too many classes."""
    judged = [(str(row.label), str(row.predicted)) for row in table.rows if row.right is not None]
    if not judged or not table.matches:
        return None
    pairs = zip(table.label_names, table.matches, strict=True)
    own = {label: table.class_names[place] for label, place in pairs if place is not None}
    occurring, predicted = ({pair[side] for pair in judged} for side in (0, 1))
    labels = tuple(label for label in table.label_names if label in occurring)
    names = tuple(name for name in table.class_names if name in predicted or name in {own[one] for one in labels})
    if max(len(labels), len(names)) > MOST_CLASSES:
        return None
    counts = np.zeros((len(labels), len(names)), dtype=np.int64)
    for label, name in judged:
        counts[labels.index(label), names.index(name)] += 1
    return ConfusionMatrix(labels, names, counts, tuple(names.index(own[label]) for label in labels))


def matrix_frame(matrix: ConfusionMatrix) -> pandas.DataFrame:
    """Return the counts, with a column of recall per true class and a last row of precision per predicted class."""
    columns: dict[str, list[object]] = {TRUE: [*map(escape_cell, matrix.labels), PRECISION]}
    for place, name in enumerate(matrix.predicted):
        share = matrix.precision[place]
        counts = [str(int(count)) for count in matrix.counts[:, place]]
        columns[class_column(name)] = [*counts, "" if share is None else percent(share)]
    columns[RECALL] = [*map(percent, matrix.recall), ""]
    return pandas.DataFrame(columns)


def class_column(name: str) -> str:
    """Return the header of a predicted class's column, which differs from all other headers."""
    return f"→ {name}"


def draw_confusion(table: ExampleTable, key: Key) -> None:
    """Draw the matrix, if there is one, in a collapsible section.

    Clicking a count filters the list to its classes.
    """
    matrix = confusion_matrix(table)
    if matrix is None:
        return
    with st.expander(TITLE, key=key("confusion"), on_change="rerun") as section:
        if section.open:
            _draw_matrix(matrix, key)


def _draw_matrix(matrix: ConfusionMatrix, key: Key) -> None:
    label, predicted = (str(st.session_state.get(key(f"browse.{name}"))) for name in ("label", "predicted"))
    widget = key("browse_confusion")
    is_cell = label in matrix.labels and predicted in matrix.predicted
    cells = [(matrix.labels.index(label), class_column(predicted))] if is_cell else []
    selection = {"selection": {"rows": [], "columns": [], "cells": cells}}
    if st.session_state.get(widget) != selection:
        set_control(widget, selection)
    st.caption(HELP)
    st.dataframe(
        matrix_frame(matrix).style.apply(_shades, axis=None, matrix=matrix),
        key=widget,
        height=min(matrix.counts.shape[0] + 2, MOST_IN_VIEW) * ROW_PIXELS + BORDER_PIXELS,
        width="content",
        hide_index=True,
        column_config={TRUE: st.column_config.Column(pinned=True)},
        selection_mode="single-cell",
        on_select=partial(_receive_cell, matrix, widget, key),
    )
    file_button(
        "Counts (CSV)", "confusion.csv", "text/csv", lambda: to_csv(matrix.rows()), FILE_HELP,
        key("confusion_file"),
    )  # fmt: skip


def _receive_cell(matrix: ConfusionMatrix, widget: str, key: Key) -> None:
    """Filter the list to a cell. Clicking a row's name or its recall filters to the true class only."""
    restore_controls()
    columns = {class_column(name): name for name in matrix.predicted}
    for row, column in st.session_state[widget]["selection"]["cells"] or [(len(matrix.labels), "")]:
        set_control(key("browse.label"), matrix.labels[row] if row < len(matrix.labels) else "")
        set_control(key("browse.predicted"), columns.get(column, ""))


def _shades(frame: pandas.DataFrame, matrix: ConfusionMatrix) -> pandas.DataFrame:
    """Return the CSS of each cell: the larger the share of a true class, the stronger the shade."""
    shades = frame.astype(str).map(lambda _: "")
    shares = matrix.counts / matrix.counts.sum(axis=1, keepdims=True)
    for place, name in enumerate(matrix.predicted):
        for row, share in enumerate(shares[:, place]):
            shades.loc[row, class_column(name)] = f"background-color: rgba({ACCENT}, {STRONGEST * float(share):.2f})"
    return shades
