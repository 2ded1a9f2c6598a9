"""Scores of heads as plain values: the contract of `exegesis heads --json`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from engine.serialization import prediction_to_json

if TYPE_CHECKING:
    from engine.heads.readings import HeadTable


def heads_as_plain(table: HeadTable, most: int | None = None) -> dict[str, Any]:
    """One object: what was read, what each score means, and a row a head; `most`: the largest by the first score.

    Layers and heads count from 0. A score that a head does not have is null.
    """
    of = table.reading.of
    origin = of.provenance
    return {
        "model": origin.model,
        "revision": origin.revision,
        "prediction": prediction_to_json(of),
        "target": origin.target_label,
        "scores": {name: _meaning(table, name) for name in table.columns},
        "against": _compared(table),
        "rows": [_row(table, *head) for head in (table.heads if most is None else table.ranked[:most])],
        "cached": table.reading.cached,
        "dtype": origin.dtype,
        "device": origin.device,
        **({"heads": [list(head) for head in origin.heads]} if origin.heads else {}),
        "truncated": of.truncated,
        "notes": list(of.notes),
    }


def _meaning(table: HeadTable, name: str) -> dict[str, Any]:
    score = table.score(name)
    return {"title": score.title, "unit": score.unit, "signed": score.signed, "citation": score.citation}


def _compared(table: HeadTable) -> dict[str, Any] | None:
    """The attribution that maps were compared with.

    `query`: whose attention they are, null for the mean over the queries that may attend.
    """
    if table.against is None:
        return None
    origin = table.against.provenance
    told = {"method": origin.method, "version": origin.version, "params": dict(origin.params), "seed": origin.seed}
    return {**told, "query": table.query}


def _row(table: HeadTable, layer: int, head: int) -> dict[str, Any]:
    values = {name: _number(column[layer, head]) for name, column in table.columns.items()}
    flipped = {} if table.flipped is None else {"flipped": bool(table.flipped[layer, head])}
    return {"layer": layer, "head": head, **values, **flipped}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
