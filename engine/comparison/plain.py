"""A comparison as plain values: what `exegesis compare --json` prints and the page saves."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.comparison.agreeing import How, agreements, apart, by_chance
from engine.comparison.parts import Sheet
from engine.comparison.search import Disputed, Left, Search
from engine.metrics.agreement import MEASURES
from engine.result import Explanation
from engine.serialization import explanation_to_json as explanation_as_plain


def as_plain(
    codes: Sequence[str], made: Sequence[Explanation], sheet: Sheet, how: How, failed: Mapping[str, str]
) -> dict[str, Any]:
    """Columns in full, their scores on common parts, how every two agree by both measures; null where there is none.

    `codes`: the columns that have a map. `failed`: why the others have none, by their codes.
    """
    found = {measure: agreements(sheet.scores, codes, How(measure, how.order, how.percent))
             for measure in MEASURES}  # fmt: skip
    first = found[MEASURES[0]]
    return {
        "columns": [{"column": code, **explanation_as_plain(one)} for code, one in zip(codes, made, strict=True)],
        "failed": [{"column": code, "error": why} for code, why in failed.items()],
        "grid": None if sheet.grid is None else list(sheet.grid),
        "joined": sheet.joined,
        "parts": [
            {"text": part.text, "start": part.start, "end": part.end, "segment": part.segment, "scores": numbers(row)}
            for part, row in zip(sheet.parts, sheet.scores.T, strict=True)
        ],
        "agreement": {
            "order": how.order,
            "n": first.n,
            "k": first.k,
            **{measure: [numbers(row) for row in one.values] for measure, one in found.items()},
            "without_order": list(first.constant),
        },
        "disagreement": {measure: apart(one, by_chance=by_chance(made)) for measure, one in found.items()},
    }


def numbers(values: np.ndarray) -> list[float | None]:
    """Numbers in full, None for what is not there."""
    return [None if np.isnan(value) else float(value) for value in values]


def search_as_plain(search: Search, found: Sequence[Disputed], left: Sequence[Left] = ()) -> dict[str, Any]:
    """The examples of a search, most disagreement first, and what is left out of it."""
    rows = [
        {"index": one.index, "example": one.name, "disagreement": one.value, "predicted": list(one.predicted)}
        for one in found
    ]
    return {**search.as_plain(), "found": rows, "left_out": [dataclasses.asdict(one) for one in left]}
