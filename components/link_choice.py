"""A value of a link that must be one of a few."""

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
