"""CSV and TSV files as rows. Cells are data only: a formula is a text like any other."""

from __future__ import annotations

import csv
import io
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from engine.data.files import read_text
from engine.data.jsonl import Broken, Row, read_jsonl, row_or_broken
from engine.errors import ExegesisError, UsageError

TABLES = (".csv", ".tsv", ".jsonl")

_field_limit = threading.Lock()


def read_table(path: Path, broken: Broken | None = None) -> list[Row]:
    """The rows of a CSV, TSV or JSONL file, each with the line it starts on. `broken`: see `read_jsonl`."""
    kind = path.suffix.lower()
    if kind == ".jsonl":
        return read_jsonl(path, broken)
    if kind == ".tsv":
        return read_tsv(path, broken)
    if kind == ".csv":
        return _with_header(path, _csv(path, read_text(path)), broken)
    raise UsageError(f"dataset: {path.name} must end in {', '.join(TABLES)}. Rename or convert it.")


def read_tsv(path: Path, broken: Broken | None = None) -> list[Row]:
    """The rows of a tab-separated file with a header, whatever its name ends in."""
    return _with_header(path, _tsv(read_text(path)), broken)


def _tsv(text: str) -> Iterator[tuple[int, list[str]]]:
    """Tab-separated values know no quoting, a quotation mark is a character (IANA)."""
    lines = text.replace("\r\n", "\n").split("\n")
    return ((number, line.split("\t")) for number, line in enumerate(lines, start=1) if line.strip())


def _csv(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Comma-separated values as in RFC 4180, or semicolons where the header has no comma."""
    header = text.split("\n", 1)[0]
    delimiter = ";" if ";" in header and "," not in header else ","
    with _large_fields():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        start = 1
        try:
            for cells in reader:
                if cells:
                    yield start, cells
                start = reader.line_num + 1
        except csv.Error as error:
            raise ExegesisError(_broken(path, start, error)) from None


def _broken(path: Path, start: int, error: csv.Error) -> str:
    if "unexpected end of data" in str(error):
        return f"{path.name}, line {start}: a quotation mark opens here and never closes. Double it or close it."
    return f"{path.name}, line {start}: is not valid CSV ({error}). Write a quotation mark inside quotes twice."


@contextmanager
def _large_fields() -> Iterator[None]:
    """Lifts the csv module's process-wide limit of 131,072 characters a field, and puts it back."""
    with _field_limit:
        before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _with_header(path: Path, lines: Iterator[tuple[int, list[str]]], broken: Broken | None = None) -> list[Row]:
    numbered = list(lines)
    header = [name.strip() for name in numbered[0][1]]
    _check_header(path, header)
    if len(numbered) == 1:
        raise ExegesisError(f"{path.name}: has a header but no rows. Give a file with at least one example.")
    read = partial(_row, header)
    return [row_or_broken(f"{path.name}, line {line}", cells, read, broken) for line, cells in numbered[1:]]


def _check_header(path: Path, header: Sequence[str]) -> None:
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise ExegesisError(f"{path.name}, line 1: names the column {twice[0]!r} twice. Rename one.")


def _row(header: Sequence[str], where: str, cells: Sequence[str]) -> Row:
    if len(cells) != len(header):
        raise ExegesisError(
            f"{where}: has {len(cells)} columns, the header has {len(header)} "
            f"({', '.join(header)}). Quote cells that hold the delimiter."
        )
    return where, dict(zip(header, cells, strict=True))
