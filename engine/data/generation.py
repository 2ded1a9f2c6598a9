"""Common ground of generated data sets: sizes, seeds, balanced classes, and examples that are made when first read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import overload

from engine.data.examples import Dataset, DatasetTask, LabeledExample
from engine.data.registry import read_card
from engine.params import option

VERSION = 1
"""Raised when a seed gives other texts than before."""
ANY = "any"
"""The value of an option that leaves a choice open. It is no part of a revision, as when there was no choice yet."""
SPLIT_SIZES: Mapping[str, int] = {"validation": 1_000, "test": 2_000, "train": 20_000}
UNMARKED = "unmarked"
"""A split of marked sets: the test split without any mark."""


@dataclass(frozen=True)
class GeneratedParams:
    """The options of every generated set."""

    count: int | None = option(
        None, "examples; none: 20,000 for train, 1,000 for validation, 2,000 for test", low=1, high=10**6
    )
    seed: int = option(0, "seed of everything in the examples", low=0)


class GeneratedExamples(Sequence[LabeledExample]):
    """Examples that follow from their places by a rule, each made when it is first read. Equals the tuple of them."""

    def __init__(self, count: int, make: Callable[[int], LabeledExample]) -> None:
        self._make = make
        self._examples: list[LabeledExample | None] = [None] * count

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, index: int) -> LabeledExample: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[LabeledExample, ...]: ...

    def __getitem__(self, index: int | slice) -> LabeledExample | tuple[LabeledExample, ...]:
        places = range(len(self._examples))[index]
        if isinstance(places, range):
            return tuple(self[place] for place in places)
        example = self._examples[places]
        if example is None:
            example = self._examples[places] = self._make(places)
        return example

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (GeneratedExamples, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


def example_count(params: GeneratedParams, split: str, limit: int | None) -> int:
    """The number of examples of a split, at most `limit`."""
    count = params.count or SPLIT_SIZES[split]
    return count if limit is None else min(count, limit)


def draw_balanced(seed: str, count: int, classes: int = 2, repeats: int = 5) -> tuple[int, ...]:
    """Class indices in blocks that hold each class `repeats` times, in random order."""
    random = Random(seed)
    indices: list[int] = []
    while len(indices) < count:
        indices += random.sample([*range(classes)] * repeats, classes * repeats)
    return tuple(indices[:count])


def hash_values(*values: object) -> str:
    """SHA-256 over plain values: the revision of what is made by a rule."""
    return hashlib.sha256(repr(values).encode()).hexdigest()


def make_dataset(
    name: str, params: GeneratedParams, split: str, examples: GeneratedExamples, labels: tuple[str, ...]
) -> Dataset:
    """Generated examples as a data set; without labels its task is regression."""
    card = read_card(name)
    options = {field: value for field, value in asdict(params).items() if value != ANY}
    revision = hash_values(name, VERSION, options, split, len(examples))
    task: DatasetTask = "classification" if labels else "regression"
    return Dataset(name, card.title, task, labels, examples, card, revision, split, exact=True)
