"""What leaves a study and comes back: votes and ratings as CSV and JSON, rankings of other studies from CSV.

People are pseudonyms here; no code, address or name is in any of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.study.ratings.headline import Rating
from engine.study.ratings.matches import Match, competition, read_ranks
from engine.study.ratings.summary import Summary
from engine.table_io import unescape_cell

if TYPE_CHECKING:
    from engine.study.tally import Kept

Row = dict[str, Any]

VOTE = ("annotator", "item", "repeat", "seconds", "at")
"""Columns of a vote; one a method with its rank follows."""
RANKS = "ranks"
"""The column of a ranking file that holds rank strings, such as `1,1,3,4`."""
LEFT_OUT = "left_out"
"""The column that says which rule left a vote out, if any did."""


def vote_rows(votes: Sequence[Match | Kept], methods: Sequence[str]) -> list[Row]:
    """A row a vote: who, what, when, how long, and the rank of each method; no rank in any column: cannot tell.

    Errors: a method has the name of a column that every table of votes has.
    """
    if taken := [name for name in methods if name in (*VOTE, RANKS, LEFT_OUT)]:
        raise UsageError(f"methods: {taken[0]!r} is the name of another column. Rename the method.")
    return [{**vote_row(vote), **{name: vote.ranks and vote.ranks[name] for name in methods}} for vote in votes]


def vote_row(vote: Match | Kept) -> Row:
    """What every table of votes says of one, whatever was answered."""
    return {name: getattr(vote, name) for name in VOTE}


def rating_rows(ratings: Sequence[Rating]) -> list[Row]:
    """A row a method: skill, ends of the interval, first and last place, spread over orders of the votes."""
    return [
        {
            "method": rating.method,
            "skill": rating.skill,
            "low": rating.interval[0],
            "high": rating.interval[1],
            "rank": rating.rank,
            "last": rating.last,
            "spread": rating.spread,
        }
        for rating in ratings
    ]


def summary_plain(found: Summary) -> Row:
    """All results as plain values, the JSON that the command prints."""
    return {
        "votes": found.votes,
        "annotators": found.annotators,
        "items": found.items,
        "ratings": [asdict(rating) for rating in found.ratings],
        "smat": [asdict(rating) for rating in found.smat],
        "placebo": found.placebo,
        "no_better_than_placebo": found.no_better_than_placebo,
        "wins": dict(zip(found.methods, (_by_method(found, row) for row in found.wins.tolist()), strict=True)),
        "plackett_luce": {"worths": dict(found.worths), "order": found.worth_order, "same_order": found.same_order},
        "kendalls_w": found.concordance,
        "kendalls_w_by_chance": found.concordance_by_chance,
        "krippendorffs_alpha": found.alpha,
        "self_consistency": found.consistency and dict(zip(("rho", "pairs"), found.consistency, strict=True)),
        "seconds": found.seconds and asdict(found.seconds),
        "needed": [asdict(pair) for pair in found.needed],
        "power": [asdict(point) for point in found.power],
        "course": [_by_method(found, row) for row in found.course.tolist()],
        "by_item": [asdict(group) for group in found.by_item],
        "by_annotator": [asdict(group) for group in found.by_annotator],
        "meanings": found.meanings,
    }


def read_rankings(path: Path, methods: Sequence[str] = ()) -> list[Match]:
    """The votes of a CSV file, in its order where it has no column `at`.

    Either a column `ranks` with rank strings, for `methods` in their order, or a column a method as in our own export.
    Without a column `annotator` each row is another person's vote, without `item` on another item, and without `repeat`
    a person's further votes on an item are repeats. A row that ranks nothing is a "cannot tell", and no vote; what has
    something in `left_out` is none either.
    """
    from engine.data.tables import read_table

    if not path.is_file():
        raise not_allowed("FILE", "a CSV file of rankings", str(path), "Check the path.")
    rows = read_table(path)
    columns = [unescape_cell(name) for name in rows[0][1]]
    named = _methods_in(columns, methods)
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for number, (place, cells) in enumerate(rows):
        row = {unescape_cell(name): str(cell) for name, cell in cells.items()}
        if row.get(LEFT_OUT) or not any(row.get(name) for name in (RANKS, *named)):
            continue
        match = _match(number, place, row, named)
        again = seen[match.annotator, match.item]
        found.append(match if "repeat" in columns else replace(match, repeat=again))
        seen[match.annotator, match.item] += 1
    return found


def _methods_in(columns: Sequence[str], methods: Sequence[str]) -> tuple[str, ...]:
    if RANKS in columns:
        if len(methods) < 2:
            raise UsageError("methods: are missing. Name them in the order of the numbers in the column 'ranks'.")
        return tuple(methods)
    found = tuple(name for name in columns if name not in (*VOTE, LEFT_OUT))
    if missing := [name for name in methods if name not in found]:
        raise unknown("methods", missing[0], found)
    named = tuple(methods) or found
    if len(named) < 2:
        raise UsageError(f"FILE: must have a column 'ranks', or one for each of two or more methods, got {columns}.")
    return named


def _match(number: int, place: str, row: Mapping[str, str], methods: Sequence[str]) -> Match:
    written = row.get(RANKS) or ",".join(row.get(name, "") for name in methods)
    try:
        return Match(
            annotator=unescape_cell(row.get("annotator", f"annotator {number + 1}")),
            item=unescape_cell(row.get("item", f"item {number + 1}")),
            ranks=competition(read_ranks(written, methods)),
            repeat=int(_number(row, "repeat", 0)),
            seconds=_number(row, "seconds", 0),
            at=_number(row, "at", number),
        )
    except UsageError as error:
        raise ExegesisError(f"{place}: {error}") from None


def _number(row: Mapping[str, str], name: str, missing: int | float) -> float:
    try:
        value = float(row.get(name) or missing)
    except ValueError:
        value = -1.0
    if not math.isfinite(value) or value < 0:
        raise not_allowed(name, "a number of at least 0", row[name])
    return value


def _by_method(found: Summary, values: Sequence[float]) -> dict[str, float]:
    return dict(zip(found.methods, values, strict=True))
