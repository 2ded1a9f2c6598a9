"""The tidy table of attacks, one observation a row, as a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.attacks.findings import Findings
from engine.sheets import as_csv, as_json, as_parquet

COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "objective": str,
    "attacked": str,
}  # fmt: skip
"""`example`: the place in the data set. `attacked`: the method under attack; `method`, whose map is measured, is
another one where it is asked whether the attack transfers."""


def _csv(found: Findings) -> bytes:
    return (as_csv(row.as_plain() for row in found.rows) or ",".join(COLUMNS) + "\n").encode()


def _json(found: Findings) -> bytes:
    return as_json(row.as_plain() for row in found.rows).encode()


def _parquet(found: Findings) -> bytes:
    return as_parquet((row.as_plain() for row in found.rows), COLUMNS)


FORMATS: Mapping[str, Callable[[Findings], bytes]] = {"csv": _csv, "json": _json, "parquet": _parquet}
"""By the ending of the file's name."""
