"""Numbers and lists of names as text, the same on pages and on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is one."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural: words, patches, passes."""
    return f"{noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def size_text(count: int | None) -> str:
    """Return a size in bytes as text, in units of powers of 1,000; empty if it is unknown."""
    if count is None:
        return ""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"


def join_names(names: Sequence[str]) -> str:
    """Join at least one name: "A"; "A and B"; "A, B and C"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def shorten(text: str, most: int) -> str:
    """Return the text on one line of at most `most` characters; a longer text ends with “…”."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def time_text(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 text in UTC, for files: 2026-03-01T14:05:09.250000+00:00."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def visible_token(text: str) -> str:
    """Return a token with visible white space: leading spaces as dots, line ends and tabs as signs, as in "·are"."""
    rest = text.lstrip(" ")
    shown = "·" * (len(text) - len(rest)) + rest
    return shown.replace("\r", "␍").replace("\n", "⏎").replace("\t", "⇥")


def hidden_token(shown: str) -> str:
    """Return the original token: the inverse of `visible_token`."""
    rest = shown.lstrip("·")
    return (" " * (len(shown) - len(rest)) + rest).replace("␍", "\r").replace("⏎", "\n").replace("⇥", "\t")
