"""Generated data sets: how many examples of which split, by which seed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from engine.data.hub import ALIASES
from engine.errors import unknown
from engine.params import option

COUNTS: Mapping[str, int] = {"validation": 1_000, "test": 2_000, "train": 20_000}
UNMARKED = "unmarked"
"""A split of marked sets: the test split without any mark."""


@dataclass(frozen=True)
class SizedParams:
    """What one asks of any generated set."""

    count: int | None = option(
        None, "examples; none: 20,000 for train, 1,000 for validation, 2,000 for test", low=1, high=10**6
    )
    seed: int = option(0, "seed of everything in the examples", low=0)


def chosen_split(split: str | None, known: Collection[str]) -> str:
    """The split by its usual name; the first one where none is asked for."""
    chosen = next(iter(known)) if split is None else ALIASES.get(split, split)
    if chosen not in known:
        raise unknown("split", split, known)
    return chosen


def size(params: SizedParams, split: str, limit: int | None) -> int:
    """How many examples a split has, `limit` of them at most."""
    count = params.count or COUNTS[split]
    return count if limit is None else min(count, limit)


def digest(*parts: object) -> str:
    """SHA-256 over plain values, for what is made by a rule."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()
