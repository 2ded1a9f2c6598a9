"""The examples that are evaluated: drawn by the seed, read a few at a time, since pictures can be large."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from engine.data.examples import LabeledExample
from engine.data.sources import ExampleSource, SourceExample, load_source
from engine.errors import ExegesisError
from engine.evaluation.plan import Plan
from engine.input_kinds import input_kind
from engine.metrics.catalog import METRICS

AT_ONCE = 32
"""Examples that are held, explained and measured together."""
SAMPLE = 0x5A3E
"""Keeps the draw apart from those of methods with the same seed."""


@dataclass(frozen=True)
class Unread:
    """An example that cannot be read, and why."""

    index: int
    why: str


@dataclass(frozen=True)
class Sample:
    """Some examples of a data set, by their places in it: short texts first, so that little of a pass is padding."""

    source: ExampleSource
    indices: tuple[int, ...]

    def groups(self) -> Iterator[list[SourceExample | Unread]]:
        """The examples in order, a few at a time."""
        for start in range(0, len(self.indices), AT_ONCE):
            yield self.read(self.indices[start : start + AT_ONCE])

    def read(self, indices: Sequence[int]) -> list[SourceExample | Unread]:
        """The examples at these places."""
        return [self._one(index) for index in indices]

    def _one(self, index: int) -> SourceExample | Unread:
        try:
            return self.source.read(index)
        except ExegesisError as error:
            return Unread(index, reason(error))


def reason(error: ExegesisError) -> str:
    """In one line, as it is counted."""
    return " ".join(str(error).split())


def sample_of(plan: Plan) -> Sample:
    """The examples of an evaluation: see `drawn_sample`."""
    return drawn_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def drawn_sample(kind: str, dataset: str, split: str | None, examples: int, seed: int) -> Sample:
    """As many examples as asked for, or all there are. Errors: those of reading the data set."""
    source = load_source(kind, dataset, split, tolerant=True)
    if not source.count:
        raise ExegesisError(f"dataset: {source.name} has no examples, so that nothing can be evaluated.")
    chosen = drawn(source.count, examples, seed)
    # Where all are of one length to a model, reading them only to sort them would take long.
    return Sample(
        source, tuple(sorted(chosen, key=partial(_length, source)) if input_kind(kind).varies_in_length else chosen)
    )


def drawn(count: int, examples: int, seed: int) -> list[int]:
    """The places of as many examples as asked for, or of all `count`, rising."""
    chosen: list[int] = np.random.default_rng([SAMPLE, seed]).permutation(count)[:examples].tolist()
    return sorted(chosen)


def _length(source: ExampleSource, index: int) -> int:
    try:
        return source.read(index).input.length
    except ExegesisError:
        return 0  # it is told when its turn comes


def with_metrics(plan: Plan, sample: Sample) -> Plan:
    """The plan with the metrics that the data set allows for, where none are named; sensitivity must be."""
    return plan if plan.metrics else dataclasses.replace(plan, metrics=_suited(sample))


def _suited(sample: Sample) -> tuple[str, ...]:
    known = {"nothing", "removal", "others"}
    if _marked(sample):
        known |= {"marks", "pair"} if sample.source.pairs else {"marks"}
    return tuple(metric.id for metric in METRICS.values() if metric.needs in known and not metric.on_request)


def _marked(sample: Sample) -> bool:
    """Whether any of them says what is true, or what people marked."""
    return any(isinstance(one, SourceExample) and has_marks(one) for group in sample.groups() for one in group)


def has_marks(one: SourceExample) -> bool:
    """Whether the example says what matters in it."""
    if isinstance(one.example, LabeledExample):
        return bool(one.example.rationale or one.example.rationale_pair)
    return one.example.mask is not None
