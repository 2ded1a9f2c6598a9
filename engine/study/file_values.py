"""Values of a file that somebody else may have written: each is what it must be, or the error names its place."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from engine.errors import UsageError, shown
from engine.study.tables import Plain

LAST_TIME = 1e11
"""Year 5138, which a clock that is far off may say."""


def time(where: str, given: object) -> float | None:
    return None if given is None else bounded(where, given, LAST_TIME)


def bounded(where: str, given: object, most: float) -> float:
    value = number(where, given)
    if not 0 <= value <= most:
        raise wrong(where, f"a number from 0 to {most:g}", given)
    return value


def number(where: str, given: object) -> float:
    if type(given) not in (int, float) or not abs(given) < 1e300:  # type: ignore[arg-type]
        raise wrong(where, "a number", given)
    return float(given)  # type: ignore[arg-type]


def whole(where: str, given: object, most: int = 10**9) -> int:
    if type(given) is not int or not 0 <= given <= most:
        raise wrong(where, f"a whole number from 0 to {most}", given)
    return given


def true_or_false(where: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise wrong(where, "true or false", given)
    return given


def text(where: str, given: object, most: int = 10**7) -> str:
    if not isinstance(given, str) or len(given) > most or "\0" in given:
        raise wrong(where, f"a text of at most {most:,} characters", given)
    try:
        given.encode()
    except UnicodeEncodeError:
        raise wrong(where, "whole characters", given) from None
    return given


def base64_bytes(where: str, given: object) -> bytes:
    try:
        return b64decode(text(where, given, 10**9), validate=True)
    except ValueError:
        raise wrong(where, "base64", given) from None


def mapping(where: str, given: object) -> Plain:
    if not isinstance(given, dict):
        raise wrong(where, "names with values", given)
    return given


def a_list(where: str, given: object) -> list[Any]:
    if not isinstance(given, list):
        raise wrong(where, "a list", given)
    return given


def fields(where: str, given: object, *names: str) -> Plain:
    """Exactly these fields: what is not known is not kept without being understood."""
    found = mapping(where, given)
    if found.keys() != set(names):
        raise wrong(where, f"the fields {', '.join(names)}", sorted(map(str, found)))
    return found


def wrong(where: str, allowed: str, *got: object) -> UsageError:
    tail = f", got {shown(got[0])}" if got else ""
    return UsageError(f"FILE: {where}: must be {allowed}{tail}. Export the study again.")
