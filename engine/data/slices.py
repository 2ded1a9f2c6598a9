"""Slices of registered data sets: examples chosen by their numbers, as options of the name.

`reviews:slice=hard,rows=3+7-9` has the examples 3, 7, 8 and 9 of `reviews`, numbered from 0. The name alone says
which they are, so a link, a command and a job on another machine read the same examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from cache import key_for
from engine.data.examples import Dataset, ImageDataset
from engine.data.registry import parse_options
from engine.errors import not_allowed

Data = TypeVar("Data", Dataset, ImageDataset)

ROWS, NAME = "rows", "slice"
"""The options: which examples, and what people call them."""
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_NAME = re.compile(r"[\w .-]{1,40}")


@dataclass(frozen=True)
class SliceRows:
    """The examples of a slice in increasing order, and its name, which may be empty."""

    rows: tuple[int, ...]
    name: str = ""


def slice_name(dataset: str, rows: Iterable[int], name: str = "") -> str:
    """The name of a slice of a data set, which may be a slice itself. Errors: no rows; not a name."""
    own, part = split_slice(parse_options(dataset))
    chosen = [part.rows[row] for row in rows] if part else list(rows)
    if not chosen:
        raise not_allowed(ROWS, "at least one example", "none")
    options = {**own, **({NAME: _checked_name(name)} if name else {}), ROWS: format_rows(chosen)}
    return f"{dataset.partition(':')[0]}:{','.join(f'{option}={value}' for option, value in options.items())}"


def format_rows(rows: Iterable[int]) -> str:
    """Numbers of examples as text: `3+7-9`."""
    chosen = sorted(set(rows))
    breaks = [place for place, (before, after) in enumerate(pairwise(chosen), 1) if after > before + 1]
    bounds = pairwise([0, *breaks, len(chosen)])
    runs = [chosen[start:end] for start, end in bounds]
    return "+".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def parse_rows(text: str) -> tuple[int, ...]:
    """The numbers in `3+7-9`, in increasing order. Errors: any other form."""
    chosen: set[int] = set()
    for part in text.split("+"):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last - first > 10**6:
            raise not_allowed(ROWS, "numbers of examples such as 3+7-9", text)
        chosen.update(range(first, last + 1))
    return tuple(sorted(chosen))


def split_slice(options: Mapping[str, str]) -> tuple[dict[str, str], SliceRows | None]:
    """The options of the data set itself, and the slice if they name one. Errors: a name without rows."""
    own = {name: value for name, value in options.items() if name not in (ROWS, NAME)}
    if ROWS not in options:
        if NAME in options:
            raise not_allowed(NAME, "beside rows, as in slice=hard,rows=3+7-9", options[NAME])
        return own, None
    return own, SliceRows(parse_rows(options[ROWS]), _checked_name(options.get(NAME, "")))


def take_slice(data: Data, part: SliceRows, limit: int | None = None) -> Data:
    """The data set with these examples alone, at most `limit`. Its revision follows from theirs.

    Errors: an example that the data set does not have.
    """
    if part.rows[-1] >= len(data):
        raise not_allowed(ROWS, f"numbers of examples from 0 to {len(data) - 1}", part.rows[-1])
    rows = part.rows[:limit]
    title = f"{data.title}: {part.name or f'{len(part.rows):,} examples'}"
    revision = key_for({"revision": data.revision, "rows": list(part.rows)})
    if isinstance(data, Dataset):
        return replace(data, title=title, revision=revision, examples=[data.examples[row] for row in rows], faults={})
    labels, read = tuple(data.labels[row] for row in rows), data.read
    return replace(data, title=title, revision=revision, labels=labels, read=lambda index: read(rows[index]))


def _checked_name(name: str) -> str:
    if name and not _NAME.fullmatch(name):
        raise not_allowed(NAME, "up to 40 letters, digits, spaces, dots and hyphens", name)
    return name
