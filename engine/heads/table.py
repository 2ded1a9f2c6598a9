"""A table of all heads with their scores side by side, and as JSON: the contract of `exegesis heads --json`."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from engine.errors import UsageError, not_allowed, unknown
from engine.explain import explain
from engine.heads.readings import HeadReading, read_heads, switch_off_each
from engine.heads.scores import AGREEMENT, AGREES, OFF, SCORES, HeadScore, PerHead, agreement_with
from engine.progress import Report, reporting, silent
from engine.request import Request
from engine.result import Explanation
from engine.serialization import prediction_to_json

TABLE_SCORES = (*SCORES, AGREEMENT)
DEFAULT_SCORES = ("importance", OFF, "distance", "entropy", "special")
"""Scores that matter for the prediction come first."""
CAUTION = (
    "Attention alone is not an explanation (Jain and Wallace, 2019): what a head attends to may not matter for the "
    "prediction. Check its importance, its fall when switched off, and its agreement with an attribution."
)


@dataclass(frozen=True)
class HeadTableQuery:
    """The scores of a table. `against`: the method that maps are compared with. `query`: whose attention the maps are.

    Without a query they are what features receive on average.
    """

    scores: tuple[str, ...] = DEFAULT_SCORES
    against: str = ""
    query: int | None = None

    def __post_init__(self) -> None:
        for name in self.scores:
            if name not in TABLE_SCORES:
                raise unknown("score", name, TABLE_SCORES)
        if not self.against and AGREEMENT in self.scores:
            raise UsageError("against: is missing; the score 'agreement' needs a method, such as integrated_gradients.")


@dataclass(frozen=True, eq=False)
class HeadTable:
    """Every head with its scores side by side, by their ids in the order of the query; NaN for a head without one."""

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
        """The heads by the size of the first score, the largest first; a head without a value comes last."""
        first = np.abs(next(iter(self.columns.values()))).ravel()
        return [self.heads[at] for at in np.argsort(-first, kind="stable")]  # NaN is sorted to the end

    def score(self, name: str) -> HeadScore:
        """The description of a column. Of a regression head the prediction that changes is its score."""
        if name == AGREEMENT:
            return AGREES
        regression = name == OFF and self.reading.explanation.prediction.regression
        return dataclasses.replace(SCORES[name], unit="score") if regression else SCORES[name]


def head_table(
    request: Request, query: HeadTableQuery | None = None, report: Report = silent, reading: HeadReading | None = None
) -> HeadTable:
    """The scores of every head on the request's example and class, its heads so scaled.

    The request's method does not matter, its seed is that of the attribution. `reading`: where it is at hand.
    """
    query = query or HeadTableQuery()
    flipped = attribution = None
    with reporting(report):
        reading = reading or read_heads(request)
        n = len(reading.explanation.tokens)
        if query.query is not None and not 0 <= query.query < n:
            raise not_allowed("query", f"a position from 0 to {n - 1} of this input", query.query)
        scores = dict(reading.scores)
        if OFF in query.scores:
            ablation = switch_off_each(request, report)
            scores[OFF], flipped = ablation.fall, ablation.flipped
        if AGREEMENT in query.scores:
            attribution = explain(dataclasses.replace(request, method=query.against, params={}))
            own = attribution.scores[attribution.features]
            scores[AGREEMENT] = agreement_with(reading.received(query.query), own)
    return HeadTable(reading, {name: scores[name] for name in query.scores}, flipped, attribution, query.query)


def head_table_to_json(table: HeadTable, limit: int | None = None) -> dict[str, Any]:
    """The reading's provenance, the meaning of each score, and a row a head; `limit`: the largest by the first score.

    Layers and heads count from 0. A score that a head does not have is null.
    """
    explanation = table.reading.explanation
    origin = explanation.provenance
    return {
        "model": origin.model,
        "revision": origin.revision,
        "prediction": prediction_to_json(explanation),
        "target": origin.target_label,
        "scores": {name: _score_to_json(table, name) for name in table.columns},
        "against": _attribution_to_json(table),
        "rows": [_row_to_json(table, *head) for head in (table.heads if limit is None else table.ranked[:limit])],
        "cached": table.reading.cached,
        "dtype": origin.dtype,
        "device": origin.device,
        **({"heads": [list(head) for head in origin.heads]} if origin.heads else {}),
        "truncated": explanation.truncated,
        "notes": list(explanation.notes),
    }


def _score_to_json(table: HeadTable, name: str) -> dict[str, Any]:
    score = table.score(name)
    return {"title": score.title, "unit": score.unit, "signed": score.signed, "citation": score.citation}


def _attribution_to_json(table: HeadTable) -> dict[str, Any] | None:
    """The attribution that maps were compared with.

    `query`: the position whose attention they are, null for the mean over the queries that may attend.
    """
    if table.against is None:
        return None
    origin = table.against.provenance
    return {
        "method": origin.method, "version": origin.version, "params": dict(origin.params), "seed": origin.seed,
        "query": table.query,
    }  # fmt: skip


def _row_to_json(table: HeadTable, layer: int, head: int) -> dict[str, Any]:
    columns = {name: float(column[layer, head]) for name, column in table.columns.items()}
    values = {name: None if math.isnan(value) else value for name, value in columns.items()}
    flipped = {} if table.flipped is None else {"flipped": bool(table.flipped[layer, head])}
    return {"layer": layer, "head": head, **values, **flipped}
