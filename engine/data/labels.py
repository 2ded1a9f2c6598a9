"""Labels of data sets: parsing from the cells of a file, and matching with the classes of a model."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.data.examples import DatasetTask
from engine.errors import ExegesisError, UsageError, excerpt
from engine.result import OTHERS

MAX_CLASSES = 1_000
SENTIMENT_LABELS = ("negative", "positive")
NLI_LABELS = ("entailment", "neutral", "contradiction")
"""Classes of a hypothesis, given its premise."""
PROMPT_LABELS = ("answer", "other")
"""Classes of a prompt with a contrast: its correct next token, and the wrong one that it is compared with."""

UNNAMED_CLASS = re.compile(r"(?:label_?|class_?)?(\d+)")
"""Class names without meaning: 0, LABEL_0."""
NUMBERED_CLASS = re.compile(r"(?:label|class)[_ ]?(\d+)")
"""As `UNNAMED_CLASS`, but bare numbers are meaningful names, as for pictures of digits."""


@dataclass(frozen=True)
class ParsedLabels:
    """The labels of all rows in order, with the names of the classes (none for regression)."""

    task: DatasetTask
    names: tuple[str, ...]
    values: tuple[int | float | None, ...]


def read_labels(raw: Sequence[object], wheres: Sequence[str], names: Sequence[str] | None) -> ParsedLabels:
    """Parse labels as members of `names` or, without names, as whole numbers, fractions (regression) or strings.

    Whole numbers are class indices if they include 0; otherwise (stars 1 to 5) they are numbered in order, as strings
    are. `wheres`: location of each label, for errors.
    """
    values = [_parse_label(value, where) for value, where in zip(raw, wheres, strict=True)]
    if names is not None:
        if isinstance(names, str) or not names or len(set(names)) != len(names):
            raise UsageError(f"label_names: must be a list of different names, got {excerpt(names)}.")
        classes = tuple(map(str, names))
        indices = tuple(_index_by_name(value, classes, where) for value, where in zip(values, wheres, strict=True))
        return ParsedLabels("classification", classes, indices)
    if any(isinstance(value, str) for value in values):
        return _number_classes([None if value is None else str(value) for value in values])
    if any(isinstance(value, float) for value in values):
        return ParsedLabels("regression", (), tuple(None if value is None else float(value) for value in values))
    whole = [value if isinstance(value, int) else None for value in values]
    present = [value for value in whole if value is not None]
    if 0 in present and min(present) >= 0 and max(present) < MAX_CLASSES:
        return ParsedLabels("classification", tuple(map(str, range(max(present) + 1))), tuple(whole))
    return _number_classes(whole)


def _parse_label(value: object, where: str) -> int | float | str | None:
    """Convert a cell to None, a number if it reads as one, or a string."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str):
        value = _parse_number(value.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ExegesisError(f"{where}: label: must be a number or a name, got {excerpt(value)}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ExegesisError(f"{where}: label: must be a finite number, got {value}.")
    return value


def _parse_number(text: str) -> int | float | str:
    # Python reads "inf" and "nan" as floats; as labels they are names.
    if not any(char.isdecimal() for char in text) or "_" in text:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _index_by_name(value: int | float | str | None, names: tuple[str, ...], where: str) -> int | None:
    if value is None:
        return None
    if str(value) in names:
        return names.index(str(value))
    # Tables with gaps store whole numbers as 1.0.
    if not isinstance(value, str) and value in range(len(names)):
        return int(value)
    raise ExegesisError(f"{where}: label: {excerpt(value)} is not among the label names {', '.join(names)}.")


def _number_classes(values: Sequence[int | str | None]) -> ParsedLabels:
    classes = sorted({value for value in values if value is not None})
    index = {value: position for position, value in enumerate(classes)}
    if len(classes) > MAX_CLASSES:
        raise ExegesisError(
            f"label: {len(classes):,} different values such as {excerpt(classes[0])} are too many classes "
            f"(at most {MAX_CLASSES:,}). Map label to another column."
        )
    indices = tuple(None if value is None else index[value] for value in values)
    return ParsedLabels("classification", tuple(map(str, classes)), indices)


@dataclass(frozen=True)
class ClassMatch:
    """Match of a data set's classes with a model's. `indices[i]`: the model's class for class i, or None.

    `indices` is None if no class matches. `note`: a sentence for users on how classes were matched, which ones were not
    matched, or why none was; empty if the names are the same.
    """

    indices: tuple[int | None, ...] | None
    note: str = ""


def match_classes(names: Sequence[str], labels: Sequence[str], unnamed: re.Pattern[str] = UNNAMED_CLASS) -> ClassMatch:
    """Match a data set's classes with a model's: by name, ignoring case, or by number if one side has only numbers.

    The classes of a prompt are tokens: its answer, then the other one. Without a match, accuracy is undefined. If only
    some classes match, the indices of the others are None.
    """
    if tuple(names) == PROMPT_LABELS and len(labels) in (0, len(PROMPT_LABELS)):
        return ClassMatch((0, 1))
    if OTHERS in labels or not labels:
        return ClassMatch(
            None,
            f"The model predicts the next token, not the data set's classes ({_join_names(names)}), so accuracy cannot "
            "be computed.",
        )
    indices = _match_names(names, labels)
    if indices and None not in indices:
        return ClassMatch(indices)
    if names and len(names) <= len(labels) and (_are_numbered(names, unnamed) or _are_numbered(labels, unnamed)):
        pairs = ", ".join(f"{name} is {label}" for name, label in zip(names, labels, strict=False))
        return ClassMatch(tuple(range(len(names))), f"Classes are matched by number: {pairs}.")
    if any(index is not None for index in indices):
        missing = _join_names([name for name, index in zip(names, indices, strict=True) if index is None])
        note = f"The model has no class {missing}, so accuracy covers the other classes only."
        return ClassMatch(indices, note)
    return ClassMatch(
        None,
        f"The data set's classes ({_join_names(names)}) do not match the model's ({_join_names(labels)}), "
        "so accuracy cannot be computed.",
    )


def _match_names(names: Sequence[str], labels: Sequence[str]) -> tuple[int | None, ...]:
    index = {label.strip().casefold(): i for i, label in enumerate(labels)}
    return tuple(index.get(name.strip().casefold()) for name in names) if len(index) == len(labels) else ()


def _are_numbered(names: Sequence[str], unnamed: re.Pattern[str]) -> bool:
    """Whether every name is only its index."""
    matches = [unnamed.fullmatch(name.strip().casefold()) for name in names]
    return all(match is not None and int(match[1]) == index for index, match in enumerate(matches))


def _join_names(names: Sequence[str], limit: int = 8) -> str:
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "none") + more
