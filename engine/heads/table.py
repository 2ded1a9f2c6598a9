"""Every head with its scores side by side: what is read from its attention, and what takes more passes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from engine.errors import UsageError, not_allowed, unknown
from engine.explain import explain
from engine.heads.reading import HeadReading, read_heads
from engine.heads.scores import AGREEMENT, AGREES, OFF, SCORES, HeadScore, PerHead, agreement_with
from engine.heads.switching import switch_off_each
from engine.progress import Report, reporting, silent
from engine.request import Request
from engine.result import Explanation

NAMES = (*SCORES, AGREEMENT)
USUAL = ("importance", OFF, "distance", "entropy", "special")
"""What matters for the prediction comes first."""
CAUTION = (
    "Attention is no explanation by itself (Jain and Wallace, 2019): what a head looks at need not matter for the "
    "prediction. Importance, the fall when switched off and the agreement with an attribution say whether it does."
)


@dataclass(frozen=True)
class Asked:
    """Which scores. `against`: the method that maps are compared with. `query`: whose attention the maps are.

    Without a query they are what features receive on average.
    """

    scores: tuple[str, ...] = USUAL
    against: str = ""
    query: int | None = None

    def __post_init__(self) -> None:
        for name in self.scores:
            if name not in NAMES:
                raise unknown("score", name, NAMES)
        if not self.against and AGREEMENT in self.scores:
            raise UsageError("against: is missing; the score 'agreement' needs a method, such as integrated_gradients.")


@dataclass(frozen=True, eq=False)
class HeadTable:
    """The scores that were asked for, by their ids in the order asked; NaN for a head that has none."""

    reading: HeadReading
    columns: dict[str, PerHead]
    flipped: Bool[np.ndarray, "layer head"] | None = None
    """Whether another class is predicted without the head, where each was switched off."""
    against: Explanation | None = None
    """The attribution that maps were compared with."""
    query: int | None = None

    @property
    def heads(self) -> list[tuple[int, int]]:
        """Layer and head of each row, by place."""
        return [(int(layer), int(head)) for layer, head in np.ndindex(self.reading.slope.shape)]

    @property
    def ranked(self) -> list[tuple[int, int]]:
        """The same by the size of the first score, the largest first; a head without a value comes last."""
        first = np.abs(next(iter(self.columns.values()))).ravel()
        return [self.heads[at] for at in np.argsort(-first, kind="stable")]  # NaN is sorted to the end

    def score(self, name: str) -> HeadScore:
        """What a column says. Of a regression head the answer that changes is its score."""
        if name == AGREEMENT:
            return AGREES
        regression = name == OFF and self.reading.of.prediction.regression
        return replace(SCORES[name], unit="score") if regression else SCORES[name]


def head_table(
    request: Request, asked: Asked | None = None, report: Report = silent, reading: HeadReading | None = None
) -> HeadTable:
    """The scores of every head on the request's example and class, its heads so scaled.

    The request's method does not matter, its seed is that of the attribution. `reading`: where it is at hand.
    """
    asked = asked or Asked()
    with reporting(report):
        reading = reading or read_heads(request)
        _check_query(asked.query, reading)
        off = switch_off_each(request, report) if OFF in asked.scores else None
        made = explain(replace(request, method=asked.against, params={})) if AGREEMENT in asked.scores else None
    found = dict(reading.scores)
    if off is not None:
        found[OFF] = off.fall
    if made is not None:
        found[AGREEMENT] = agreement_with(reading.received(asked.query), made.scores[made.features])
    columns = {name: found[name] for name in asked.scores}
    return HeadTable(reading, columns, None if off is None else off.flipped, made, asked.query)


def _check_query(query: int | None, reading: HeadReading) -> None:
    n = len(reading.of.tokens)
    if query is not None and not 0 <= query < n:
        raise not_allowed("query", f"a position from 0 to {n - 1} of this input", query)
