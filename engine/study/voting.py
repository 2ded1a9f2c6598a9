"""Votes: confirmed when they are on the disk, once each, in an order that does not depend on the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from engine.errors import UsageError, not_allowed
from engine.study.annotators import seat
from engine.study.ballots import PLACES, given_ballot
from engine.study.database import study_database
from engine.study.tables import Annotator, Ballot, Event, Plain, Vote

LONGEST_LOOK = 24 * 3600.0
LONGEST_TOKEN = 200


@dataclass(frozen=True)
class Answer:
    """What a participant says to a ballot.

    `ranks`: a number for each place A, B, ..., 1 is best, equal numbers are ties; None: cannot tell.
    `token`: drawn by the page when the answer is made; the same answer sent twice has the same. `seconds`: how long
    they looked. `guess`: the answer in a study of guesses.
    """

    ballot: str
    token: str
    ranks: tuple[int, ...] | None
    seconds: int | float = 0.0
    guess: Plain | None = None


@dataclass(frozen=True)
class Confirmed:
    """The vote is on the disk. `before`: it already was when this answer came."""

    token: str
    before: bool = False


def confirm(person: int, answer: Answer) -> Confirmed:
    """Keeps the answer; it returns when the vote would survive the death of the machine.

    The same token again changes nothing and is confirmed again, even after the study closed. Another answer to the
    same ballot takes the place of the last one, which is kept as history. Errors: the study takes no votes, the ballot
    is not this participant's, or the ranks do not fit it.
    """
    _check_token(answer.token)
    with study_database().writing() as session:
        if _known(session, person, answer):
            return Confirmed(answer.token, before=True)
        _, annotator = seat(session, person)
        if _known(session, person, answer):  # the same answer, that came at the same time, was first
            return Confirmed(answer.token, before=True)
        ballot = given_ballot(session, annotator, answer.ballot)
        _supersede(session, _current(ballot), answer.token)
        session.add(_vote(ballot, answer))
    return Confirmed(answer.token)


def undo(person: int, token: str) -> str | None:
    """Takes back this participant's last vote, which is kept as history; returns the name of its ballot.

    `token` as in an answer: the same undo sent twice takes back one vote. None: there is no vote.
    """
    _check_token(token)
    with study_database().writing() as session:
        study, annotator = seat(session, person)
        last = session.scalar(_of(annotator, Vote.superseded_by == token))
        if last is None:
            last = session.scalars(_of(annotator, Vote.superseded_by.is_(None)).order_by(Vote.id.desc())).first()
            if last is None:
                return None
            last.superseded_by = token
            details = {"annotator": annotator.pseudonym, "vote": last.token}
            session.add(Event(study=study.id, kind="vote undone", details=details, at=time.time()))
        return _ballot_of(session, last).token


def _check_token(token: str) -> None:
    if not 16 <= len(token) <= LONGEST_TOKEN:
        raise not_allowed("token", f"16 to {LONGEST_TOKEN} letters drawn at random", token)


def _known(session: Session, person: int, answer: Answer) -> bool:
    """Whether this answer was kept before. Errors: the token was used for another answer."""
    kept = session.scalar(sa.select(Vote).where(Vote.annotator == person, Vote.token == answer.token))
    if kept is None:
        return False
    if _ballot_of(session, kept).token != answer.ballot or kept.ranks != _listed(answer.ranks):
        raise UsageError("token: stands for another answer already. Draw a new one for each answer.")
    return True


def _vote(ballot: Ballot, answer: Answer) -> Vote:
    return Vote(
        study=ballot.study,
        annotator=ballot.annotator,
        item=ballot.item,
        repeat=ballot.repeat,
        order=ballot.order,
        ranks=_checked(answer.ranks, len(ballot.order)),
        guess=answer.guess,
        seconds=_bounded(answer.seconds),
        token=answer.token,
        at=time.time(),
    )


def _checked(ranks: Sequence[int] | None, places: int) -> list[int] | None:
    if ranks is not None and (len(ranks) != places or not all(1 <= rank <= places for rank in ranks)):
        allowed = f"{places} numbers from 1 to {places}, one for each of {', '.join(PLACES[:places])}"
        raise not_allowed("ranks", allowed, ranks, "Equal numbers are ties.")
    return _listed(ranks)


def _listed(ranks: Sequence[int] | None) -> list[int] | None:
    return None if ranks is None else list(ranks)


def _bounded(seconds: int | float) -> float:
    """A browser's clock may say anything; no vote is lost for it."""
    return min(max(float(seconds), 0.0), LONGEST_LOOK) if math.isfinite(seconds) else 0.0


def _current(ballot: Ballot) -> sa.ColumnElement[bool]:
    same = (Vote.annotator == ballot.annotator, Vote.item == ballot.item, Vote.repeat == ballot.repeat)
    return sa.and_(*same, Vote.superseded_by.is_(None))


def _supersede(session: Session, which: sa.ColumnElement[bool], token: str) -> None:
    session.execute(sa.update(Vote).where(which).values(superseded_by=token))


def _of(annotator: Annotator, which: sa.ColumnElement[bool]) -> sa.Select[Vote]:
    return sa.select(Vote).where(Vote.annotator == annotator.id, which)


def _ballot_of(session: Session, vote: Vote) -> Ballot:
    same = (Ballot.annotator == vote.annotator, Ballot.item == vote.item, Ballot.repeat == vote.repeat)
    return session.scalars(sa.select(Ballot).where(*same)).one()
