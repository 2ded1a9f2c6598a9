"""What is known to matter in an input, or what people marked in it, as a yes or no for each unit that is ranked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool

from engine.data.examples import LabelledExample, Span
from engine.data.images.examples import ImageExample
from engine.result import Token
from engine.vision.view import view_of
from engine.words import Unit, units

Marks = Bool[np.ndarray, "unit"]

NOTHING = "nothing is marked"
ALL = "everything is marked"
CUT_OFF = "marked words lie beyond what the model reads"
UNMARKED_TRUTH = "the data set does not say what matters"


@runtime_checkable
class Read(Protocol):
    """A text as a model read it: an explanation of it, or what the explanation is made from.

    `truncated`: tokens that did not fit.
    """

    @property
    def tokens(self) -> Sequence[Token]: ...

    @property
    def truncated(self) -> int: ...


def rankable(made: Read, labelled: LabelledExample, unit: str) -> list[Token | Unit]:
    """The tokens or words in the order of their scores in `engine.words.unit_scores`."""
    if unit == "token":
        return [token for token in made.tokens if not token.special]
    drawn = units(made.tokens, np.zeros(len(made.tokens)), labelled.example, unit)
    return [one for one in drawn if not one.special]


def marks_of_text(made: Read, labelled: LabelledExample, unit: str = "token") -> Marks:
    """Units that share a character with a marked span of their own text."""
    return np.array([touched(one, spans_of(labelled, one.segment)) for one in rankable(made, labelled, unit)])


def marks_of_picture(model: str, example: ImageExample) -> Marks | None:
    """The patches that belong to the mask, row by row; None where the picture has none."""
    return None if example.mask is None else view_of(model).patches(example.mask).ravel()


def segments(made: Read, labelled: LabelledExample, unit: str) -> list[int]:
    """In which text each unit stands: 0 the first, 1 the second."""
    return [one.segment for one in rankable(made, labelled, unit)]


def touched(unit: Token | Unit, spans: Sequence[Span]) -> bool:
    """Whether a unit shares a character with one of the spans of its text."""
    return any(unit.start < end and start < unit.end for start, end in spans)


def spans_of(labelled: LabelledExample, segment: int) -> Sequence[Span]:
    """What is marked in the first or the second text."""
    return (labelled.rationale, labelled.rationale_pair)[segment]


def cut_off(made: Read, labelled: LabelledExample) -> bool:
    """Whether a marked span lies, whole or in part, in what was too long for the model to read."""
    if not made.truncated:
        return False
    ends = [max((t.end for t in made.tokens if t.segment == segment), default=0) for segment in (0, 1)]
    return any(end > ends[segment] for segment in (0, 1) for _, end in spans_of(labelled, segment))


def undecided(marks: Marks) -> str | None:
    """Why no map can be held against these marks; None where one can."""
    if not marks.any():
        return NOTHING
    return ALL if marks.all() else None
