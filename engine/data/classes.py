"""Which of a model's classes a data set's class is: without that, "right" and "wrong" mean nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

UNNAMED = re.compile(r"(?:label_?|class_?)?(\d+)")
"""What classes are called that nobody has named: 0, LABEL_0."""
PLACED = re.compile(r"(?:label|class)[_ ]?(\d+)")
"""The same where a mere number is a name: a picture of a 7."""


@dataclass(frozen=True)
class Classes:
    """`of[i]`: the model's class that the data set's class i is; None where that cannot be told.

    `said`: a sentence for people, how the classes were matched or why they were not; empty where names are the same.
    """

    of: tuple[int, ...] | None
    said: str = ""


def match_classes(names: Sequence[str], labels: Sequence[str], unnamed: re.Pattern[str] = UNNAMED) -> Classes:
    """By name, whatever the case; by number where one side has only numbers; otherwise not at all."""
    known = {label.strip().casefold(): index for index, label in enumerate(labels)}
    if names and len(known) == len(labels) and all(name.strip().casefold() in known for name in names):
        return Classes(tuple(known[name.strip().casefold()] for name in names))
    if names and len(names) <= len(labels) and (_numbered(names, unnamed) or _numbered(labels, unnamed)):
        pairs = ", ".join(f"{name} is {label}" for name, label in zip(names, labels, strict=False))
        return Classes(tuple(range(len(names))), f"Classes are compared by their number: {pairs}.")
    return Classes(
        None,
        f"The data set's classes ({_listed(names)}) are not the model's ({_listed(labels)}), "
        "so what is right cannot be told.",
    )


def _numbered(names: Sequence[str], unnamed: re.Pattern[str]) -> bool:
    """Whether each name is only its own number."""
    found = [unnamed.fullmatch(name.strip().casefold()) for name in names]
    return all(match is not None and int(match[1]) == index for index, match in enumerate(found))


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more
