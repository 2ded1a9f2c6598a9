"""Write tables as CSV, JSON and Parquet. Cells that a spreadsheet would run as a formula are escaped."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

TableRow = Mapping[str, Any]
ColumnTypes = Mapping[str, type]
"""The type of each column: `str`, `int`, `float` or `bool`; any value may be None."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters of cells that a spreadsheet reads as formulas."""


def escape_cell(text: str) -> str:
    """Return the text as a cell, with a leading apostrophe if a spreadsheet would read it as a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def unescape_cell(cell: str) -> str:
    """Return the text of a cell that `escape_cell` wrote."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell


def to_csv(rows: Iterable[TableRow], line_end: str = "\n") -> str:
    """Return rows of the same columns as CSV: numbers in full, text escaped."""
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator=line_end)
    each = iter(rows)
    for first in each:
        writer.writerow([escape_cell(name) for name in first])
        writer.writerows([_cell(value) for value in row.values()] for row in itertools.chain([first], each))
    return sheet.getvalue()


def to_json(rows: Iterable[TableRow]) -> str:
    """Return rows as a JSON list of objects."""
    return json.dumps(list(rows), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_parquet(rows: Iterable[TableRow], types: ColumnTypes) -> bytes:
    """Return rows as Parquet, with the columns of `types` in their order, even if no row has a value in one."""
    import pyarrow
    from pyarrow import parquet

    arrow = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, arrow[kind]) for name, kind in types.items()])
    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), sink)
    return sink.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return escape_cell(value) if isinstance(value, str) else repr(value)
