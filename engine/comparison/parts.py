"""Maps of one text on the same parts, whatever the tokenizers: by character offsets, never by the tokens' names.

The parts are the finest pieces of the text that no map cuts in two: where tokenizers agree, their tokens or words;
where they do not, what overlaps is one part, whose score is the sum of its pieces.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from engine.registry import explainer
from engine.request import Example
from engine.result import Explanation
from engine.word_units import BASELINE, Unit, units_of

Span = tuple[int, int, int]
"""The text of a pair that it is in, its first character, and the one after its last."""


@dataclass(frozen=True)
class Part:
    """A piece of the text, or the patch of a picture by its place (`start` to `end` then count patches)."""

    text: str
    start: int
    end: int
    segment: int = 0
    blank: bool = False


@dataclass(frozen=True, eq=False)
class Sheet:
    """The maps of one input on common parts: a row a map, NaN where its model does not read the part.

    White space that some model reads as a token of its own is a part too, so that nothing of a map is lost.
    `joined`: how many parts join pieces that some map has apart. `grid`: rows and columns of a picture's parts.
    """

    parts: tuple[Part, ...]
    scores: Float[np.ndarray, "map part"]
    joined: int = 0
    grid: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.scores.shape[1:] != (len(self.parts),):
            raise ValueError(f"scores: one a part, {len(self.parts)} expected, got shape {self.scores.shape}")
        self.scores.setflags(write=False)

    def unread(self, row: int) -> int:
        """How many parts that map has no score for; white space is often no token, and does not count."""
        return int(np.isnan(self.scores[row, [not part.blank for part in self.parts]]).sum())

    @property
    def blanks(self) -> int:
        """How many parts are white space."""
        return sum(part.blank for part in self.parts)


def text_sheet(maps: Sequence[Explanation], example: Example, unit: str = "word") -> Sheet:
    """The maps of one text by its common tokens or words. Special tokens are left out, and nothing else."""
    drawn = [[one for one in units_of(made, example, unit) if not one.special] for made in maps]
    parts = _parts(drawn, (example.text, example.text_pair or ""))
    placed = [_places(parts, units) for units in drawn]
    rows = [
        _scores(units, places, len(parts), explainer(made.provenance.method).family == BASELINE)
        for made, units, places in zip(maps, drawn, placed, strict=True)
    ]
    scores = np.array(rows, dtype=np.float64).reshape(len(maps), len(parts))
    joined = {at for places in placed for at, pieces in Counter(places).items() if pieces > 1}
    return Sheet(tuple(parts), scores, len(joined))


def _parts(drawn: Iterable[Sequence[Unit]], texts: Sequence[str]) -> list[Part]:
    marks = {span_of(unit): unit.text for units in drawn for unit in units}
    parts: list[Part] = []
    for segment, start, end in sorted(marks):
        before = parts[-1] if parts else None
        if before is not None and before.segment == segment and start < before.end:
            parts[-1] = replace(before, end=max(before.end, end))
        else:
            parts.append(Part("", start, end, segment))
    return [_named(part, texts[part.segment], marks) for part in parts]


def _named(part: Part, text: str, marks: dict[Span, str]) -> Part:
    own = text[part.start : part.end]
    if own.strip():
        return replace(part, text=own)
    return replace(part, text=marks.get(span_of(part), own), blank=True)


def span_of(piece: Unit | Part) -> Span:
    """Where a piece is."""
    return piece.segment, piece.start, piece.end


def _places(parts: Sequence[Part], units: Sequence[Unit]) -> list[int]:
    """The part that each unit is in."""
    exact = {span_of(part): at for at, part in enumerate(parts)}
    starts = [(part.segment, part.start) for part in parts]
    # A token of white space has no characters: it is its own part, and no part of the word that begins there.
    return [exact.get(span_of(unit), bisect_right(starts, (unit.segment, unit.start)) - 1) for unit in units]


def _scores(units: Sequence[Unit], places: Sequence[int], parts: int, by_chance: bool) -> Float[np.ndarray, "part"]:
    scores = np.full(parts, np.nan)
    for unit, at in zip(units, places, strict=True):
        if np.isnan(scores[at]):
            scores[at] = unit.score
        elif not by_chance:
            scores[at] += unit.score
    return _as_ranks(scores) if by_chance else scores


def _as_ranks(scores: Float[np.ndarray, "part"]) -> Float[np.ndarray, "part"]:
    """An order by chance of the parts, 1 for the lowest: summed ranks would put what was joined first."""
    read = np.flatnonzero(np.isfinite(scores))
    ranks = np.full(len(scores), np.nan)
    ranks[read[np.argsort(scores[read], kind="stable")]] = np.arange(1, len(read) + 1)
    return ranks
