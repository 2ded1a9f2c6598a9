"""The tidy table of attacks, one observation a row, as a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.attacks.findings import Findings
from engine.table_io import to_csv, to_json, to_parquet

COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "objective": str,
    "attacked": str, "outcome": str, "class_kept": bool, "constraint_kept": bool, "start": int,
    "relative_epsilon": float,
}  # fmt: skip
"""`example`: the place in the data set. `attacked`: the method under attack; `method`, whose map is measured, is
another one where it is asked whether the attack transfers. `outcome` and what follows: of the attack, see
`engine.attacks.result.Attacked`; all rows are there, also those that count in no mean."""


def _csv(found: Findings) -> bytes:
    return (to_csv(found.table()) or ",".join(COLUMNS) + "\n").encode()


def _json(found: Findings) -> bytes:
    return to_json(found.table()).encode()


def _parquet(found: Findings) -> bytes:
    return to_parquet(found.table(), COLUMNS)


FORMATS: Mapping[str, Callable[[Findings], bytes]] = {"csv": _csv, "json": _json, "parquet": _parquet}
"""By the ending of the file's name."""
