"""A labelled example and a data set: frozen, validated, free of any model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, overload

from engine.data.cards import Card
from engine.errors import UsageError, shown
from engine.request import Example

Span = tuple[int, int]
Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class LabelledExample:
    """One text or pair with its label and the words that a human marked as the reason.

    Spans are [start, end) in characters (Unicode code points), in order, never overlapping. `label` is a
    class index, a score for regression, or None where it is not known.
    """

    text: str
    text_pair: str | None = None
    label: int | float | None = None
    rationale: tuple[Span, ...] = ()
    rationale_pair: tuple[Span, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rationale", checked_spans("rationale", self.rationale, self.text))
        pair = checked_spans("rationale_pair", self.rationale_pair, self.text_pair)
        object.__setattr__(self, "rationale_pair", pair)

    @property
    def example(self) -> Example:
        """What a request asks about: the texts alone."""
        return Example(self.text, self.text_pair)


class Drawn(Sequence[LabelledExample]):
    """Examples that a rule makes, each from its place alone: made when it is first read. Equals the tuple of them."""

    def __init__(self, count: int, draw: Callable[[int], LabelledExample]) -> None:
        self._draw = draw
        self._found: list[LabelledExample | None] = [None] * count

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, index: int) -> LabelledExample: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[LabelledExample, ...]: ...

    def __getitem__(self, index: int | slice) -> LabelledExample | tuple[LabelledExample, ...]:
        places = range(len(self._found))[index]
        if isinstance(places, range):
            return tuple(self[place] for place in places)
        found = self._found[places]
        if found is None:
            found = self._found[places] = self._draw(places)
        return found

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (Drawn, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True)
class Dataset:
    """Examples of one task under one id. `revision` is the SHA-256 of the content they were read from.

    `exact`: the examples, all alike, and their rationales follow from a rule; else somebody marked them. `faults`: why
    rows are no examples, by their places among all rows; none unless the set was loaded in spite of them.
    """

    id: str
    title: str
    task: Task
    label_names: tuple[str, ...]
    examples: Sequence[LabelledExample]
    card: Card
    revision: str
    split: str = "all"
    notes: tuple[str, ...] = ()
    exact: bool = False
    faults: Mapping[int, str] = field(default_factory=dict, hash=False)

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> LabelledExample:
        if type(index) is not int or not 0 <= index < len(self.examples):
            raise UsageError(f"index: must be 0 to {len(self.examples) - 1} in {self.id}, got {shown(index)}.")
        return self.examples[index]

    @property
    def pairs(self) -> bool:
        """Whether the examples are text pairs."""
        some = self.examples[:1] if self.exact else self.examples
        return any(example.text_pair is not None for example in some)


def checked_spans(name: str, spans: object, text: str | None) -> tuple[Span, ...]:
    """The spans in order, each inside its text, none empty, reversed or overlapping."""
    pairs = sorted(_span(name, span) for span in _listed(name, spans))
    if pairs and text is None:
        raise UsageError(f"{name}: marks a text_pair, but there is none. Add text_pair or drop {name}.")
    for start, end in pairs:
        _check_inside(name, start, end, len(text or ""))
    _check_apart(name, pairs)
    return tuple(pairs)


def _listed(name: str, spans: object) -> Iterable[object]:
    if not isinstance(spans, Sequence) or isinstance(spans, str):
        raise UsageError(f"{name}: must be a list of [start, end] pairs, got {shown(spans)}.")
    return spans


def _span(name: str, span: object) -> Span:
    if isinstance(span, (list, tuple)) and len(span) == 2 and all(type(value) is int for value in span):
        return int(span[0]), int(span[1])
    raise UsageError(f"{name}: a span must be two whole numbers [start, end], got {shown(span)}.")


def _check_inside(name: str, start: int, end: int, length: int) -> None:
    if start >= end:
        raise UsageError(f"{name}: a span must end after it starts, got [{start}, {end}].")
    if start < 0 or end > length:
        raise UsageError(f"{name}: [{start}, {end}] lies outside its text of {length} characters.")


def _check_apart(name: str, pairs: Sequence[Span]) -> None:
    for (a, b), (c, d) in pairwise(pairs):
        if c < b:
            raise UsageError(f"{name}: [{a}, {b}] and [{c}, {d}] overlap. Join them or move one.")
