"""The tidy table of a check, one observation a row, as a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.randomization.result import Randomization
from engine.sheets import as_csv, as_json, as_parquet

COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "mode": str,
    "block": str, "seed": int, "stage": int,
}  # fmt: skip
"""`example`: the place in the data set. `method`: empty of the prediction. `block`: what was randomized last, a number
from 1, "head" or "embeddings". `stage`: its place along the curve, from 1."""


def _csv(found: Randomization) -> bytes:
    return (as_csv(row.as_plain() for row in found.rows) or ",".join(COLUMNS) + "\n").encode()


def _json(found: Randomization) -> bytes:
    return as_json(row.as_plain() for row in found.rows).encode()


def _parquet(found: Randomization) -> bytes:
    return as_parquet((row.as_plain() for row in found.rows), COLUMNS)


FORMATS: Mapping[str, Callable[[Randomization], bytes]] = {"csv": _csv, "json": _json, "parquet": _parquet}
"""By the ending of the file's name."""
