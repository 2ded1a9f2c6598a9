"""Slices of data sets: examples selected by index, as options of the data set's name.

`reviews:slice=hard,rows=3+7-9` has the examples 3, 7, 8 and 9 of `reviews`, numbered from 0. The name alone determines
the examples, so a link, a command and a job on another machine read the same ones.

Files and data sets on the hub can change. Their slices also have the first digits of the content's revision:
`own.csv:slice=hard,rows=3+7-9,digest=5f2a61c09b3e`. It is an error if the content has changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from cache import key_for
from engine.data.examples import Dataset, ImageDataset
from engine.errors import ExegesisError, not_allowed
from engine.format import count_text
from engine.params import parse_assignments

Data = TypeVar("Data", Dataset, ImageDataset)

ROWS, NAME, DIGEST = "rows", "slice", "digest"
"""The options: indices of the examples, name of the slice, first digits of the whole data set's revision."""
DIGEST_CHARACTERS = 12
MOST_ROWS = 10**6
"""Largest number of examples in a slice: a link must not exhaust the memory."""
_OPTION = re.compile(rf"(?:^|,)\s*(?:{ROWS}|{NAME})\s*=")
_DIGEST = re.compile(r"[0-9a-f]{8,64}")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_NAME = re.compile(r"[\w .-]{1,40}")


@dataclass(frozen=True)
class SliceRows:
    """Indices of a slice's examples in increasing order, and its name.

    `digest`: first digits of the whole data set's revision, or "" if unknown.
    """

    rows: tuple[int, ...]
    name: str = ""
    digest: str = ""


def slice_name(dataset: str, rows: Iterable[int], name: str = "", revision: str = "") -> str:
    """Return the name of a slice of a data set, which may be a slice itself. Errors: no rows; an invalid name.

    `revision`: revision of the data set if it is a file or on the hub, so that changes are detected.
    """
    whole, part = split_slice(dataset)
    chosen = [part.rows[row] for row in rows] if part else list(rows)
    if not chosen:
        raise not_allowed(ROWS, "at least one example", "none")
    digest = part.digest if part else revision[:DIGEST_CHARACTERS]
    return join_slice(whole, SliceRows(tuple(chosen), _checked_name(name), digest))


def join_slice(whole: str, part: SliceRows | None) -> str:
    """Return the name of a slice of a data set; without a slice, the data set's name. Inverse of `split_slice`."""
    if part is None:
        return whole
    options = {NAME: part.name, ROWS: format_rows(part.rows), DIGEST: part.digest}
    listed = ",".join(f"{option}={value}" for option, value in options.items() if value)
    head, _, tail = whole.rpartition(":")  # without a colon, "=" belongs to the name of a file
    return f"{whole}{',' if head and '=' in tail else ':'}{listed}"


def format_rows(rows: Iterable[int]) -> str:
    """Format indices of examples as a string, such as `3+7-9`."""
    chosen = sorted(set(rows))
    breaks = [place for place, (before, after) in enumerate(pairwise(chosen), 1) if after > before + 1]
    bounds = pairwise([0, *breaks, len(chosen)])
    runs = [chosen[start:end] for start, end in bounds]
    return "+".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def parse_rows(text: str) -> tuple[int, ...]:
    """Parse indices such as `3+7-9`, in increasing order. Errors: any other form; more than `MOST_ROWS` examples."""
    chosen: set[int] = set()
    for part in text.split("+"):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise not_allowed(ROWS, "numbers of examples such as 3+7-9", text)
        if len(chosen) + last - first >= MOST_ROWS:
            raise not_allowed(ROWS, f"at most {MOST_ROWS:,} examples", text)
        chosen.update(range(first, last + 1))
    return tuple(sorted(chosen))


def split_slice(dataset: str) -> tuple[str, SliceRows | None]:
    """Split a name into the name of the whole data set and the slice, or None. Errors: a slice without rows."""
    head, _, tail = dataset.rpartition(":")
    if not head or not _OPTION.search(tail):
        return dataset, None
    options = parse_assignments(tail.split(","))
    name, digest = options.pop(NAME, ""), options.pop(DIGEST, "")
    if ROWS not in options:
        raise not_allowed(NAME, "beside rows, as in slice=hard,rows=3+7-9", name)
    if digest and not _DIGEST.fullmatch(digest):
        raise not_allowed(DIGEST, "8 to 64 hexadecimal digits", digest)
    rows = parse_rows(options.pop(ROWS))
    own = ",".join(f"{option}={value}" for option, value in options.items())
    return f"{head}:{own}" if own else head, SliceRows(rows, _checked_name(name), digest)


def whole_name(dataset: str) -> str:
    """Return the name of the whole data set of a slice; other names are returned unchanged."""
    return split_slice(dataset)[0]


def load_slice(dataset: str, part: SliceRows, load_whole: Callable[[], Data], limit: int | None) -> Data:
    """Load a slice of a data set, at most `limit` examples. Its revision depends on the whole's revision and the rows.

    Errors: an example that the data set does not have; content that has changed.
    """
    data = load_whole()
    if not data.revision.startswith(part.digest):
        raise ExegesisError(
            f"digest: {data.title} has changed since the slice was named, or its split or columns are others: its "
            f"revision starts with {data.revision[: len(part.digest)]}, the slice names {part.digest}. Choose the "
            "examples again."
        )
    count = len(data)
    if isinstance(data, Dataset):
        count += len(data.faults)
    if part.rows[-1] >= count:
        raise not_allowed(ROWS, f"numbers of examples from 0 to {count - 1}", part.rows[-1])
    rows = part.rows[:limit]
    title = f"{data.title}: {part.name or count_text(len(part.rows), 'example')}"
    revision = key_for({"revision": data.revision, "rows": list(part.rows)})
    if isinstance(data, Dataset):
        # Index of each row among the valid examples, which equals the row if all are valid.
        places = {row: at for at, row in enumerate(row for row in range(count) if row not in data.faults)}
        examples = [data.examples[places[row]] for row in rows if row in places]
        faults = {at: data.faults[row] for at, row in enumerate(rows) if row in data.faults}
        return replace(data, id=dataset, title=title, revision=revision, examples=examples, faults=faults)
    labels, read = tuple(data.labels[row] for row in rows), data.read
    return replace(
        data, id=dataset, title=title, revision=revision, labels=labels, read=lambda index: read(rows[index])
    )


def _checked_name(name: str) -> str:
    if name and not _NAME.fullmatch(name):
        raise not_allowed(NAME, "up to 40 letters, digits, spaces, dots and hyphens", name)
    return name
