"""The tidy table of an evaluation, one observation a row, as a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.evaluation.result import Evaluation
from engine.table_io import to_csv, to_json, to_parquet

COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "against": str,
    "percent": int,
}  # fmt: skip
"""`example`: the place in the data set. `against`: the other method, of agreement. `percent`: along a curve."""


def _csv(found: Evaluation) -> bytes:
    return (to_csv(row.as_plain() for row in found.rows) or ",".join(COLUMNS) + "\n").encode()


def _json(found: Evaluation) -> bytes:
    return to_json(row.as_plain() for row in found.rows).encode()


def _parquet(found: Evaluation) -> bytes:
    return to_parquet((row.as_plain() for row in found.rows), COLUMNS)


FORMATS: Mapping[str, Callable[[Evaluation], bytes]] = {"csv": _csv, "json": _json, "parquet": _parquet}
"""By the ending of the file's name."""
