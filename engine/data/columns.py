"""Column mapping: which column of a table plays which part in an example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.data.examples import LabelledExample, Span, checked_spans
from engine.data.jsonl import Broken, Row, parse_json
from engine.data.labels import Labels, read_labels
from engine.errors import ExegesisError, UsageError, shown, unknown

ROLES = ("text", "text_pair", "label", "rationale", "rationale_pair")


@dataclass(frozen=True)
class Mapped:
    """Rows as examples, with their labels' task and names, and how many had no text.

    `faults`: why a row is no example, by its place among all rows.
    """

    labels: Labels
    examples: tuple[LabelledExample, ...]
    skipped: int
    faults: Mapping[int, str] = field(default_factory=dict)


def checked_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """`{role: column}` with known roles, a text, and no column twice."""
    asked: dict[str, Any] = dict(columns or {})
    for role, column in asked.items():
        if role not in ROLES:
            raise unknown("columns", role, ROLES)
        if not isinstance(column, str) or not column:
            raise UsageError(f"columns: {role} must be the name of a column, got {shown(column)}.")
    for column, count in Counter(asked.values()).items():
        if count > 1:
            roles = " and ".join(role for role in asked if asked[role] == column)
            raise UsageError(f"columns: {column!r} is mapped to {roles}. Map each column once.")
    asked.setdefault("text", "text")
    return asked


def resolve(source: str, present: Sequence[str], columns: Mapping[str, str] | None) -> dict[str, str]:
    """The mapping with unmapped roles taken by their own names where such a column exists."""
    asked = checked_columns(columns)
    for role, column in asked.items():
        if column not in present:
            listed = ", ".join(present) if present else "none"
            hint = (
                f"Name it, such as columns={{'{role}': '{present[0]}'}}, or rename it."
                if present
                else "Give a file with columns."
            )
            raise UsageError(f"{source}: has no column {column!r} for {role}. Its columns: {listed}. {hint}")
    taken = set(asked.values())
    own = {role: role for role in ROLES if role not in asked and role in present and role not in taken}
    return asked | own


def map_rows(
    source: str,
    rows: Sequence[Row],
    columns: Mapping[str, str] | None,
    label_names: Sequence[str] | None = None,
    skip_empty: bool = False,
    tolerant: bool = False,
    broken: Broken | None = None,
) -> Mapped:
    """Rows as examples. A row without text is an error, or left out and counted with `skip_empty`.

    `tolerant`: a row that is no example is left out with the reason, unless all of them are none. `broken`: what is
    known to be wrong with rows already.
    """
    known = broken or {}
    if known and len(known) == len(rows):
        raise ExegesisError(known[rows[0][0]])
    present = list(dict.fromkeys(column for _, values in rows for column in values))
    mapping = resolve(source, present, columns)
    kept = [row for row in rows if not skip_empty or _has_text(row[1].get(mapping["text"]))]
    if not kept:
        raise ExegesisError(f"{source}: has no rows with text. Give a file with at least one example.")
    faults = _faults(kept, mapping, label_names, known) if tolerant else {}
    if len(faults) == len(kept):
        raise ExegesisError(faults[0])
    good = [row for place, row in enumerate(kept) if place not in faults]
    raw = [values.get(mapping["label"]) if "label" in mapping else None for _, values in good]
    labels = read_labels(raw, [where for where, _ in good], label_names)
    pairs = zip(good, labels.values, strict=True)
    examples = tuple(_example(where, values, mapping, label) for (where, values), label in pairs)
    return Mapped(labels, examples, len(rows) - len(kept), faults)


def _faults(
    rows: Sequence[Row], mapping: Mapping[str, str], label_names: Sequence[str] | None, broken: Broken
) -> dict[int, str]:
    """Why rows are no examples, by their places."""
    found = {}
    for place, (where, values) in enumerate(rows):
        try:
            if where in broken:
                raise ExegesisError(broken[where])
            _example(where, values, mapping, None)
            read_labels([values.get(mapping.get("label", ""))], [where], label_names)
        except ExegesisError as error:
            found[place] = str(error)
    return found


def _has_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _example(
    where: str, values: dict[str, Any], mapping: Mapping[str, str], label: int | float | None
) -> LabelledExample:
    parts = {role: values.get(column) for role, column in mapping.items()}
    taken = set(mapping.values())
    text = _text(where, mapping["text"], parts["text"], required=True) or ""
    pair = _text(where, mapping.get("text_pair", ""), parts.get("text_pair"), required=False)
    try:
        return LabelledExample(
            text=text,
            text_pair=pair,
            label=label,
            rationale=_spans(where, "rationale", parts, text),
            rationale_pair=_spans(where, "rationale_pair", parts, pair),
            extra={column: value for column, value in values.items() if column not in taken},
        )
    except UsageError as error:
        raise ExegesisError(f"{where}: {error}") from None


def _text(where: str, column: str, value: object, required: bool) -> str | None:
    if value is None and not required:
        return None
    if not isinstance(value, str):
        raise ExegesisError(f"{where}: {column}: must be a text, got {shown(value)}.")
    if required and not value.strip():
        raise ExegesisError(f"{where}: {column}: is empty. Fill it in or remove the row.")
    if "\0" in value:
        raise ExegesisError(f"{where}: {column}: holds a NUL character. Remove it.")
    return value


def _spans(where: str, role: str, parts: Mapping[str, Any], text: str | None) -> tuple[Span, ...]:
    """Spans as they stand in JSON; a table holds them as JSON in a cell."""
    value = parts.get(role)
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        value = parse_json(f"{where}: {role}", value)
    return checked_spans(role, value, text)
