"""Shared parts of generated data sets: sizes, seeds, balanced classes, and examples generated on first access."""

from __future__ import annotations

import functools
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import overload

from engine.data.examples import Dataset, DatasetTask, LabeledExample
from engine.data.registry import choose_split, read_card
from engine.params import option

VERSION = 1
"""Must be increased when a seed generates different texts than before."""
ANY = "any"
"""Default of an option, which restricts nothing.

Revisions leave it out, as they do False, so that adding an option does not change them.
"""
SPLIT_SIZES: Mapping[str, int] = {"validation": 1_000, "test": 2_000, "train": 20_000}
HELD_OUT_SPLITS = {0: "validation", 1: "test"}
"""Split by the last digit of a checksum of the text; texts with other digits are in the training split."""
UNMARKED = "unmarked"
"""A split of marked sets: the test split without marks."""


@dataclass(frozen=True)
class GeneratedParams:
    """Options of every generated data set."""

    count: int | None = option(
        None, "examples; none: 20,000 for train, 1,000 for validation, 2,000 for test", low=1, high=10**6
    )
    seed: int = option(0, "seed of everything in the examples", low=0)


class GeneratedExamples(Sequence[LabeledExample]):
    """Examples generated from their indices on first access. Compares equal to the tuple of the examples."""

    def __init__(self, count: int, make: Callable[[int], LabeledExample]) -> None:
        self._count, self._make = count, functools.cache(make)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> LabeledExample: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[LabeledExample, ...]: ...

    def __getitem__(self, index: int | slice) -> LabeledExample | tuple[LabeledExample, ...]:
        places = range(self._count)[index]
        return tuple(map(self._make, places)) if isinstance(places, range) else self._make(places)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (GeneratedExamples, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


def example_count(params: GeneratedParams, split: str, limit: int | None) -> int:
    """Return the number of examples of a split, at most `limit`."""
    count = params.count or SPLIT_SIZES[split]
    return count if limit is None else min(count, limit)


def choose_marked_split(split: str | None, strength: float) -> tuple[str, str, float]:
    """Resolve a split of a marked set to (split, split that shares its seeds, share of examples with a mark)."""
    chosen = choose_split(split, (*SPLIT_SIZES, UNMARKED))
    return (chosen, "test", 0.0) if chosen == UNMARKED else (chosen, chosen, strength)


def split_of(text: str) -> str:
    """Return the split of a text, whatever the seed: a tenth of all texts is in validation, and a tenth in test."""
    return HELD_OUT_SPLITS.get(zlib.crc32(text.encode()) % 10, "train")


def draw_balanced(seed: str, count: int, classes: int = 2, repeats: int = 5) -> tuple[int, ...]:
    """Draw class indices in random order, in blocks that contain each class `repeats` times."""
    random = Random(seed)
    indices: list[int] = []
    while len(indices) < count:
        indices += random.sample([*range(classes)] * repeats, classes * repeats)
    return tuple(indices[:count])


def as_sentence(words: str) -> str:
    """Write words as a sentence, with a capital letter and a period."""
    at = 2 if words.startswith("[[") else 0
    return f"{words[:at]}{words[at].upper()}{words[at + 1 :]}."


def hash_values(*values: object) -> str:
    """Return the SHA-256 of plain values, which is the revision of generated content."""
    return hashlib.sha256(repr(values).encode()).hexdigest()


def make_dataset(
    name: str,
    params: GeneratedParams,
    split: str,
    examples: GeneratedExamples,
    labels: tuple[str, ...],
    version: int = VERSION,
) -> Dataset:
    """Build a data set of generated examples; without labels, its task is regression."""
    card = read_card(name)
    options = {field: value for field, value in asdict(params).items() if value is not False and value != ANY}
    revision = hash_values(name, version, options, split, len(examples))
    task: DatasetTask = "classification" if labels else "regression"
    return Dataset(name, card.title, task, labels, examples, card, revision, split, exact=True)
