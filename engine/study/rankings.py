"""Rankings of methods: the votes of a study, or the rows of a CSV file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Int

from engine.data.tables import read_table
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.table_io import unescape_cell

MAX_METHODS = 50
VOTE_COLUMNS = ("annotator", "item", "repeat", "seconds", "at")
"""Columns of a vote; one column a method with its rank follows."""
RANKS_COLUMN = "ranks"
"""The column of a ranking file that holds rank strings, such as `1,1,3,4`."""
LEFT_OUT_COLUMN = "left_out"
"""The column that names the rule which left a vote out, if any did."""


@dataclass(frozen=True)
class Ranking:
    """One vote, which ranks every method of the study once.

    `ranks`: 1 is best, equal numbers are ties. `repeat` counts how often this person ranked this item before. `at`:
    the server's time in seconds since 1970. `seconds`: how long the person looked.
    """

    annotator: str
    item: str
    ranks: Mapping[str, int]
    repeat: int = 0
    seconds: int | float = 0.0
    at: int | float = 0.0


def ranked_methods(rankings: Sequence[Ranking]) -> tuple[str, ...]:
    """The methods that all rankings rank, in the order of the first one. Errors: a ranking of other methods."""
    if not rankings:
        return ()
    methods = tuple(rankings[0].ranks)
    for ranking in rankings:
        if set(ranking.ranks) != set(methods):
            raise UsageError(
                f"votes: each must rank {', '.join(methods)}, but that of {ranking.annotator} on {ranking.item} "
                f"ranks {', '.join(ranking.ranks)}. Leave incomplete votes out."
            )
    return methods


def first_rankings(rankings: Sequence[Ranking]) -> list[Ranking]:
    """Rankings without repeats: a person's opinion of an item counts once."""
    return [ranking for ranking in rankings if ranking.repeat == 0]


def rank_table(rankings: Sequence[Ranking]) -> Int[np.ndarray, "ranking method"]:
    """Ranks, with columns in the order of `ranked_methods`."""
    methods = ranked_methods(rankings)
    table = [[ranking.ranks[method] for method in methods] for ranking in rankings]
    return np.array(table, dtype=int).reshape(-1, len(methods))


def read_ranks(text: str, methods: Sequence[str]) -> dict[str, int]:
    """Competition ranks from a rank string such as `1,1,3,4`: one number a method, equal numbers are ties."""
    parts = [part.strip() for part in text.split(",")]
    valid = all(part.isascii() and part.isdigit() and len(part) < 4 and int(part) > 0 for part in parts)
    if not valid or len(parts) != len(methods):
        allowed = f"{len(methods)} whole numbers from 1 between commas, one for each of {', '.join(methods)}"
        raise not_allowed("ranks", allowed, text, "Example: 1,1,3,4.")
    return competition_ranks(dict(zip(methods, map(int, parts), strict=True)))


def competition_ranks(ranks: Mapping[str, int]) -> dict[str, int]:
    """The same order as competition ranks: 1 + the number of strictly better methods (`1,1,3,4`)."""
    return {name: 1 + sum(other < rank for other in ranks.values()) for name, rank in ranks.items()}


def read_rankings(path: Path, methods: Sequence[str] = ()) -> list[Ranking]:
    """The rankings of a CSV file, in its order if it has no column `at`.

    Either a column `ranks` holds rank strings, for `methods` in their order, or there is one column a method as in our
    own export. Without a column `annotator` each row is another person's vote, without `item` it is on another item,
    and without `repeat` a person's further votes on an item are repeats. A row that ranks nothing ("cannot tell") or
    has something in `left_out` is skipped.
    """
    if not path.is_file():
        raise not_allowed("FILE", "a CSV file of rankings", str(path), "Check the path.")
    rows = read_table(path)
    columns = [unescape_cell(name) for name in rows[0][1]]
    methods = _file_methods(columns, methods)
    earlier: Counter[tuple[str, str]] = Counter()
    rankings = []
    for number, (place, cells) in enumerate(rows):
        row = {unescape_cell(name): str(cell) for name, cell in cells.items()}
        if row.get(LEFT_OUT_COLUMN) or not any(row.get(name) for name in (RANKS_COLUMN, *methods)):
            continue
        ranking = _read_row(number, place, row, methods)
        repeat = earlier[ranking.annotator, ranking.item]
        rankings.append(ranking if "repeat" in columns else replace(ranking, repeat=repeat))
        earlier[ranking.annotator, ranking.item] += 1
    return rankings


def _file_methods(columns: Sequence[str], methods: Sequence[str]) -> tuple[str, ...]:
    if RANKS_COLUMN in columns:
        if len(methods) < 2:
            raise UsageError("methods: are missing. Name them in the order of the numbers in the column 'ranks'.")
        return tuple(methods)
    candidates = tuple(name for name in columns if name not in (*VOTE_COLUMNS, LEFT_OUT_COLUMN))
    if missing := [name for name in methods if name not in candidates]:
        raise unknown("methods", missing[0], candidates)
    methods = tuple(methods) or candidates
    if len(methods) < 2:
        raise UsageError(f"FILE: must have a column 'ranks', or one for each of two or more methods, got {columns}.")
    return methods


def _read_row(number: int, place: str, row: Mapping[str, str], methods: Sequence[str]) -> Ranking:
    ranks = row.get(RANKS_COLUMN) or ",".join(row.get(name, "") for name in methods)
    try:
        return Ranking(
            annotator=unescape_cell(row.get("annotator", f"annotator {number + 1}")),
            item=unescape_cell(row.get("item", f"item {number + 1}")),
            ranks=read_ranks(ranks, methods),
            repeat=int(_read_number(row, "repeat", 0)),
            seconds=_read_number(row, "seconds", 0),
            at=_read_number(row, "at", number),
        )
    except UsageError as error:
        raise ExegesisError(f"{place}: {error}") from None


def _read_number(row: Mapping[str, str], name: str, default: int | float) -> float:
    try:
        value = float(row.get(name) or default)
    except ValueError:
        value = -1.0
    if not math.isfinite(value) or value < 0:
        raise not_allowed(name, "a number of at least 0", row[name])
    return value
