"""Votes as matches: each ranks every method of the study once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from engine.errors import UsageError, not_allowed

MOST_METHODS = 50


@dataclass(frozen=True)
class Match:
    """One vote. `ranks`: 1 is best, equal numbers are ties. `repeat` counts how often this person saw this item before.

    `at` is the server's time in seconds since 1970; `seconds` is how long the person looked.
    """

    annotator: str
    item: str
    ranks: Mapping[str, int]
    repeat: int = 0
    seconds: int | float = 0.0
    at: int | float = 0.0


def methods_of(matches: Sequence[Match]) -> tuple[str, ...]:
    """The methods that all matches rank, in the order of the first. Errors: a match that ranks others."""
    if not matches:
        return ()
    methods = tuple(matches[0].ranks)
    for match in matches:
        if set(match.ranks) != set(methods):
            raise UsageError(
                f"votes: each must rank {', '.join(methods)}, but that of {match.annotator} on {match.item} "
                f"ranks {', '.join(match.ranks)}. Leave incomplete votes out."
            )
    return methods


def first_looks(matches: Sequence[Match]) -> list[Match]:
    """Without repeats: what a person says of one item counts once."""
    return [match for match in matches if match.repeat == 0]


def rank_table(matches: Sequence[Match]) -> Int[np.ndarray, "match method"]:
    """Ranks in the order of `methods_of`."""
    methods = methods_of(matches)
    return np.array([[match.ranks[m] for m in methods] for match in matches], dtype=int).reshape(-1, len(methods))


def read_ranks(written: str, methods: Sequence[str]) -> dict[str, int]:
    """A rank string such as `1,1,3,4`, a number a method, as competition ranks: equal numbers are ties."""
    parts = [part.strip() for part in written.split(",")]
    good = all(part.isascii() and part.isdigit() and len(part) < 4 and int(part) > 0 for part in parts)
    if not good or len(parts) != len(methods):
        allowed = f"{len(methods)} whole numbers from 1 between commas, one for each of {', '.join(methods)}"
        raise not_allowed("ranks", allowed, written, "Example: 1,1,3,4.")
    return competition(dict(zip(methods, map(int, parts), strict=True)))


def competition(ranks: Mapping[str, int]) -> dict[str, int]:
    """The same order as competition ranks: 1 + how many are strictly better (`1,1,3,4`)."""
    return {name: 1 + sum(other < rank for other in ranks.values()) for name, rank in ranks.items()}
