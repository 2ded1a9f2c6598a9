"""Annotators: join by a link, consent, vote and undo votes, and continue on another device with a code.

There are no accounts. A vote is confirmed once it is on disk. It is stored only once, in an order that does not depend
on the clock.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from engine.errors import ExegesisError, UsageError, not_allowed
from engine.study.access import AttemptLimit, hash_code, is_token, matches_hash, new_code, new_pseudonym
from engine.study.database import (
    Annotator,
    IssuedBallot,
    Item,
    JsonObject,
    Study,
    Vote,
    is_same_ballot,
    study_database,
)
from engine.study.design import GUESSING, PLACES
from engine.study.items import item_prediction
from engine.study.studies import DRAFT, OPEN, end_study, log_event, was_over

CODE_ATTEMPTS = AttemptLimit(each=100, together=10_000)
"""Limit on wrong codes. A right code is never refused: a school class may share one address and its limit, and nobody
can guess one of 2 ** 79 codes."""
JOIN_ATTEMPTS = AttemptLimit(each=60, together=600, seconds=60, message="Too many people joined just now.")
"""Limit on joins by study and address: a school class behind one address can join, but nobody can fill the disk."""
MAX_SECONDS = 24 * 3600.0
"""Maximum stored viewing time."""
MAX_TOKEN = 200
SUREST = 5
"""Maximum sureness of a guess; the minimum is 1."""
_IS_OVER = "This study is closed. Your confirmed answers are saved. Thank you."
_P = ParamSpec("_P")
_T = TypeVar("_T")


class StudyNotOpen(ExegesisError):
    """The study takes no votes: it has not opened yet, or it is closed. Confirmed votes are kept."""


class _TimeIsOver(StudyNotOpen):
    """An open study has reached its end but is not closed yet."""

    def __init__(self, study: int) -> None:
        super().__init__(_IS_OVER)
        self.study = study


class UnknownIdentifier(ExegesisError):
    """A study, link, code, ballot or participant does not exist. The type does not say which."""


@dataclass(frozen=True)
class Participant:
    """A participant of a study. `id` stays on the server; logs and exports contain only the `pseudonym`."""

    id: int
    study: int
    pseudonym: str
    consented: bool


def closes_when_over(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Make a function close a study that has reached its end, so that setting the clock back does not reopen it."""

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
    """Add a participant to the study with this link. Also returns their code, of which only a hash is stored.

    `source`: origin of the request, for the limit on joins (see `access.attempt_source`); None: no limit.
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
    """Return the participant with this code if the study takes votes. `source`: for the limit on wrong codes."""
    with study_database().reading() as session:
        _open_study(session, token)
    return identify(token, code, source)


def identify(token: str, code: str, source: str) -> Participant:
    """Return the participant with this code, even if the study is closed, so that it can confirm a resent answer."""
    with study_database().reading() as session:
        study = _linked_study(session, token)
        code_hash = hash_code(code, study.token)
        row = session.scalar(sa.select(Annotator).where(Annotator.study == study.id, Annotator.code == code_hash))
    if row is None or not matches_hash(code, study.token, row.code):
        CODE_ATTEMPTS.begin(source)
        raise UnknownIdentifier(
            "Code: does not belong to anybody in this study. Check what you wrote down, or join again without a code."
        )
    return _to_participant(row)


@closes_when_over
def consent(participant: int) -> Participant:
    """Record the time of consent; a later call does not change it."""
    with study_database().writing() as session:
        _, row = admit(session, participant)
        row.consented = row.consented or time.time()
        return _to_participant(row)


def admit(session: Session, participant: int, lock: bool = True) -> tuple[Study, Annotator]:
    """Return the study and the participant if the study takes votes now.

    `lock`: on PostgreSQL, lock both rows until the transaction ends, so that a participant's answers are stored one at
    a time, and a study closes either before or after an answer. Readers need no lock.
    """
    row = session.get(Annotator, participant)
    if row is None:
        raise UnknownIdentifier("participant: unknown. Join the study again with its link.")
    query = sa.select(Study).where(Study.id == row.study)
    study = session.scalars(query.with_for_update(read=True) if lock else query).one()
    if lock:
        session.refresh(row, with_for_update=True)
    check_open(session, study)
    return study, row


def check_open(session: Session, study: Study) -> None:
    """Refuse a study that is not open or has reached its end, even if the server's clock was set back since."""
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
        raise UnknownIdentifier("Link: does not belong to any study. Ask the sender for a new one.")
    return study


def _to_participant(row: Annotator) -> Participant:
    return Participant(row.id, row.study, row.pseudonym, row.consented is not None)


@dataclass(frozen=True)
class Guess:
    """A guessed class. `label`: index in `Ballot.classes`. `sure`: how sure the person is, from 1 to 5."""

    label: int
    sure: int

    def __post_init__(self) -> None:
        for name, low, high in (("label", 0, None), ("sure", 1, SUREST)):
            _check_whole(f"guess.{name}", getattr(self, name), low, high)


@dataclass(frozen=True)
class Answer:
    """A participant's answer to a ballot.

    `ranks`: one per place A, B, ...; 1 is best, equal ranks are ties. `guess`: the answer in a study of guesses.
    Neither: cannot tell. `token`: chosen by the page for each answer; an answer that is sent twice has the same token.
    `seconds`: viewing time.
    """

    ballot: str
    token: str
    ranks: tuple[int, ...] | None
    seconds: int | float = 0.0
    guess: Guess | None = None

    @property
    def columns(self) -> JsonObject:
        """The columns of a vote that hold the answer."""
        return {"ranks": self.ranks and list(self.ranks), "guess": self.guess and asdict(self.guess)}


@dataclass(frozen=True)
class Confirmation:
    """Confirmation that a vote is on disk. `before`: whether it was already stored when this answer arrived."""

    token: str
    before: bool = False


@closes_when_over
def confirm(participant: int, answer: Answer) -> Confirmation:
    """Store the answer durably: when this returns, the vote survives a crash of the machine.

    Sending the same answer again changes nothing and is confirmed again, even after the study closed. Another answer to
    the same ballot supersedes the last one, which is kept as history. Errors: the study takes no votes, the ballot
    belongs to somebody else, the answer does not fit it, or the token belongs to another answer.
    """
    _check_token(answer.token)
    with study_database().writing() as session:
        if _is_stored(session, participant, answer):
            return Confirmation(answer.token, before=True)
        study, annotator = admit(session, participant)
        if _is_stored(session, participant, answer):  # the same answer, sent at the same time, was stored first
            return Confirmation(answer.token, before=True)
        ballot = _find_ballot(session, annotator, answer.ballot)
        current = sa.update(Vote).where(is_same_ballot(Vote, ballot), Vote.superseded_by.is_(None))
        session.execute(current.values(superseded_by=answer.token))
        _check_fits(session, study, ballot, answer)
        vote = Vote(
            study=ballot.study,
            annotator=ballot.annotator,
            item=ballot.item,
            repeat=ballot.repeat,
            order=ballot.order,
            seconds=_clamp_seconds(answer.seconds),
            token=answer.token,
            at=time.time(),
            **answer.columns,
        )
        session.add(vote)
    return Confirmation(answer.token)


@closes_when_over
def undo(participant: int, token: str) -> str | None:
    """Undo this participant's last vote, which is kept as history. Returns the token of its ballot, or None if no vote.

    `token`: as in an answer, so that an undo that is sent twice undoes only one vote.
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
            log_event(session, study.id, "vote undone", {"annotator": annotator.pseudonym, "vote": last.token})
        return _ballot_token(session, last)


def _check_token(token: str) -> None:
    if not 16 <= len(token) <= MAX_TOKEN or not is_token(token):
        raise not_allowed("token", f"16 to {MAX_TOKEN} random letters and digits", token)


def _is_stored(session: Session, participant: int, answer: Answer) -> bool:
    """Whether this answer is already stored. Errors: the token belongs to another answer."""
    vote = session.scalar(sa.select(Vote).where(Vote.annotator == participant, Vote.token == answer.token))
    if vote is None:
        return False
    stored = {"ranks": vote.ranks, "guess": vote.guess}
    if _ballot_token(session, vote) != answer.ballot or stored != answer.columns:
        raise UsageError("token: belongs to another answer already. Use a new one for each answer.")
    return True


def _ballot_token(session: Session, vote: Vote) -> str:
    return session.scalars(sa.select(IssuedBallot.token).where(is_same_ballot(IssuedBallot, vote))).one()


def _find_ballot(session: Session, annotator: Annotator, token: str) -> IssuedBallot:
    """Return the annotator's ballot with this token. Errors: it was issued to somebody else, or to nobody."""
    query = sa.select(IssuedBallot).where(IssuedBallot.token == token, IssuedBallot.annotator == annotator.id)
    issued = session.scalar(query)
    if issued is None:
        raise UnknownIdentifier("ballot: unknown, or issued to another participant. Reload the page.")
    return issued


def _check_fits(session: Session, study: Study, ballot: IssuedBallot, answer: Answer) -> None:
    """Refuse an answer of the wrong kind, ranks that do not cover the ballot's places, and labels without a class."""
    guessing = study.design["mode"] in GUESSING
    if answer.ranks is not None:
        if guessing or not ballot.order:
            raise not_allowed("ranks", "omitted in a study of guesses", answer.ranks, "Send a guess.")
        _check_ranks(answer.ranks, len(ballot.order))
    if answer.guess is not None:
        classes = len(item_prediction(session.get_one(Item, ballot.item)).labels) if guessing else 0
        if not classes:
            raise not_allowed("guess", "omitted in a study of rankings", answer.guess.label, "Send ranks.")
        _check_whole("guess.label", answer.guess.label, 0, classes - 1)


def _check_ranks(ranks: Sequence[int], places: int) -> None:
    if len(ranks) != places or not all(1 <= rank <= places for rank in ranks):
        allowed = f"{places} numbers from 1 to {places}, one for each of {', '.join(PLACES[:places])}"
        raise not_allowed("ranks", allowed, ranks, "Equal numbers are ties.")


def _check_whole(name: str, value: object, low: int, high: int | None) -> None:
    """Refuse anything but a whole number in the range. The value may come from a JSON client."""
    if type(value) is not int or value < low or (high is not None and value > high):
        raise not_allowed(name, f"a whole number from {low}" + (f" to {high}" if high is not None else ""), value)


def _clamp_seconds(seconds: int | float) -> float:
    """Clip seconds to 0 to `MAX_SECONDS`, so that no vote is lost because a browser's clock is wrong."""
    return float(min(max(seconds, 0.0), MAX_SECONDS)) if isinstance(seconds, int) or math.isfinite(seconds) else 0.0
