"""Tables as files: CSV for spreadsheets, JSON, and Parquet for much data."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from engine.cells import defused

Row = Mapping[str, Any]
Kinds = Mapping[str, type]
"""The type of each column: `str`, `int`, `float` or `bool`; any value may be None."""


def as_csv(rows: Iterable[Row]) -> str:
    """Rows of the same columns, numbers in full; text that a spreadsheet would run is defused."""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    each = iter(rows)
    for first in each:
        writer.writerow([defused(name) for name in first])
        writer.writerows([_cell(value) for value in row.values()] for row in itertools.chain([first], each))
    return sheet.getvalue()


def as_json(rows: Iterable[Row]) -> str:
    """Rows as JSON, a list of objects."""
    return json.dumps(list(rows), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_parquet(rows: Iterable[Row], kinds: Kinds) -> bytes:
    """Rows as Parquet, with the columns of `kinds` in their order, also where no row has a value in one."""
    import pyarrow
    from pyarrow import parquet

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), sink)
    return sink.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return defused(value) if isinstance(value, str) else repr(value)
