"""Studies and their states: draft, open, closed, archived. Every change is logged."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from cache import key_for
from engine.errors import ExegesisError, UsageError
from engine.format import count_text
from engine.progress import CancelToken, Report, silent
from engine.study.access import is_token, new_token
from engine.study.database import Annotator, Event, Item, Study, Vote, study_database
from engine.study.design import Design, check_available, check_design
from engine.study.items import count_items, store_items, take_snapshot

DRAFT, OPEN, CLOSED, ARCHIVED = STATES = ("draft", "open", "closed", "archived")
_COPY = "Copy of "


@dataclass(frozen=True)
class StudyRecord:
    """The state of a study when it was read. `token`: token of its join link. Times: seconds since 1970 (UTC)."""

    id: int
    token: str
    design: Design
    state: str
    created: float
    opened: float | None
    closed: float | None

    @property
    def takes_votes(self) -> bool:
        """Whether the study is open and has not reached its end by this machine's clock."""
        return self.state == OPEN and not is_over(self.design.closes_at)


def is_over(closes_at: int | float | None) -> bool:
    """Whether the time has passed by this machine's clock; False without a time."""
    return closes_at is not None and closes_at <= time.time()


def was_over(session: Session, closes_at: int | float | None) -> bool:
    """Whether the time has passed by this machine's clock, or had passed before the clock was set back.

    The present is never earlier than the newest time in the database, over all events and the votes of open studies.
    (Votes of other studies may come from a file, with the times of another machine.) If the clock runs ahead while
    votes arrive, it therefore ends every study whose end it passes, as if the study had been read at that time.
    """
    return closes_at is not None and (is_over(closes_at) or closes_at <= _newest_time(session))


def _newest_time(session: Session) -> float:
    of_study = sa.select(sa.func.max(Vote.at)).where(Vote.study == Study.id).correlate(Study).scalar_subquery()
    voted = session.scalar(sa.select(sa.func.max(of_study)).where(Study.state == OPEN))
    return max(voted or 0.0, session.scalar(sa.select(sa.func.max(Event.at))) or 0.0)


def create(design: Design) -> StudyRecord:
    """Create a draft. Errors: those of `check_design`, or a method is not available for the model."""
    with study_database().writing() as session:
        return _create(session, _check(design), {})


def duplicate(study: int) -> StudyRecord:
    """Create a draft with the same design and a new link. Participants and an end in the past are not copied."""
    with study_database().writing() as session:
        design = Design.from_json(_row(session, study).design)
        closes_at = None if is_over(design.closes_at) else design.closes_at
        title = design.title if design.title.startswith(_COPY) else f"{_COPY}{design.title}"[:200]
        copy = dataclasses.replace(design, title=title, closes_at=closes_at)
        return _create(session, copy, {"copy_of": study})


def change(study: int, design: Design) -> StudyRecord:
    """Replace the design of a draft. Errors: those of `create`; not a draft, or imported with its explanations."""
    with study_database().writing() as session:
        row = _row_in_state(session, study, DRAFT, "be changed")
        if count_items(session, study):
            raise ExegesisError(
                f"study {study}: was imported with its explanations, so it cannot change. Duplicate it, and change "
                "the copy."
            )
        row.design = _check(design).to_json()
        log_event(session, study, "changed", {})
        return to_record(row)


def find(study: int) -> StudyRecord:
    """Return the study with this number. Errors: it does not exist."""
    records = _read_studies(sa.select(Study).where(Study.id == study))
    if not records:
        raise _no_study(study)
    return records[0]


def find_by_token(token: str) -> StudyRecord | None:
    """Return the study with this token in its join link, or None."""
    records = _read_studies(sa.select(Study).where(Study.token == token)) if is_token(token) else []
    return records[0] if records else None


def list_studies() -> list[StudyRecord]:
    """Return all studies, including archived ones, the newest first."""
    return _read_studies(sa.select(Study).order_by(Study.id.desc()))


def _read_studies(query: sa.Select[Study]) -> list[StudyRecord]:
    """Read studies, and close those that are open past their end."""
    with study_database().reading() as session:
        rows = [
            (row, row.state == OPEN and was_over(session, row.design.get("closes_at")))
            for row in session.scalars(query)
        ]
    return [end_study(row.id) if is_overdue else to_record(row) for row, is_overdue in rows]


def open_study(study: int, report: Report = silent, cancel: CancelToken | None = None) -> StudyRecord:
    """Take the snapshot and open the study; if one fails, neither happens. An imported study already has a snapshot.

    Errors: the study is not a draft, its end has passed, it was changed meanwhile, `Cancelled`, those of the engine.
    """
    record = find(study)
    if record.state != DRAFT:
        raise _wrong_state(study, record.state, DRAFT, "be opened")
    if is_over(record.design.closes_at):
        raise UsageError("design.closes_at: must be in the future when the study opens. Choose a later time, or none.")
    with study_database().reading() as session:
        stored = count_items(session, study)
    items = [] if stored else take_snapshot(record.design, report, cancel)
    with study_database().writing() as session:
        row = _row_in_state(session, study, DRAFT, "be opened")
        if Design.from_json(row.design) != record.design:
            raise ExegesisError(f"study {study}: was changed while it was being opened. Open it again.")
        store_items(session, study, items)
        row.state, row.opened = OPEN, time.time()
        details = {"design": row.design, "digest": key_for(row.design), "items": stored or len(items)}
        log_event(session, study, "opened", details)
        return to_record(row)


def has_snapshot(study: int) -> bool:
    """Whether the study has stored items. A draft has them only if it was imported."""
    with study_database().reading() as session:
        return count_items(session, study) > 0


def close(study: int) -> StudyRecord:
    """Close an open study, so that it takes no more votes. Errors: the study is not open."""
    with study_database().writing() as session:
        return _close(session, _row_in_state(session, study, OPEN, "be closed"), {})


def end_study(study: int) -> StudyRecord:
    """Close an open study that has reached its end. Setting the clock back later does not reopen it."""
    with study_database().writing() as session:
        row = _row(session, study, lock=True)
        return _close(session, row, {"because": "its time was over"}) if row.state == OPEN else to_record(row)


def _close(session: Session, row: Study, details: Mapping[str, Any]) -> StudyRecord:
    row.state, row.closed = CLOSED, time.time()
    log_event(session, row.id, "closed", details)
    return to_record(row)


def archive(study: int) -> StudyRecord:
    """Archive a closed study. Its votes and results stay. Errors: the study is not closed."""
    with study_database().writing() as session:
        row = _row_in_state(session, study, CLOSED, "be archived")
        row.state = ARCHIVED
        log_event(session, study, "archived", {})
        return to_record(row)


def delete(study: int) -> None:
    """Delete a study with its items, participants and votes. The caller must ask for confirmation."""
    with study_database().writing() as session:
        _row(session, study)
        session.execute(sa.delete(Study).where(Study.id == study))


def study_log(study: int) -> list[tuple[str, float, dict[str, Any]]]:
    """Return the events of a study in order, each as kind, time and details."""
    with study_database().reading() as session:
        events = session.scalars(sa.select(Event).where(Event.study == study).order_by(Event.id))
        return [(event.kind, event.at, event.details) for event in events]


@dataclass(frozen=True)
class AnswerCounts:
    """Number of people and answers of a study.

    `annotators`: people who consented. `answers`: excludes practice and undone answers. `cannot_tell`: answers without
    a choice. `voters`: people with at least one of these answers.
    """

    annotators: int = 0
    answers: int = 0
    cannot_tell: int = 0
    voters: int = 0

    @property
    def people(self) -> str:
        """The number of annotators, and of voters if it differs, such as 12 annotators (9 voted)."""
        voted = "" if self.voters == self.annotators else f" ({self.voters:,} voted)"
        return f"{count_text(self.annotators, 'annotator')}{voted}"


NO_ANSWERS = AnswerCounts()


def count_answers() -> dict[int, AnswerCounts]:
    """Count answers by study, without studies that nobody joined. The database counts, so that lists are fast."""
    people = sa.select(Annotator.study, sa.func.count()).where(Annotator.consented.is_not(None))
    unsure = sa.func.count().filter(Vote.ranks.is_(None), Vote.guess.is_(None))
    voters = sa.func.count(Vote.annotator.distinct())
    votes = sa.select(Vote.study, sa.func.count(), unsure, voters).join(Item, Item.id == Vote.item)
    votes = votes.where(~Item.practice, Vote.superseded_by.is_(None)).group_by(Vote.study)
    with study_database().reading() as session:
        annotators = {row[0]: row[1] for row in session.execute(people.group_by(Annotator.study))}
        answers = {study: tuple(numbers) for study, *numbers in session.execute(votes)}
    return {study: AnswerCounts(annotators.get(study, 0), *answers.get(study, ())) for study in annotators | answers}


def to_record(row: Study) -> StudyRecord:
    """Convert a row to a record."""
    return StudyRecord(row.id, row.token, Design.from_json(row.design), row.state, row.created, row.opened, row.closed)


def _check(design: Design) -> Design:
    checked = check_design(design)
    check_available(checked)
    return checked


def _create(session: Session, design: Design, details: Mapping[str, Any]) -> StudyRecord:
    row = Study(token=new_token(), design=design.to_json(), state=DRAFT, created=time.time())
    session.add(row)
    session.flush()
    log_event(session, row.id, "created", details)
    return to_record(row)


def _row(session: Session, study: int, lock: bool = False) -> Study:
    """Return the row of a study. `lock`: on PostgreSQL, lock it until the transaction ends; SQLite locks everything."""
    query = sa.select(Study).where(Study.id == study)
    row = session.scalar(query.with_for_update() if lock else query)
    if row is None:
        raise _no_study(study)
    return row


def _no_study(study: int) -> ExegesisError:
    return ExegesisError(f"study: there is no study {study}. List them with: exegesis study list.")


def _row_in_state(session: Session, study: int, state: str, wish: str) -> Study:
    row = _row(session, study, lock=True)
    if row.state != state:
        raise _wrong_state(study, row.state, state, wish)
    return row


def _wrong_state(study: int, got: str, wanted: str, wish: str) -> ExegesisError:
    needed = "a draft" if wanted == DRAFT else wanted
    return ExegesisError(f"study {study}: must be {needed} to {wish}, but it is {got}.")


def log_event(session: Session, study: int, kind: str, details: Mapping[str, Any]) -> None:
    """Add an event to the study's log."""
    session.add(Event(study=study, kind=kind, details=dict(details), at=time.time()))
