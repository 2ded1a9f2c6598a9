"""The votes that count, in the order in which the database took them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import sqlalchemy as sa

from engine.study.annotators import NotKnown
from engine.study.database import study_database
from engine.study.design import Design
from engine.study.ratings.matches import Match, competition
from engine.study.tables import Annotator, Item, Plain, Study, Vote


@dataclass(frozen=True)
class Kept:
    """One answer. `order`: the methods from place A on. `ranks`: 1 is best; None: cannot tell, or a guess.

    `at`: the server's clock in seconds since 1970, held where that was set back. `item`: its place in the study.
    """

    annotator: str
    item: str
    repeat: int
    order: tuple[str, ...]
    ranks: Mapping[str, int] | None
    guess: Plain | None
    seconds: float
    at: float


def votes_of(study: int) -> list[Kept]:
    """Each participant's last answer to each ballot. Practice, and what was taken back, do not count."""
    with study_database().reading() as session:
        row = session.get(Study, study)
        if row is None:
            raise NotKnown(f"study: there is none with the number {study}.")
        names = method_names(Design.from_plain(row.design))
        rows = session.execute(_counted(study)).all()
    clock = accumulate((vote.at for vote, _, _ in rows), max)
    return [_kept(vote, who, place, names, at) for (vote, who, place), at in zip(rows, clock, strict=True)]


def matches_of(study: int) -> list[Match]:
    """The rankings among the votes that count."""
    return as_matches(votes_of(study))


def as_matches(votes: Sequence[Kept]) -> list[Match]:
    """The rankings among these votes; "cannot tell" is no match."""
    return [
        Match(vote.annotator, vote.item, vote.ranks, vote.repeat, vote.seconds, vote.at)
        for vote in votes
        if vote.ranks is not None
    ]


def method_names(design: Design) -> tuple[str, ...]:
    """A name for each place of `Design.shown`: the id, and a number where it is there with other parameters too."""
    ids = [method.id for method in design.shown]
    return tuple(id if ids.count(id) == 1 else f"{id} {place + 1}" for place, id in enumerate(ids))


def _counted(study: int) -> sa.Select[Vote, str, int]:
    found = sa.select(Vote, Annotator.pseudonym, Item.place).join(Annotator, Annotator.id == Vote.annotator)
    found = found.join(Item, Item.id == Vote.item).where(Vote.study == study, ~Item.practice)
    return found.where(Vote.superseded_by.is_(None)).order_by(Vote.id)


def _kept(vote: Vote, annotator: str, place: int, names: Sequence[str], at: float) -> Kept:
    order = tuple(names[where] for where in vote.order)
    return Kept(annotator, str(place), vote.repeat, order, _ranks(vote, order, names), vote.guess, vote.seconds, at)


def _ranks(vote: Vote, order: Sequence[str], names: Sequence[str]) -> dict[str, int] | None:
    """In the design's order of methods, so that no table or colour depends on what the first voter saw."""
    if vote.ranks is None:
        return None
    given = competition(dict(zip(order, vote.ranks, strict=True)))
    return {name: given[name] for name in names}
