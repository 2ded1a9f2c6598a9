"""Turns the labels that a file holds into class indices or scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.data.examples import Task
from engine.errors import ExegesisError, UsageError, shown

MAX_CLASSES = 1_000
NLI_LABELS = ("entailment", "neutral", "contradiction")
"""Of a hypothesis, given its premise."""


@dataclass(frozen=True)
class Labels:
    """The labels of all rows in their order, with the names of the classes (none for regression)."""

    task: Task
    names: tuple[str, ...]
    values: tuple[int | float | None, ...]


def read_labels(raw: Sequence[object], wheres: Sequence[str], names: Sequence[str] | None) -> Labels:
    """Class indices by the given names; else whole numbers, fractions (regression) or sorted strings.

    Whole numbers are indices when 0 is among them; otherwise (stars 1 to 5) they are numbered in order.
    """
    values = [_plain(value, where) for value, where in zip(raw, wheres, strict=True)]
    if names is not None:
        known = _checked_names(names)
        return Labels("classification", known, tuple(_named(v, known, w) for v, w in zip(values, wheres, strict=True)))
    present = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in present):
        return _numbered([None if value is None else str(value) for value in values])
    if any(isinstance(value, float) for value in present):
        return Labels("regression", (), tuple(None if v is None else float(v) for v in values))
    return _whole(values)


def _plain(value: object, where: str) -> int | float | str | None:
    """None, a number where it reads as one, else the string."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str):
        value = _number(value.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ExegesisError(f"{where}: label: must be a number or a name, got {shown(value)}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ExegesisError(f"{where}: label: must be a finite number, got {value}.")
    return value


def _number(text: str) -> int | float | str:
    # "inf" and "nan" read as floats in Python; as labels they are names.
    if not any(char.isdecimal() for char in text) or "_" in text:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not names or len(set(names)) != len(names):
        raise UsageError(f"label_names: must be a list of different names, got {shown(names)}.")
    return tuple(str(name) for name in names)


def _named(value: int | float | str | None, names: tuple[str, ...], where: str) -> int | None:
    if value is None:
        return None
    if str(value) in names:
        return names.index(str(value))
    # Tables with gaps store whole numbers as 1.0.
    if not isinstance(value, str) and value in range(len(names)):
        return int(value)
    raise ExegesisError(f"{where}: label: {shown(value)} is not among the label names {', '.join(names)}.")


def _numbered(values: Sequence[int | str | None]) -> Labels:
    known = sorted({value for value in values if value is not None})
    index = {value: position for position, value in enumerate(known)}
    if len(known) > MAX_CLASSES:
        example = shown(known[0])
        raise ExegesisError(
            f"label: {len(known):,} different values such as {example} are no classes "
            f"(at most {MAX_CLASSES:,}). Map label to another column."
        )
    ids = tuple(None if value is None else index[value] for value in values)
    return Labels("classification", tuple(str(name) for name in known), ids)


def _whole(values: Sequence[int | float | str | None]) -> Labels:
    whole = [value if isinstance(value, int) else None for value in values]
    present = [value for value in whole if value is not None]
    if 0 in present and min(present) >= 0 and max(present) < MAX_CLASSES:
        return Labels("classification", tuple(str(i) for i in range(max(present) + 1)), tuple(whole))
    return _numbered(whole)
