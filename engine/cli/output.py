"""What a command prints: pure JSON, or tables for people without colour codes when piped."""

from __future__ import annotations

import contextlib
import json
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPED_WIDTH = 10_000
"""Lines of a pipe are not wrapped, so that each can be searched and cut."""


def console(error: bool = False) -> Console:
    """A console on stdout (or stderr) as it is now; colours only on a terminal."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    made = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
    return made if made.is_terminal else Console(
        file=stream, highlight=False, markup=False, emoji=False, width=PIPED_WIDTH, color_system=None
    )  # fmt: skip


def print_json(value: object) -> None:
    """`value` as JSON; characters that stdout cannot hold are escaped."""
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=ascii_only, allow_nan=False) + "\n")


@contextlib.contextmanager
def only_ours() -> Iterator[None]:
    """Whatever a library prints while computing goes to stderr: stdout is for the result."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def table(columns: Sequence[str], right: Sequence[str] = ()) -> Table:
    """An empty table; the columns named in `right` hold numbers."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", no_wrap=name in right)
    return made


def facts(values: Mapping[str, object]) -> str:
    """A line each: what, and its value. What is not known is left out."""
    known = {name.replace("_", " "): shown(v) for name, v in values.items() if v not in (None, "", [], ())}
    width = max(map(len, known), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in known.items())


def shown(value: object) -> str:
    """A value for people: lists with commas, whole numbers in groups of three."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return visible(str(value))


def visible(text: str) -> str:
    """Control and direction characters as escapes: they would act on the terminal instead of being seen."""
    return "".join(_escaped(c) if _acts(c) else c for c in text)


def _acts(character: str) -> bool:
    return (
        unicodedata.category(character) == "Cc" or character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
