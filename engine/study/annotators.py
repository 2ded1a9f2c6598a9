"""Participants: they join by a link, agree, and go on elsewhere with a code. There is no account."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from engine.errors import ExegesisError
from engine.study.codes import code_hash, is_code, is_token, new_code, new_pseudonym
from engine.study.database import study_database
from engine.study.limits import Tries
from engine.study.studies import DRAFT, OPEN, end, was_over
from engine.study.tables import Annotator, Study

TRIES = Tries(each=100, together=10_000)
"""Wrong codes. A right one is never refused: a class behind one address shares its limit, and of 2 ** 79 codes nobody
guesses one."""
JOINS = Tries(each=60, together=600, seconds=60, said="Too many people joined just now.")
"""Who joined which study, from where: a class behind one address may join, nobody fills the disk."""

_IS_OVER = "This study is over. What you had confirmed is kept; thank you."
_P = ParamSpec("_P")
_T = TypeVar("_T")


class NotOpen(ExegesisError):
    """The study takes no votes: it has not begun, or it is over. What was confirmed before is kept."""


class _Over(NotOpen):
    """The time of an open study is over, which is not noted yet."""

    def __init__(self, study: int) -> None:
        super().__init__(_IS_OVER)
        self.study = study


class NotKnown(ExegesisError):
    """No such link, code or participant. What exactly was wrong is not told."""


@dataclass(frozen=True)
class Person:
    """A participant of one study. `id` stays on the server; `pseudonym` is all that logs and exports hold."""

    id: int
    study: int
    pseudonym: str
    consented: bool


def notes_the_end(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """Where a study's time is found to be over, that is kept: no clock that is set back opens it again."""

    @functools.wraps(work)
    def noting(*args: _P.args, **named: _P.kwargs) -> _T:
        try:
            return work(*args, **named)
        except _Over as over:
            end(over.study)
            raise

    return noting


@notes_the_end
def join(token: str, source: str | None = None) -> tuple[Person, str]:
    """A new participant of the study of that link, and the code that is told this once.

    `source`: from where, for the limit of how many join at once (`limits.source_of`); None: who joins is made up here.
    """
    if source is not None:
        with study_database().reading() as session:
            JOINS.begin(f"{_linked(session, token).id} {source}")
    code = new_code()
    with study_database().writing() as session:
        study = _linked(session, token)
        hashed = code_hash(code, study.token)
        person = Annotator(study=study.id, pseudonym=new_pseudonym(), code=hashed, joined=time.time())
        session.add(person)
        session.flush()
        return _person(person), code


@notes_the_end
def resume(token: str, code: str, source: str) -> Person:
    """The participant whose code that is, if votes are taken now. `source`: where it was typed (`limits.source_of`)."""
    with study_database().reading() as session:
        _linked(session, token)
    return recognise(token, code, source)


def recognise(token: str, code: str, source: str) -> Person:
    """The participant whose code that is, even when the study is over: an answer sent again is confirmed again."""
    with study_database().reading() as session:
        study = _named(session, token)
        hashed = code_hash(code, study.token)
        found = session.scalar(sa.select(Annotator).where(Annotator.study == study.id, Annotator.code == hashed))
    if found is None or not is_code(code, study.token, found.code):
        TRIES.begin(source)
        raise NotKnown("code: belongs to nobody in this study. Look at where you wrote it down, or join anew.")
    return _person(found)


@notes_the_end
def consent(person: int) -> Person:
    """Notes when this participant agreed; the first time counts."""
    with study_database().writing() as session:
        _, found = seat(session, person)
        found.consented = found.consented or time.time()
        return _person(found)


def seat(session: Session, person: int, hold: bool = True) -> tuple[Study, Annotator]:
    """The study and the participant, if votes are taken now.

    hold: on PostgreSQL both rows are held until the transaction ends: one participant's answers follow one another,
    and a study closes before an answer or after it. Who only reads holds nothing.
    """
    found = session.get(Annotator, person)
    if found is None:
        raise NotKnown("participant: unknown. Join the study anew by its link.")
    of_study = sa.select(Study).where(Study.id == found.study)
    study = session.scalars(of_study.with_for_update(read=True) if hold else of_study).one()
    if hold:
        session.refresh(found, with_for_update=True)
    check_open(session, study)
    return study, found


def check_open(session: Session, study: Study) -> None:
    """Errors: the study is not open, or its time is over by the server's clock, or was before that was set back."""
    if study.state == DRAFT:
        raise NotOpen("This study has not opened yet. Come back later.")
    if study.state != OPEN:
        raise NotOpen(_IS_OVER)
    if was_over(session, study.design.get("closes_at")):
        raise _Over(study.id)


def _linked(session: Session, token: str) -> Study:
    study = _named(session, token)
    check_open(session, study)
    return study


def _named(session: Session, token: str) -> Study:
    study = session.scalar(sa.select(Study).where(Study.token == token)) if is_token(token) else None
    if study is None:
        raise NotKnown("link: leads to no study. Ask who sent it to you for another.")
    return study


def _person(row: Annotator) -> Person:
    return Person(row.id, row.study, row.pseudonym, row.consented is not None)
