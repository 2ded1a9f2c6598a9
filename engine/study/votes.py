"""Votes: confirmed when they are on the disk, once each, in an order that does not depend on the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from engine.errors import UsageError, not_allowed
from engine.study.access import is_token
from engine.study.annotators import admit, closes_when_over
from engine.study.ballots import PLACES, find_ballot
from engine.study.database import study_database
from engine.study.design import PREDICT
from engine.study.items import item_prediction
from engine.study.tables import Event, IssuedBallot, Item, JsonObject, Study, Vote

MAX_SECONDS = 24 * 3600.0
MAX_TOKEN = 200
SUREST = 5
"""How sure a guess can be; 1 is least."""


@dataclass(frozen=True)
class Guess:
    """A guess of the model's answer: `label`, an index in `Ballot.classes`, and how sure the person is, 1 to 5."""

    label: int
    sure: int

    def __post_init__(self) -> None:
        for name, low, high in (("label", 0, None), ("sure", 1, SUREST)):
            _check_whole(f"guess.{name}", getattr(self, name), low, high)

    def to_json(self) -> JsonObject:
        return asdict(self)


@dataclass(frozen=True)
class Answer:
    """A participant's answer to a ballot.

    `ranks`: a number for each place A, B, ..., 1 is best, equal numbers are ties. `guess`: the answer in a study of
    guesses. Neither: cannot tell. `token`: chosen by the page for each answer; the same answer sent twice has the same.
    `seconds`: how long they looked.
    """

    ballot: str
    token: str
    ranks: tuple[int, ...] | None
    seconds: int | float = 0.0
    guess: Guess | None = None


@dataclass(frozen=True)
class Confirmation:
    """The vote is on the disk. `before`: it already was when this answer came."""

    token: str
    before: bool = False


@closes_when_over
def confirm(participant: int, answer: Answer) -> Confirmation:
    """Store the answer; returns when the vote would survive the death of the machine.

    The same token again changes nothing and is confirmed again, even after the study closed. Another answer to the
    same ballot supersedes the last one, which stays as history. Errors: the study takes no votes, the ballot is not
    this participant's, or the answer does not fit it.
    """
    _check_token(answer.token)
    with study_database().writing() as session:
        if _is_stored(session, participant, answer):
            return Confirmation(answer.token, before=True)
        study, annotator = admit(session, participant)
        if _is_stored(session, participant, answer):  # the same answer, sent at the same time, came first
            return Confirmation(answer.token, before=True)
        ballot = find_ballot(session, annotator, answer.ballot)
        same = (Vote.annotator == ballot.annotator, Vote.item == ballot.item, Vote.repeat == ballot.repeat)
        current = sa.update(Vote).where(*same, Vote.superseded_by.is_(None))
        session.execute(current.values(superseded_by=answer.token))
        _check_fits(session, study, ballot, answer)
        vote = Vote(
            study=ballot.study,
            annotator=ballot.annotator,
            item=ballot.item,
            repeat=ballot.repeat,
            order=ballot.order,
            ranks=_ranks_json(answer),
            guess=_guess_json(answer),
            seconds=_clamp_seconds(answer.seconds),
            token=answer.token,
            at=time.time(),
        )
        session.add(vote)
    return Confirmation(answer.token)


@closes_when_over
def undo(participant: int, token: str) -> str | None:
    """Undo this participant's last vote, which stays as history; returns the token of its ballot.

    `token`: as in an answer; the same undo sent twice undoes one vote. None: there is no vote.
    """
    _check_token(token)
    with study_database().writing() as session:
        study, annotator = admit(session, participant)
        own = sa.select(Vote).where(Vote.annotator == annotator.id)
        last = session.scalar(own.where(Vote.superseded_by == token))
        if last is None:
            last = session.scalars(own.where(Vote.superseded_by.is_(None)).order_by(Vote.id.desc())).first()
            if last is None:
                return None
            last.superseded_by = token
            details = {"annotator": annotator.pseudonym, "vote": last.token}
            session.add(Event(study=study.id, kind="vote undone", details=details, at=time.time()))
        return _ballot_of_vote(session, last).token


def _check_token(token: str) -> None:
    if not 16 <= len(token) <= MAX_TOKEN or not is_token(token):
        raise not_allowed("token", f"16 to {MAX_TOKEN} letters drawn at random", token)


def _is_stored(session: Session, participant: int, answer: Answer) -> bool:
    """Whether this answer is stored already. Errors: the token belongs to another answer."""
    vote = session.scalar(sa.select(Vote).where(Vote.annotator == participant, Vote.token == answer.token))
    if vote is None:
        return False
    stored = (_ballot_of_vote(session, vote).token, vote.ranks, vote.guess)
    if stored != (answer.ballot, _ranks_json(answer), _guess_json(answer)):
        raise UsageError("token: stands for another answer already. Draw a new one for each answer.")
    return True


def _ballot_of_vote(session: Session, vote: Vote) -> IssuedBallot:
    same = (
        IssuedBallot.annotator == vote.annotator,
        IssuedBallot.item == vote.item,
        IssuedBallot.repeat == vote.repeat,
    )
    return session.scalars(sa.select(IssuedBallot).where(*same)).one()


def _check_fits(session: Session, study: Study, ballot: IssuedBallot, answer: Answer) -> None:
    """Errors: not the ranks of all places of the ballot or, in a study of guesses, not a class of the model."""
    guessing = study.design["mode"] == PREDICT
    if answer.ranks is not None:
        if guessing or not ballot.order:
            raise not_allowed("ranks", "left out in a study of guesses", answer.ranks, "Give a guess.")
        _check_ranks(answer.ranks, len(ballot.order))
    if answer.guess is not None:
        classes = len(item_prediction(session.get_one(Item, ballot.item)).labels) if guessing else 0
        if not classes:
            raise not_allowed("guess", "left out in a study of rankings", answer.guess.label, "Give ranks.")
        _check_whole("guess.label", answer.guess.label, 0, classes - 1)


def _check_ranks(ranks: Sequence[int], places: int) -> None:
    if len(ranks) != places or not all(1 <= rank <= places for rank in ranks):
        allowed = f"{places} numbers from 1 to {places}, one for each of {', '.join(PLACES[:places])}"
        raise not_allowed("ranks", allowed, ranks, "Equal numbers are ties.")


def _check_whole(name: str, value: object, low: int, high: int | None) -> None:
    """A whole number; the value may come from a JSON client."""
    if type(value) is not int or value < low or (high is not None and value > high):
        raise not_allowed(name, f"a whole number from {low}" + (f" to {high}" if high is not None else ""), value)


def _ranks_json(answer: Answer) -> list[int] | None:
    return None if answer.ranks is None else list(answer.ranks)


def _guess_json(answer: Answer) -> JsonObject | None:
    return None if answer.guess is None else answer.guess.to_json()


def _clamp_seconds(seconds: int | float) -> float:
    """A browser's clock may say anything; no vote is lost because of it."""
    return float(min(max(seconds, 0.0), MAX_SECONDS)) if isinstance(seconds, int) or math.isfinite(seconds) else 0.0
