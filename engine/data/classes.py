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
    """`of[i]`: the model's class that the data set's class i is, None where the model has no such class.

    All of `of` is None where that cannot be told. `said`: a sentence for people, how the classes were matched, which
    were not, or why none was; empty where names are the same.
    """

    of: tuple[int | None, ...] | None
    said: str = ""


def match_classes(names: Sequence[str], labels: Sequence[str], unnamed: re.Pattern[str] = UNNAMED) -> Classes:
    """By name, whatever the case; by number where one side has only numbers; otherwise not at all.

    Classes that only the data set has are left out where some are the model's.
    """
    of = _by_name(names, labels)
    if of and None not in of:
        return Classes(of)
    if names and len(names) <= len(labels) and (_numbered(names, unnamed) or _numbered(labels, unnamed)):
        pairs = ", ".join(f"{name} is {label}" for name, label in zip(names, labels, strict=False))
        return Classes(tuple(range(len(names))), f"Classes are compared by their number: {pairs}.")
    if any(at is not None for at in of):
        out = [name for name, at in zip(names, of, strict=True) if at is None]
        return Classes(
            of, f"The model has no such class as {_listed(out)}, so what is right is told of the others only."
        )
    return Classes(
        None,
        f"The data set's classes ({_listed(names)}) are not the model's ({_listed(labels)}), "
        "so what is right cannot be told.",
    )


def _by_name(names: Sequence[str], labels: Sequence[str]) -> tuple[int | None, ...]:
    known = {label.strip().casefold(): index for index, label in enumerate(labels)}
    return tuple(known.get(name.strip().casefold()) for name in names) if len(known) == len(labels) else ()


def _numbered(names: Sequence[str], unnamed: re.Pattern[str]) -> bool:
    """Whether each name is only its own number."""
    found = [unnamed.fullmatch(name.strip().casefold()) for name in names]
    return all(match is not None and int(match[1]) == index for index, match in enumerate(found))


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more
