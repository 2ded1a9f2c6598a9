"""A value of a link that must be one of a few, or a whole number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.errors import unknown


def choice(name: str, last: Mapping[str, str], known: Sequence[str], said: list[str]) -> str:
    """What the link says, or the first of the known; a sentence is added to `said` where it says something else."""
    given = last.get(name, known[0])
    if given in known:
        return given
    said.append(str(unknown(name, given[:40], known)))
    return known[0]


def whole(given: str, most: int) -> int | None:
    """The number from 0 to `most` that the digits say; None where they say another or are none."""
    digits = given.lstrip("0") or given[:1]
    # Python reads no more than 4,300 digits.
    fits = digits.isascii() and digits.isdigit() and len(digits) <= len(str(most)) and int(digits) <= most
    return int(digits) if fits else None
