"""How far every study is, counted by the database: for lists, where reading all votes would be too slow."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from engine.study.database import study_database
from engine.study.tables import Annotator, Item, Vote


@dataclass(frozen=True)
class Counts:
    """`annotators` agreed to take part. `answers` count; practice and what was taken back do not."""

    annotators: int = 0
    answers: int = 0
    cannot_tell: int = 0


NOBODY = Counts()


def counts() -> dict[int, Counts]:
    """By the number of the study; one that nobody has joined is left out."""
    with study_database().reading() as session:
        people = {row[0]: row[1] for row in session.execute(_people())}
        votes = {study: (answers, unsure) for study, answers, unsure in session.execute(_votes())}
    return {study: Counts(people.get(study, 0), *votes.get(study, (0, 0))) for study in people | votes}


def frozen_items(study: int) -> int:
    """How many items are frozen, practice items too; of a draft only where it came from a file."""
    with study_database().reading() as session:
        return session.scalar(sa.select(sa.func.count()).where(Item.study == study)) or 0


def _people() -> sa.Select[int, int]:
    agreed = sa.select(Annotator.study, sa.func.count()).where(Annotator.consented.is_not(None))
    return agreed.group_by(Annotator.study)


def _votes() -> sa.Select[int, int, int]:
    unsure = sa.func.count().filter(Vote.ranks.is_(None), Vote.guess.is_(None))
    counted = sa.select(Vote.study, sa.func.count(), unsure).join(Item, Item.id == Vote.item)
    return counted.where(~Item.practice, Vote.superseded_by.is_(None)).group_by(Vote.study)
