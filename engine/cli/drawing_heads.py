"""Scores of heads as a table for people: heads as rows, scores as columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from engine.cli.explain import header_lines
from engine.cli.output import console, table, visible
from engine.heads.readings import CAUTION

if TYPE_CHECKING:
    from rich.table import Table

    from engine.heads.readings import HeadTable

LARGEST_SHOWN = 3
NONE, FLIPS = "-", "flips"


def draw(told: Sequence[str], found: HeadTable, most: int | None = None) -> None:
    """Prints lines that say what the input is, the prediction, a row a head, and what the scores mean."""
    out = console()
    for line in header_lines(told, found.reading.of):
        out.print(line)
    out.print()
    out.print(_table(found, most))
    for line in _notes(found):
        out.print(line)


def _table(found: HeadTable, most: int | None) -> Table:
    made = table(["head", *found.columns, *([FLIPS] if found.flipped is not None else [])], right=list(found.columns))
    top = {name: _largest(column) for name, column in found.columns.items()}
    for layer, head in found.heads if most is None else found.ranked[:most]:
        cells = [
            Text(_shown(column[layer, head]), style="bold" if (layer, head) in top[name] else "")
            for name, column in found.columns.items()
        ]
        flips = [] if found.flipped is None else [FLIPS if found.flipped[layer, head] else ""]
        made.add_row(f"{layer}.{head}", *cells, *flips)
    return made


def _largest(column: np.ndarray) -> set[tuple[int, int]]:
    """The heads that stand out: the largest by absolute value, but for 0."""
    sizes = np.nan_to_num(np.abs(column))
    order = np.argsort(-sizes, axis=None, kind="stable")[:LARGEST_SHOWN]
    return {(int(at) // column.shape[1], int(at) % column.shape[1]) for at in order if sizes.flat[at]}


def _shown(value: float) -> str:
    return NONE if math.isnan(value) else f"{value:.4f}"


def _notes(found: HeadTable) -> Iterator[Text]:
    for name in found.columns:
        score = found.score(name)
        yield Text(f"{name}: {score.title}, {score.unit}. {score.about}", style="dim")
    for note in (*found.reading.of.notes, CAUTION):
        yield Text(f"note: {visible(note)}")
