"""The examples of an experiment: drawn with the seed, read a few at a time, and processed with failures isolated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from engine.data.examples import LabeledExample
from engine.data.sources import ExampleSource, SourceExample, load_source
from engine.errors import Cancelled, ExegesisError, one_line
from engine.input_kinds import input_kind

GROUP_SIZE = 32
"""Number of examples that are held, explained and measured together, since pictures can be large."""
DRAW = 0x5A3E
"""Separates the draw from those of methods with the same seed."""
HALF = 0x7C1A
"""Separates the draw of the training half from others with the same seed."""
Given = TypeVar("Given")
Result = TypeVar("Result")


@dataclass(frozen=True)
class UnreadableExample:
    """An example that cannot be read, with the reason."""

    index: int
    why: str


@dataclass(frozen=True)
class Sample:
    """Examples of a data set by index, short texts first, to keep padding small."""

    source: ExampleSource
    indices: tuple[int, ...]

    def groups(self) -> Iterator[list[SourceExample | UnreadableExample]]:
        """Yield the examples in order, a few at a time."""
        for start in range(0, len(self.indices), GROUP_SIZE):
            yield self.read(self.indices[start : start + GROUP_SIZE])

    def read(self, indices: Sequence[int]) -> list[SourceExample | UnreadableExample]:
        """Return the examples at these indices."""
        return [self._read(index) for index in indices]

    def _read(self, index: int) -> SourceExample | UnreadableExample:
        try:
            return self.source.read(index)
        except ExegesisError as error:
            return UnreadableExample(index, one_line(error))


def draw_sample(kind: str, dataset: str, split: str | None, examples: int, seed: int) -> Sample:
    """Draw that many examples, or all if there are fewer. Errors: those of reading the data set; it is empty."""
    source = load_source(kind, dataset, split, tolerant=True)
    if not source.count:
        raise ExegesisError(f"dataset: {source.name} has no examples, so nothing can be evaluated.")
    chosen = draw_indices(source.count, examples, seed)
    # If all inputs have the same length for a model, reading them only to sort them would waste time.
    return Sample(
        source, tuple(sorted(chosen, key=partial(_length, source)) if input_kind(kind).varies_in_length else chosen)
    )


def draw_indices(count: int, examples: int, seed: int) -> list[int]:
    """Draw the indices of that many examples, or of all `count`, in ascending order."""
    chosen: list[int] = np.random.default_rng([DRAW, seed]).permutation(count)[:examples].tolist()
    return sorted(chosen)


def training_half(indices: Sequence[int], seed: int) -> frozenset[int]:
    """Draw half of the examples, by index, with the seed: choices made on them are measured on the other half."""
    order = np.random.default_rng([HALF, seed]).permutation(sorted(indices))
    return frozenset(int(index) for index in order[: len(order) // 2])


def _length(source: ExampleSource, index: int) -> int:
    try:
        return source.read(index).input.length
    except ExegesisError:
        return 0  # the error is reported when the example's turn comes


def has_marks(one: SourceExample) -> bool:
    """Whether the example has marks of what matters in it: ground truth, or marks by people."""
    if isinstance(one.example, LabeledExample):
        return bool(one.example.rationale or one.example.rationale_pair)
    return one.example.mask is not None


def bisect_failures(
    work: Callable[[list[Given]], Sequence[Result]], given: list[Given]
) -> list[Result | ExegesisError]:  # fmt: skip
    """Return the results of `work` on all items together; for items that make it fail the error, found by bisection."""
    if not given:
        return []
    try:
        return list(work(given))
    except Cancelled:
        raise
    except ExegesisError as error:
        if len(given) == 1:
            return [error]
        middle = len(given) // 2
        return [*bisect_failures(work, given[:middle]), *bisect_failures(work, given[middle:])]
