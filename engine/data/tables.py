"""Tables of texts: rows of JSONL, CSV and TSV files, and their conversion to labeled examples.

Cells are never evaluated: a formula is plain text. Every error names the line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from engine.data.examples import LabeledExample, Span, validate_spans
from engine.data.labels import PROMPT_LABELS, ParsedLabels, read_labels
from engine.errors import ExegesisError, UsageError, excerpt, unknown

Content = TypeVar("Content")

TableRow = tuple[str, dict[str, Any]]
"""(location in the file, for errors; values by column)."""
RowErrors = dict[str, str]
"""Errors of invalid lines, by their location in the file."""

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl")
COLUMN_ROLES = ("text", "text_pair", "label", "rationale", "rationale_pair", "answer", "foil")
PROMPT_ROLES = ("answer", "foil")
"""A table with both has prompts: `answer` is the correct next token of a text, `foil` a wrong one."""

_field_limit = threading.Lock()


def read_text(path: Path) -> str:
    """Read a UTF-8 file without its byte order mark. Errors: one line with the reason why it cannot be read."""
    if not path.exists():
        raise UsageError(f"dataset: there is no file {str(path)!r}. Check the path.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ExegesisError(f"{path.name}: cannot be read ({error.strerror}). Check its permissions.") from None
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content:
        line = content[: content.find(b"\0") + 1].count(b"\n") + 1
        raise ExegesisError(
            f"{path.name}, line {line}: holds NUL bytes, so it is binary or UTF-16. Save it as UTF-8 text."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        wrong = f"byte 0x{content[error.start]:02x}"
        raise ExegesisError(f"{path.name}, line {line}: is not UTF-8 ({wrong}). Save it as UTF-8 text.") from None
    if not text.strip():
        raise ExegesisError(f"{path.name}: is empty. Give a file with at least one example.")
    return text


def read_first_line(path: Path) -> str:
    """Read the first line of a file, at most 64 KiB; empty if it cannot be read as text."""
    try:
        with path.open("rb") as file:
            return file.readline(1 << 16).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""


def content_revision(paths: Iterable[Path], settings: Mapping[str, object]) -> str:
    """Return the SHA-256 of the bytes of files, and of the settings (other than None) that they were read with."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    stated = {key: value for key, value in settings.items() if value is not None}
    if stated:
        digest.update(json.dumps(stated, sort_keys=True, ensure_ascii=False).encode())
    return digest.hexdigest()


def read_table(path: Path, errors: RowErrors | None = None) -> list[TableRow]:
    """Read the rows of a CSV, TSV or JSONL file, each with the line it starts on. `errors`: see `read_jsonl`."""
    kind = path.suffix.lower()
    if kind == ".jsonl":
        return read_jsonl(path, errors)
    if kind == ".tsv":
        return read_tsv(path, errors)
    if kind == ".csv":
        return _parse_table(path, _split_csv(path, read_text(path)), errors)
    raise UsageError(f"dataset: {path.name} must end in {', '.join(TABLE_SUFFIXES)}. Rename or convert it.")


def read_jsonl(path: Path, errors: RowErrors | None = None) -> list[TableRow]:
    """Read the objects of a JSONL file; blank lines are skipped.

    `errors`: collects the faults of invalid lines, whose rows are then empty; if None, an invalid line is an error.
    """
    return _parse_rows(path, _number_lines(read_text(path)), _parse_object, errors)


def read_tsv(path: Path, errors: RowErrors | None = None, columns: Sequence[str] = ()) -> list[TableRow]:
    """Read the rows of a tab-separated file with any suffix. `columns`: names of the columns if there is no header.

    Tab-separated values have no quoting: a quotation mark is a plain character (IANA).
    """
    lines = _number_lines(read_text(path).replace("\r\n", "\n"))
    header = [(0, list(columns))] if columns else []
    return _parse_table(path, chain(header, ((number, line.split("\t")) for number, line in lines)), errors)


def _number_lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def _parse_rows(
    path: Path,
    numbered: Iterable[tuple[int, Content]],
    parse: Callable[[str, Content], dict[str, Any]],
    errors: RowErrors | None,
) -> list[TableRow]:
    rows = []
    for number, content in numbered:
        where = f"{path.name}, line {number}"
        try:
            values = parse(where, content)
        except ExegesisError as error:
            if errors is None:
                raise
            errors[where], values = str(error), {}
        rows.append((where, values))
    return rows


def _parse_object(where: str, line: str) -> dict[str, Any]:
    value = parse_json(where, line)
    if not isinstance(value, dict):
        raise ExegesisError(f'{where}: must be an object such as {{"text": "..."}}, got {excerpt(value)}.')
    return value


def parse_json(where: str, text: str) -> Any:
    """Parse strict JSON: no NaN, no lone surrogates, no nesting that exhausts the stack."""
    try:
        value = json.loads(text, parse_constant=_reject_constant)
        # A lone surrogate such as "\ud800" is legal JSON but no text: it cannot be encoded or tokenized.
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ExegesisError(f"{where}: is not valid JSON ({error.msg}, column {error.colno}).") from None
    except UnicodeEncodeError:
        raise ExegesisError(f"{where}: holds half a character (a lone surrogate). Write the whole character.") from None
    except (ValueError, RecursionError) as error:
        raise ExegesisError(f"{where}: is not valid JSON ({excerpt(str(error))}).") from None
    return value


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _split_csv(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Split comma-separated values as in RFC 4180, or at semicolons if the header has no comma."""
    header = text.split("\n", 1)[0]
    delimiter = ";" if ";" in header and "," not in header else ","
    with _lift_field_limit():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        start = 1
        try:
            for cells in reader:
                if cells:
                    yield start, cells
                start = reader.line_num + 1
        except csv.Error as error:
            fault = f"is not valid CSV ({error}). Write a quotation mark inside quotes twice."
            if "unexpected end of data" in str(error):
                fault = "a quotation mark opens here and never closes. Double it or close it."
            raise ExegesisError(f"{path.name}, line {start}: {fault}") from None


@contextmanager
def _lift_field_limit() -> Iterator[None]:
    """Lift the csv module's process-wide limit of 131,072 characters a field, and restore it."""
    with _field_limit:
        before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _parse_table(path: Path, lines: Iterable[tuple[int, list[str]]], errors: RowErrors | None) -> list[TableRow]:
    (_, first), *numbered = lines
    header = [name.strip() for name in first]
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated:
        raise ExegesisError(f"{path.name}, line 1: names the column {repeated[0]!r} twice. Rename one.")
    if not numbered:
        raise ExegesisError(f"{path.name}: has a header but no rows. Give a file with at least one example.")
    return _parse_rows(path, numbered, partial(_parse_cells, header), errors)


def _parse_cells(header: Sequence[str], where: str, cells: Sequence[str]) -> dict[str, Any]:
    if len(cells) != len(header):
        raise ExegesisError(
            f"{where}: has {len(cells)} columns, the header has {len(header)} "
            f"({', '.join(header)}). Quote cells that hold the delimiter."
        )
    return dict(zip(header, cells, strict=True))


@dataclass(frozen=True)
class MappedRows:
    """Rows converted to examples, with the task and names of their labels.

    `skipped`: number of rows without text. `faults`: errors of invalid rows, by row number.
    """

    labels: ParsedLabels
    examples: tuple[LabeledExample, ...]
    skipped: int
    faults: Mapping[int, str] = field(default_factory=dict)


def validate_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Validate `{role: column}`: known roles, and no column twice. The role `text` defaults to its own name."""
    mapping: dict[str, Any] = dict(columns or {})
    for role, column in mapping.items():
        if role not in COLUMN_ROLES:
            raise unknown("columns", role, COLUMN_ROLES)
        if not isinstance(column, str) or not column:
            raise UsageError(f"columns: {role} must be the name of a column, got {excerpt(column)}.")
    for column, count in Counter(mapping.values()).items():
        if count > 1:
            roles = " and ".join(role for role in mapping if mapping[role] == column)
            raise UsageError(f"columns: {column!r} is mapped to {roles}. Map each column once.")
    mapping.setdefault("text", "text")
    return mapping


def resolve_columns(source: str, present: Sequence[str], columns: Mapping[str, str] | None) -> dict[str, str]:
    """Complete the mapping: an unmapped role takes the column of its own name, if there is one.

    The columns answer and foil are used only together. The label is then the answer, and the column label is ignored.
    """
    mapping = validate_columns(columns)
    for role, column in mapping.items():
        if column not in present:
            listed, hint = "none", "Give a file with columns."
            if present:
                listed = ", ".join(present)
                hint = f"Name it, such as columns={{'{role}': '{present[0]}'}}, or rename it."
            raise UsageError(f"{source}: has no column {column!r} for {role}. Its columns: {listed}. {hint}")
    mapped = set(mapping.values())
    own = {role: role for role in COLUMN_ROLES if role not in mapping and role in present and role not in mapped}
    complete = mapping | own
    has = [role in complete for role in PROMPT_ROLES]
    if any(role in mapping for role in PROMPT_ROLES) and not all(has):
        raise UsageError(
            f"columns: a prompt needs {' and '.join(PROMPT_ROLES)}, got only one of them. Map both or none."
        )
    if all(has) and "label" in mapping:
        raise UsageError("columns: the label of a prompt is its answer. Leave label out, or answer and foil.")
    left_out = {"label"} if all(has) else set(PROMPT_ROLES)
    return {role: column for role, column in complete.items() if role not in left_out}


def map_rows(
    source: str,
    rows: Sequence[TableRow],
    columns: Mapping[str, str] | None,
    label_names: Sequence[str] | None = None,
    skip_empty: bool = False,
    tolerant: bool = False,
    errors: RowErrors | None = None,
) -> MappedRows:
    """Convert rows to examples. A row without text is an error; with `skip_empty` it is skipped and counted.

    `tolerant`: skip invalid rows and report why, unless all are invalid. `errors`: faults found while reading.
    """
    errors = errors or {}
    if errors and len(errors) == len(rows):
        raise ExegesisError(errors[rows[0][0]])
    present = list(dict.fromkeys(column for _, values in rows for column in values))
    mapping = resolve_columns(source, present, columns)
    filled = [row for row in rows if not skip_empty or _has_text(row[1].get(mapping["text"]))]
    if not filled:
        raise ExegesisError(f"{source}: has no rows with text. Give a file with at least one example.")
    faults = _find_faults(filled, mapping, label_names, errors) if tolerant else {}
    if len(faults) == len(filled):
        raise ExegesisError(faults[0])
    good = [row for place, row in enumerate(filled) if place not in faults]
    raw = [values.get(mapping["label"]) if "label" in mapping else None for _, values in good]
    if "answer" in mapping:
        raw, label_names = ["answer"] * len(good), PROMPT_LABELS
    labels = read_labels(raw, [where for where, _ in good], label_names)
    pairs = zip(good, labels.values, strict=True)
    examples = tuple(_make_example(where, values, mapping, label) for (where, values), label in pairs)
    return MappedRows(labels, examples, len(rows) - len(filled), faults)


def _find_faults(
    rows: Sequence[TableRow], mapping: Mapping[str, str], label_names: Sequence[str] | None, errors: RowErrors
) -> dict[int, str]:
    """Return the errors of invalid rows, by row number."""
    faults = {}
    for place, (where, values) in enumerate(rows):
        try:
            if where in errors:
                raise ExegesisError(errors[where])
            _make_example(where, values, mapping, None)
            read_labels([values.get(mapping.get("label", ""))], [where], label_names)
        except ExegesisError as error:
            faults[place] = str(error)
    return faults


def _has_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _make_example(
    where: str, values: dict[str, Any], mapping: Mapping[str, str], label: int | float | None
) -> LabeledExample:
    parts = {role: values.get(column) for role, column in mapping.items()}
    mapped = set(mapping.values())
    text = _parse_text(where, mapping["text"], parts["text"], required=True) or ""
    pair = _parse_text(where, mapping.get("text_pair", ""), parts.get("text_pair"), required=False)
    answer, foil = (_parse_text(where, mapping.get(r, ""), parts.get(r), required=r in mapping) for r in PROMPT_ROLES)
    try:
        labeled = LabeledExample(
            text=text,
            text_pair=pair,
            label=label,
            rationale=_parse_spans(where, "rationale", parts, text),
            rationale_pair=_parse_spans(where, "rationale_pair", parts, pair),
            extra={column: value for column, value in values.items() if column not in mapped},
            answer=answer,
            foil=foil,
        )
        if answer is not None:
            _ = labeled.example  # raises if a prompt has a second text, or the same token twice
    except UsageError as error:
        raise ExegesisError(f"{where}: {error}") from None
    return labeled


def _parse_text(where: str, column: str, value: object, required: bool) -> str | None:
    if value is None and not required:
        return None
    if not isinstance(value, str):
        raise ExegesisError(f"{where}: {column}: must be a text, got {excerpt(value)}.")
    if required and not value.strip():
        raise ExegesisError(f"{where}: {column}: is empty. Fill it in or remove the row.")
    if "\0" in value:
        raise ExegesisError(f"{where}: {column}: holds a NUL character. Remove it.")
    return value


def _parse_spans(where: str, role: str, parts: Mapping[str, Any], text: str | None) -> tuple[Span, ...]:
    """Parse spans, which are JSON in the cells of a table."""
    value = parts.get(role)
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        value = parse_json(f"{where}: {role}", value)
    return validate_spans(role, value, text)
