"""What one participant saw at one look, for the organiser: the ballot as it was, and the names that it hid."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from engine.errors import UsageError
from engine.study.ballots import Ballot, drawn
from engine.study.database import study_database
from engine.study.design import Design
from engine.study.tables import Annotator, Item, Study
from engine.study.tables import Ballot as Given
from engine.study.tally import Kept, method_names, votes_of


@dataclass(frozen=True)
class Seen:
    """`methods` are those of the ballot's maps, place by place. `vote`: the answer that counts, if there is one."""

    ballot: Ballot
    methods: tuple[str, ...]
    vote: Kept | None


def seen(study: int, annotator: str, item: str, repeat: int = 0) -> Seen:
    """What the annotator of that pseudonym was given on that item, which is named by its place.

    Errors: they were not given it, or there is no such study.
    """
    with study_database().reading() as session:
        found = session.execute(_given(study, annotator, item, repeat)).one_or_none()
        if found is None:
            looks = "" if repeat == 0 else " a second time"
            raise UsageError(
                f"seen: {annotator} was not given item {item}{looks} in study {study}. Choose one of the results."
            )
        row, who, given = found
        names = method_names(Design.from_plain(row.design))
        ballot = drawn(session, row, who, given)
    return Seen(ballot, tuple(names[place] for place in given.order), _vote(study, annotator, item, repeat))


def _given(study: int, annotator: str, item: str, repeat: int) -> sa.Select[Study, Annotator, Given]:
    place = int(item) if item.isascii() and item.isdigit() and len(item) < 10 else -1
    found = sa.select(Study, Annotator, Given).join(Annotator, Annotator.study == Study.id)
    found = found.join(Given, Given.annotator == Annotator.id).join(Item, Item.id == Given.item)
    which = (Annotator.pseudonym == annotator, Item.place == place, Given.repeat == repeat)
    return found.where(Study.id == study, *which)


def _vote(study: int, annotator: str, item: str, repeat: int) -> Kept | None:
    wanted = (annotator, item, repeat)
    return next((vote for vote in votes_of(study) if (vote.annotator, vote.item, vote.repeat) == wanted), None)
