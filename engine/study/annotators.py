"""Participants: they join by a link, consent, and continue elsewhere with a code. There are no accounts."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from engine.errors import ExegesisError
from engine.study.access import AttemptLimit, hash_code, is_token, matches_hash, new_code, new_pseudonym
from engine.study.database import study_database
from engine.study.studies import DRAFT, OPEN, end_study, was_over
from engine.study.tables import Annotator, Study

CODE_ATTEMPTS = AttemptLimit(each=100, together=10_000)
"""Limit of wrong codes. A right one is never refused: a class behind one address shares its limit, and nobody guesses
one of 2 ** 79 codes."""
JOIN_ATTEMPTS = AttemptLimit(each=60, together=600, seconds=60, message="Too many people joined just now.")
"""Limit of joins by study and address: a class behind one address may join, nobody fills the disk."""

_IS_OVER = "This study is over. What you had confirmed is kept; thank you."
_P = ParamSpec("_P")
_T = TypeVar("_T")


class StudyNotOpen(ExegesisError):
    """The study takes no votes: it has not begun, or it is over. Confirmed votes stay."""


class _TimeIsOver(StudyNotOpen):
    """The time of an open study is over, and it is not closed yet."""

    def __init__(self, study: int) -> None:
        super().__init__(_IS_OVER)
        self.study = study


class UnknownIdentifier(ExegesisError):
    """No such link, code, ballot or participant. The error does not say more."""


@dataclass(frozen=True)
class Participant:
    """A participant of one study. `id` stays on the server; logs and exports have the `pseudonym` only."""

    id: int
    study: int
    pseudonym: str
    consented: bool


def closes_when_over(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Close a study whose time is over when the function notices it: a clock that is set back opens nothing again."""

    @functools.wraps(function)
    def closing(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except _TimeIsOver as error:
            end_study(error.study)
            raise

    return closing


@closes_when_over
def join(token: str, source: str | None = None) -> tuple[Participant, str]:
    """Add a participant to the study of that link; returns the code too, which cannot be read again.

    `source`: the origin, for the limit of joins (`access.attempt_source`); None: no limit.
    """
    if source is not None:
        with study_database().reading() as session:
            JOIN_ATTEMPTS.begin(f"{_open_study(session, token).id} {source}")
    code = new_code()
    with study_database().writing() as session:
        study = _open_study(session, token)
        code_hash = hash_code(code, study.token)
        row = Annotator(study=study.id, pseudonym=new_pseudonym(), code=code_hash, joined=time.time())
        session.add(row)
        session.flush()
        return _to_participant(row), code


@closes_when_over
def resume(token: str, code: str, source: str) -> Participant:
    """The participant of that code, if the study takes votes. `source`: as for `join`."""
    with study_database().reading() as session:
        _open_study(session, token)
    return identify(token, code, source)


def identify(token: str, code: str, source: str) -> Participant:
    """The participant of that code, even if the study is over: an answer that is sent again is confirmed again."""
    with study_database().reading() as session:
        study = _linked_study(session, token)
        code_hash = hash_code(code, study.token)
        row = session.scalar(sa.select(Annotator).where(Annotator.study == study.id, Annotator.code == code_hash))
    if row is None or not matches_hash(code, study.token, row.code):
        CODE_ATTEMPTS.begin(source)
        raise UnknownIdentifier("code: belongs to nobody in this study. Look at where you wrote it down, or join anew.")
    return _to_participant(row)


@closes_when_over
def consent(participant: int) -> Participant:
    """Record the time of consent; the first time counts."""
    with study_database().writing() as session:
        _, row = admit(session, participant)
        row.consented = row.consented or time.time()
        return _to_participant(row)


def admit(session: Session, participant: int, lock: bool = True) -> tuple[Study, Annotator]:
    """The study and the participant, if votes are taken now.

    `lock`: on PostgreSQL both rows are locked until the transaction ends: the answers of a participant follow one
    another, and a study closes before an answer or after it. Readers lock nothing.
    """
    row = session.get(Annotator, participant)
    if row is None:
        raise UnknownIdentifier("participant: unknown. Join the study anew by its link.")
    query = sa.select(Study).where(Study.id == row.study)
    study = session.scalars(query.with_for_update(read=True) if lock else query).one()
    if lock:
        session.refresh(row, with_for_update=True)
    check_open(session, study)
    return study, row


def check_open(session: Session, study: Study) -> None:
    """Errors: the study is not open, or its time is over by the server's clock, or was before that was set back."""
    if study.state == DRAFT:
        raise StudyNotOpen("This study has not opened yet. Come back later.")
    if study.state != OPEN:
        raise StudyNotOpen(_IS_OVER)
    if was_over(session, study.design.get("closes_at")):
        raise _TimeIsOver(study.id)


def _open_study(session: Session, token: str) -> Study:
    study = _linked_study(session, token)
    check_open(session, study)
    return study


def _linked_study(session: Session, token: str) -> Study:
    study = session.scalar(sa.select(Study).where(Study.token == token)) if is_token(token) else None
    if study is None:
        raise UnknownIdentifier("link: leads to no study. Ask who sent it to you for another.")
    return study


def _to_participant(row: Annotator) -> Participant:
    return Participant(row.id, row.study, row.pseudonym, row.consented is not None)
