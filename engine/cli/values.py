"""What options hold: text from the command line or from stdin, and numbers, with errors that name the option."""

from __future__ import annotations

import math
import sys

from engine.errors import UsageError, not_allowed

LARGEST, LARGEST_ID = 2**63 - 1, 2**31 - 1
"""What seeds and counts hold, and the numbers of studies and jobs in a database."""


def whole(option: str, value: str, low: int = 0, high: int = LARGEST) -> int:
    """A whole number from `low` to `high`."""
    digits = value.strip().lstrip("+-")
    if not digits.isdecimal() or len(digits) > 19 or not low <= int(value) <= high:
        allowed = f"at least {low}" if len(digits) < len(str(high)) else f"from {low} to {high:,}"
        raise not_allowed(option, f"a whole number of {allowed}".replace("of from", "from"), value)
    return int(value)


def number_of(value: str) -> int:
    """The number of a study or a job."""
    return whole("ID", value, 1, LARGEST_ID)


def numbers(option: str, value: str) -> list[float]:
    """Numbers between commas."""
    try:
        found = [float(part) for part in value.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(map(math.isfinite, found)):
        raise not_allowed(option, "numbers between commas", value)
    return found


def size(option: str, value: str) -> int:
    """Bytes, as `500000000`, `500MB` or `2GB` (powers of 1,000)."""
    text = value.strip().upper().removesuffix("B")
    factor = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:], 1)
    number = text if factor == 1 else text[:-1]
    if not number.strip().isdecimal():
        raise not_allowed(option, "a number of bytes such as 500MB", value)
    return int(number) * factor


def names(option: str, value: str) -> list[str]:
    """Names between commas, each once, in the order given."""
    found = list(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    if not found:
        raise not_allowed(option, "one or more names between commas", value)
    return found


def pairs(option: str, given: list[str], example: str) -> dict[str, str]:
    """`name=value` pairs; a name twice is an error."""
    found: dict[str, str] = {}
    for pair in given:
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not sign or not name:
            raise not_allowed(option, "name=value", pair, f"Example: {option} {example}.")
        if name in found:
            raise UsageError(f"{option}: {name} is given twice. Give it once.")
        found[name] = value
    return found


def text(option: str, value: str) -> str:
    """A text as given; `-` reads stdin (UTF-8) without its last line end."""
    if value == "-":
        value = _stdin(option)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{option}: must be UTF-8 text, got bytes that are not. Convert it to UTF-8.") from None
    return value


def _stdin(option: str) -> str:
    content = sys.stdin.buffer.read()
    try:
        decoded = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wrong = f"byte 0x{content[error.start]:02x} at position {error.start}"
        raise UsageError(f"{option} -: stdin must be UTF-8 text, got {wrong}. Convert it to UTF-8.") from None
    return decoded.removesuffix("\n").removesuffix("\r")
