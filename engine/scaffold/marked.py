"""Examples as a teacher reads them, with what is known to matter in them: words, or patches of a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.data.examples import ImageExample, LabeledExample
from engine.data.sources import ExampleSource, SourceExample
from engine.errors import ExegesisError
from engine.evaluation.sample import has_marks, reason
from engine.metrics.catalog import SIDES
from engine.metrics.plausibility import (
    CUT_OFF,
    NOTHING,
    UNMARKED_TRUTH,
    is_cut_off,
    marks_of_picture,
    marks_of_text,
    roc_auc,
    segments,
    skip_reason,
)
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.progress import check_cancelled
from engine.word_units import units

BOTH = ""
"""All of an example, where it is a pair both texts."""


@dataclass(frozen=True, eq=False)
class Marked:
    """An example that can be judged. `groups`: of which positions each word is made; a patch is one by itself.

    `segments`: in which text each word stands, 0 the first.
    """

    place: int
    coded: EncodedInput
    groups: Bool[np.ndarray, "unit seq"]
    marks: Bool[np.ndarray, "unit"]
    segments: Int[np.ndarray, "unit"]

    def summed(self, maps: Float[np.ndarray, "map seq"]) -> Float[np.ndarray, "map unit"]:
        """The score of a word is the sum of its tokens' (SMaT, appendix A)."""
        return maps.astype(np.float64) @ self.groups.T

    def auc(self, maps: Float[np.ndarray, "map seq"], side: str) -> Float[np.ndarray, "map"]:
        """How often a marked unit is above an unmarked one, 0 to 1. Errors: one of the two is missing (`why_not`)."""
        inside = self.inside(side)
        return np.array([roc_auc(scores[inside], self.marks[inside]) for scores in self.summed(maps)])

    def inside(self, side: str) -> Bool[np.ndarray, "unit"]:
        """Which units belong to a side of the pair; all where it is both."""
        return self.segments == SIDES[side] if side else np.ones(len(self.marks), dtype=bool)

    def why_not(self, side: str) -> str | None:
        """Why the side cannot be judged; None where it can."""
        why = skip_reason(self.marks[self.inside(side)])
        return why if why is None or not side else f"{why} in the {side} text"


def sides_of(source: ExampleSource) -> tuple[str, ...]:
    """What is judged by itself: the whole and, of pairs, either text."""
    return (BOTH, *SIDES) if source.pairs else (BOTH,)


def read_marked(
    teacher: AnyClassifier, source: ExampleSource, places: Sequence[int]
) -> tuple[tuple[Marked, ...], Mapping[str, int]]:
    """Those of the examples that can be judged, and how many cannot, by the reason."""
    found: list[Marked] = []
    skipped: Counter[str] = Counter()
    for place in places:
        check_cancelled()
        try:
            one = _one(teacher, source.read(place))
        except ExegesisError as error:
            one = reason(error)
        if isinstance(one, str):
            skipped[one] += 1
        else:
            found.append(one)
    return tuple(found), dict(skipped)


def _one(teacher: AnyClassifier, candidate: SourceExample) -> Marked | str:
    if not has_marks(candidate):
        return NOTHING if isinstance(candidate.example, LabeledExample) else UNMARKED_TRUTH
    coded = teacher.encode(candidate.input)
    text = isinstance(candidate.example, LabeledExample)
    made = _of_text(coded, candidate) if text else _of_picture(teacher, coded, candidate)
    return made if isinstance(made, str) else skip_reason(made.marks) or made


def _of_text(coded: EncodedInput, candidate: SourceExample) -> Marked | str:
    given = candidate.example
    assert isinstance(given, LabeledExample)
    if is_cut_off(coded, given):
        return CUT_OFF
    drawn = units(coded.tokens, np.zeros(len(coded)), given.example, "word")
    groups = _rows([one.tokens for one in drawn if not one.special], len(coded))
    marks = marks_of_text(coded, given, "word")
    return Marked(candidate.index, coded, groups, marks, np.array(segments(coded, given, "word"), dtype=int))


def _of_picture(teacher: AnyClassifier, coded: EncodedInput, candidate: SourceExample) -> Marked:
    given = candidate.example
    assert isinstance(given, ImageExample)
    marks = marks_of_picture(teacher.id, given)
    assert marks is not None
    groups = _rows([(position,) for position in coded.features.tolist()], len(coded))
    return Marked(candidate.index, coded, groups, marks, np.zeros(len(marks), dtype=int))


def _rows(groups: Sequence[Sequence[int]], length: int) -> Bool[np.ndarray, "unit seq"]:
    made = np.zeros((len(groups), length), dtype=bool)
    for row, positions in zip(made, groups, strict=True):
        row[list(positions)] = True
    return made
