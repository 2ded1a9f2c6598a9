"""The examples of a data set on which models and methods disagree most: all maps of a sample, read or made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import serialization
from engine.comparison.agreeing import How, agreements, apart, by_chance
from engine.comparison.pairs import Pair, check_pairs, read_pair
from engine.comparison.parts import Sheet, text_sheet
from engine.data.sources import ExampleSource, SourceExample, load_source
from engine.errors import ExegesisError, not_allowed, unknown
from engine.evaluation.sample import drawn, reason
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.registry import KINDS
from engine.request import Example, Input, Picture, Request
from engine.result import Explanation
from engine.store import result_store

if TYPE_CHECKING:
    from engine.comparison.patches import Box

EXAMPLES = 50
AT_ONCE = 16


@dataclass(frozen=True)
class Search:
    """`pairs` are explained on `examples` of the data set, drawn by the seed. `target`: the class that all explain, by
    its label; None is each model's own predicted class.
    """

    dataset: str
    pairs: tuple[Pair, ...]
    kind: str = "text"
    split: str | None = None
    examples: int = EXAMPLES
    seed: int = 0
    target: str | None = None

    def __post_init__(self) -> None:
        check_pairs(self.pairs)
        if self.kind not in KINDS:
            raise unknown("kind", self.kind, KINDS)
        if type(self.examples) is not int or self.examples < 1:
            raise not_allowed("examples", "a whole number of at least 1", self.examples)

    def as_plain(self) -> dict[str, Any]:
        """What a compare job is submitted with."""
        plain: dict[str, Any] = {"dataset": self.dataset, "pairs": [pair.code for pair in self.pairs]}
        plain |= {"kind": self.kind, "examples": self.examples, "seed": self.seed}
        others = {"split": self.split, "target": self.target}
        return plain | {name: value for name, value in others.items() if value is not None}

    def requests(self, example: Input) -> list[Request]:
        """What is asked of the engine for one example."""
        return [pair.request(example, self.target, self.seed) for pair in self.pairs]


@dataclass(frozen=True)
class Disputed:
    """An example by its place. `value`: how much the maps disagree (`agreeing.apart`), None where no two have an order.

    `predicted`: the class that each pair's model predicts, None where there is no map; `maps` are there.
    """

    index: int
    name: str
    value: float | None
    predicted: tuple[str | None, ...]

    @property
    def maps(self) -> int:
        return sum(label is not None for label in self.predicted)

    @property
    def labels_differ(self) -> bool:
        return len(set(self.predicted) - {None}) > 1


@dataclass(frozen=True)
class Left:
    """An example, or one column's map of it, that is left out. `column`: the pair's code, None where it is all."""

    index: int
    column: str | None
    why: str


Tell = Callable[[Left], None]


def read_search(spec: Mapping[str, Any]) -> Search:
    """The search that a specification of plain values names."""
    kind = spec.get("kind", KINDS[0])
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    return Search(**{**spec, "pairs": tuple(read_pair(code, kind) for code in spec["pairs"])})


def sample(search: Search) -> tuple[ExampleSource, list[int]]:
    """The data set, and the places of the examples that are compared. What is no example fails when it is read."""
    source = load_source(search.kind, search.dataset, search.split, tolerant=True)
    return source, drawn(source.count, search.examples, search.seed)


def disputed(
    search: Search, how: How, unit: str = "word", reference: int | None = None, made: bool = True,
    report: Report = silent, cancel: CancelToken | None = None, tell: Tell = lambda left: None,
) -> list[Disputed]:  # fmt: skip
    """The examples of which at least two maps are there, those with most disagreement first.

    `made`: maps that are missing are made; else only what the cache holds is read. `tell` hears of rows and maps that
    fail and are left out.
    """
    source, indices = sample(search)
    found: list[Disputed] = []
    with cancellable(cancel):
        for start in range(0, len(indices), AT_ONCE):
            check_cancelled()
            report(start, len(indices), "examples")
            group = list(_read(source, indices[start : start + AT_ONCE], tell))
            found += _group(search, group, how, unit, reference, made, tell)
    return sorted(found, key=lambda one: (one.value is None, -(one.value or 0.0), one.index))


def sheet_of(maps: Sequence[Explanation], example: Input, unit: str) -> Sheet:
    """The maps of one text or picture on common parts."""
    if isinstance(example, Example):
        return text_sheet(maps, example, unit)
    from engine.comparison.patches import picture_sheet

    assert isinstance(example, Picture)
    return picture_sheet(maps, [_box(made.provenance.model, example) for made in maps])


def _box(model: str, picture: Picture) -> Box:
    from engine.comparison.patches import seen_box
    from engine.vision.view import read_view

    height, width, _ = picture.pixels.shape
    return seen_box(read_view(model), height, width)


def _read(source: ExampleSource, indices: Sequence[int], tell: Tell) -> Iterator[SourceExample]:
    for index in indices:
        try:
            one = source.read(index)
            one.input.check_length()
            yield one
        except ExegesisError as error:
            tell(Left(index, None, reason(error)))


def _group(
    search: Search, group: Sequence[SourceExample], how: How, unit: str, reference: int | None, made: bool, tell: Tell
) -> Iterator[Disputed]:
    asked = [request for one in group for request in search.requests(one.input)]
    answers = _answers(asked, made)
    width = len(search.pairs)
    for place, one in enumerate(group):
        own = answers[width * place : width * (place + 1)]
        for pair, answer in zip(search.pairs, own, strict=True):
            if isinstance(answer, str):
                tell(Left(one.index, pair.code, answer))
        maps = [None if isinstance(answer, str) else answer for answer in own]
        if sum(answer is not None for answer in maps) > 1:
            yield _compared(one, maps, how, unit, reference)


def _compared(
    one: SourceExample, maps: Sequence[Explanation | None], how: How, unit: str, reference: int | None
) -> Disputed:
    there = {place: answer for place, answer in enumerate(maps) if answer is not None}
    drawn_by = list(there.values())
    sheet = sheet_of(drawn_by, one.input, unit)
    found = agreements(sheet.scores, [str(place) for place in there], how)
    pinned = list(there).index(reference) if reference in there else None
    value = None if reference is not None and pinned is None else apart(found, pinned, by_chance(drawn_by))
    return Disputed(one.index, _name(one), value, tuple(_said(answer) for answer in maps))


def _said(answer: Explanation | None) -> str | None:
    if answer is None:
        return None
    return f"{answer.prediction.logits[0]:.3g}" if answer.prediction.regression else answer.prediction.label


def _name(one: SourceExample) -> str:
    if isinstance(one.input, Example):
        return " / ".join(text for text in (one.input.text, one.input.text_pair) if text is not None)
    return str(getattr(one.example, "name", "") or one.label or f"picture {one.index}")


def _answers(asked: Sequence[Request], made: bool) -> list[Explanation | str | None]:
    """Explanations, or why one fails; None for what is not made yet."""
    from engine.explain import explain_many

    if made:
        try:
            return list(explain_many(asked))
        except ExegesisError:
            return [_one(request) for request in asked]
    return [_kept(request) for request in asked]


def _one(request: Request) -> Explanation | str:
    from engine.errors import Cancelled
    from engine.explain import explain

    try:
        return explain(request)
    except Cancelled:
        raise
    except ExegesisError as error:
        return reason(error)


def _kept(request: Request) -> Explanation | None:
    from engine.explain import key_of

    try:
        entry = result_store().get(key_of(request))
    except ExegesisError:
        return None
    return None if entry is None else serialization.unpack(*entry)
