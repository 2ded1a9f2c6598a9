"""Votes: confirmed when they are on the disk, once each, in an order that does not depend on the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from engine.errors import UsageError, not_allowed
from engine.study.annotators import notes_the_end, seat
from engine.study.ballots import PLACES, given_ballot
from engine.study.codes import is_token
from engine.study.database import study_database
from engine.study.design import PREDICT
from engine.study.forward.guesses import SUREST
from engine.study.freezing import frozen_prediction
from engine.study.tables import Annotator, Ballot, Event, Item, Plain, Study, Vote

LONGEST_LOOK = 24 * 3600.0
LONGEST_TOKEN = 200


@dataclass(frozen=True)
class Guess:
    """What a participant takes for the model's answer: a number in `Ballot.classes`, and how sure they are, 1 to 5."""

    label: int
    sure: int

    def __post_init__(self) -> None:
        for name, low, high in (("label", 0, None), ("sure", 1, SUREST)):
            _check_whole(f"guess.{name}", getattr(self, name), low, high)

    def as_plain(self) -> Plain:
        return {"label": self.label, "sure": self.sure}


@dataclass(frozen=True)
class Answer:
    """What a participant says to a ballot.

    `ranks`: a number for each place A, B, ..., 1 is best, equal numbers are ties. `guess`: the answer in a study of
    guesses instead. Neither: cannot tell. `token`: drawn by the page when the answer is made; the same answer sent
    twice has the same. `seconds`: how long they looked.
    """

    ballot: str
    token: str
    ranks: tuple[int, ...] | None
    seconds: int | float = 0.0
    guess: Guess | None = None


@dataclass(frozen=True)
class Confirmed:
    """The vote is on the disk. `before`: it already was when this answer came."""

    token: str
    before: bool = False


@notes_the_end
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
        study, annotator = seat(session, person)
        if _known(session, person, answer):  # the same answer, that came at the same time, was first
            return Confirmed(answer.token, before=True)
        ballot = given_ballot(session, annotator, answer.ballot)
        _supersede(session, _current(ballot), answer.token)
        _check_fits(session, study, ballot, answer)
        session.add(_vote(ballot, answer))
    return Confirmed(answer.token)


@notes_the_end
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
    if not 16 <= len(token) <= LONGEST_TOKEN or not is_token(token):
        raise not_allowed("token", f"16 to {LONGEST_TOKEN} letters drawn at random", token)


def _known(session: Session, person: int, answer: Answer) -> bool:
    """Whether this answer was kept before. Errors: the token was used for another answer."""
    kept = session.scalar(sa.select(Vote).where(Vote.annotator == person, Vote.token == answer.token))
    if kept is None:
        return False
    said = (_ballot_of(session, kept).token, kept.ranks, kept.guess)
    if said != (answer.ballot, _listed(answer.ranks), _guessed(answer)):
        raise UsageError("token: stands for another answer already. Draw a new one for each answer.")
    return True


def _vote(ballot: Ballot, answer: Answer) -> Vote:
    return Vote(
        study=ballot.study,
        annotator=ballot.annotator,
        item=ballot.item,
        repeat=ballot.repeat,
        order=ballot.order,
        ranks=_listed(answer.ranks),
        guess=_guessed(answer),
        seconds=_bounded(answer.seconds),
        token=answer.token,
        at=time.time(),
    )


def _check_fits(session: Session, study: Study, ballot: Ballot, answer: Answer) -> None:
    """Ranks of all that is on the ballot, or in a study of guesses a class of the model."""
    guessing = study.design["mode"] == PREDICT
    if answer.ranks is not None:
        _check_ranks(answer.ranks, 0 if guessing else len(ballot.order))
    if answer.guess is not None:
        classes = len(frozen_prediction(session.get_one(Item, ballot.item)).labels) if guessing else 0
        _check_label(answer.guess.label, classes)


def _check_ranks(ranks: Sequence[int], places: int) -> None:
    if not places:
        raise not_allowed("ranks", "left out in a study of guesses", ranks, "Give a guess.")
    if len(ranks) != places or not all(1 <= rank <= places for rank in ranks):
        allowed = f"{places} numbers from 1 to {places}, one for each of {', '.join(PLACES[:places])}"
        raise not_allowed("ranks", allowed, ranks, "Equal numbers are ties.")


def _check_label(label: int, classes: int) -> None:
    if not classes:
        raise not_allowed("guess", "left out in a study of rankings", label, "Give ranks.")
    _check_whole("guess.label", label, 0, classes - 1)


def _check_whole(name: str, value: object, low: int, high: int | None) -> None:
    """A whole number that may be a JSON client's."""
    if type(value) is not int or value < low or (high is not None and value > high):
        raise not_allowed(name, f"a whole number from {low}" + (f" to {high}" if high is not None else ""), value)


def _listed(ranks: Sequence[int] | None) -> list[int] | None:
    return None if ranks is None else list(ranks)


def _guessed(answer: Answer) -> Plain | None:
    return None if answer.guess is None else answer.guess.as_plain()


def _bounded(seconds: int | float) -> float:
    """A browser's clock may say anything; no vote is lost for it."""
    return float(min(max(seconds, 0.0), LONGEST_LOOK)) if isinstance(seconds, int) or math.isfinite(seconds) else 0.0


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
