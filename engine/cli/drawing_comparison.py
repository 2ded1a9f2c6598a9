"""Comparisons as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from engine.cli.output import console, table, visible

LONGEST = 60


def draw(told: Sequence[str], plain: Mapping[str, Any], measure: str) -> None:
    """What the input is, a letter a column, the scores by common parts, and how every two agree."""
    out = console()
    letters = ascii_uppercase[: len(plain["columns"])]
    for line in told:
        out.print(visible(line))
    for letter, column in zip(letters, plain["columns"], strict=True):
        out.print(visible(f"{letter}  {column['column']}: predicts {_predicted(column)}, explains {column['target']}"))
    parts = table(["part", *letters], right=letters)
    for part in plain["parts"]:
        parts.add_row(visible(part["text"])[:LONGEST], *map(_number, part["scores"]))
    agreement = plain["agreement"]
    matrix = table([measure, *letters], right=letters)
    for letter, row in zip(letters, agreement[measure], strict=True):
        matrix.add_row(letter, *map(_number, row))
    for drawn in (parts, matrix):
        out.print()
        out.print(drawn)
    out.print(f"disagreement {_number(plain['disagreement'][measure])}, n {agreement['n']}, top {agreement['k']}")
    for one in plain["failed"]:
        out.print(visible(f"note: {one['column']} is left out: {one['error']}"))


def draw_search(plain: Mapping[str, Any]) -> None:
    """The examples, most disagreement first."""
    made = table(["index", "disagreement", "predicted", "example"], right=["index", "disagreement"])
    for one in plain["found"]:
        predicted = ", ".join(dict.fromkeys(label for label in one["predicted"] if label is not None))
        made.add_row(
            f"{one['index']}", _number(one["disagreement"]), visible(predicted), visible(one["example"])[:LONGEST]
        )
    console().print(made)
    for one in plain["left_out"]:
        where = f"example {one['index']}" + (f", {one['column']}" if one["column"] else "")
        console().print(visible(f"note: {where} is left out: {one['why']}"))


def _predicted(column: Mapping[str, Any]) -> str:
    prediction = column["prediction"]
    return f"{prediction['score']:.4f}" if prediction["label"] is None else str(prediction["label"])


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"
