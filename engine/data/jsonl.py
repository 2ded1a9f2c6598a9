"""JSON lines: one object a line, with the line number in every complaint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from engine.data.files import read_text
from engine.errors import ExegesisError, shown

Given = TypeVar("Given")

Row = tuple[str, dict[str, Any]]
"""(where it stands, as an error names it; the values by column)."""
Broken = dict[str, str]
"""Why a line is no row, by where it stands."""


def read_jsonl(path: Path, broken: Broken | None = None) -> list[Row]:
    """The objects of a JSONL file; blank lines are skipped.

    `broken`: takes what is wrong with a line that is no object, whose row is then empty; without it that is an error.
    """
    lines = read_text(path).split("\n")
    return [row_or_broken(f"{path.name}, line {number}", line, _row, broken) for number, line in _numbered(lines)]


def row_or_broken(where: str, given: Given, read: Callable[[str, Given], Row], broken: Broken | None) -> Row:
    """The row as `read` makes it of what is given; where it cannot, an empty one and the reason among the broken."""
    try:
        return read(where, given)
    except ExegesisError as error:
        if broken is None:
            raise
        broken[where] = str(error)
        return where, {}


def _numbered(lines: list[str]) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _row(where: str, line: str) -> Row:
    value = parse_json(where, line)
    if not isinstance(value, dict):
        raise ExegesisError(f'{where}: must be an object such as {{"text": "..."}}, got {shown(value)}.')
    return where, value


def parse_json(where: str, text: str) -> Any:
    """Strict JSON: no NaN, no lone surrogates, no nesting that exhausts the stack."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        # A lone surrogate such as "\ud800" is legal JSON but no text: it cannot be encoded or tokenised.
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ExegesisError(f"{where}: is not valid JSON ({error.msg}, column {error.colno}).") from None
    except UnicodeEncodeError:
        raise ExegesisError(f"{where}: holds half a character (a lone surrogate). Write the whole character.") from None
    except (ValueError, RecursionError) as error:
        raise ExegesisError(f"{where}: is not valid JSON ({shown(str(error))}).") from None
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
