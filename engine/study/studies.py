"""Studies from their making to their end: draft, open, closed, archived. What happens to each is logged."""

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
from engine.progress import CancelToken, Report, silent
from engine.study.codes import is_token, new_token
from engine.study.database import study_database
from engine.study.design import Design, check, check_served
from engine.study.freezing import FrozenItem, freeze
from engine.study.tables import Event, Item, Study, Vote

DRAFT, OPEN, CLOSED, ARCHIVED = STATES = ("draft", "open", "closed", "archived")
_COPY = "Copy of "


@dataclass(frozen=True)
class StudyRecord:
    """A study as it stood when it was read. `token` is what its join link holds. Times: seconds since 1970 (UTC)."""

    id: int
    token: str
    design: Design
    state: str
    created: float
    opened: float | None
    closed: float | None

    @property
    def takes_votes(self) -> bool:
        """Whether it is open and its time is not over by this machine's clock."""
        return self.state == OPEN and not is_over(self.design.closes_at)


def is_over(closes_at: int | float | None) -> bool:
    """Whether that time has come by this machine's clock."""
    return closes_at is not None and closes_at <= time.time()


def was_over(session: Session, closes_at: int | float | None) -> bool:
    """Whether that time has come by this machine's clock, or had come before the clock was set back.

    The newest time that the database has seen is the least that it can be now: what happened to any study, and votes of
    those that are open. (Votes of others may come from a file, with the times of another machine.) A clock that ran
    ahead while votes came therefore ends the studies whose time it passed, as if somebody had looked at them then.
    """
    return closes_at is not None and (is_over(closes_at) or closes_at <= _newest(session))


def create(design: Design) -> StudyRecord:
    """A draft. Errors: those of `check`, and a method that the model has not."""
    with study_database().writing() as session:
        return _created(session, _served(design), {})


def _served(design: Design) -> Design:
    checked = check(design)
    check_served(checked)
    return checked


def duplicate(study: int) -> StudyRecord:
    """A draft of the same design with a link of its own; nobody has joined it, and its time is not over."""
    with study_database().writing() as session:
        design = Design.from_plain(_row(session, study).design)
        closes_at = None if is_over(design.closes_at) else design.closes_at
        title = design.title if design.title.startswith(_COPY) else f"{_COPY}{design.title}"[:200]
        copy = dataclasses.replace(design, title=title, closes_at=closes_at)
        return _created(session, copy, {"copy_of": study})


def change(study: int, design: Design) -> StudyRecord:
    """Another design for a draft. Errors: those of `create`; the study has opened, or came with its explanations."""
    with study_database().writing() as session:
        row = _in_state(session, study, DRAFT, "be changed")
        if _frozen_items(session, study):
            raise ExegesisError(f"study {study}: came with its explanations. Duplicate it, and change the copy.")
        row.design = _served(design).as_plain()
        _log(session, study, "changed", {})
        return record_of(row)


def find(study: int) -> StudyRecord:
    """The study of that number. Errors: there is none."""
    with study_database().reading() as session:
        row = _row(session, study)
        over = _past(session, row)
    return end(study) if over else record_of(row)


def by_token(token: str) -> StudyRecord | None:
    """The study that a join link leads to."""
    if not is_token(token):
        return None
    with study_database().reading() as session:
        row = session.scalar(sa.select(Study).where(Study.token == token))
        over = row is not None and _past(session, row)
    if row is None:
        return None
    return end(row.id) if over else record_of(row)


def all_studies() -> list[StudyRecord]:
    """The newest first, archived ones too."""
    with study_database().reading() as session:
        found = [(row, _past(session, row)) for row in session.scalars(sa.select(Study).order_by(Study.id.desc()))]
    return [end(row.id) if over else record_of(row) for row, over in found]


def open_study(study: int, report: Report = silent, cancel: CancelToken | None = None) -> StudyRecord:
    """Freezes what people will see, then lets them in: both or neither. What came from a file is frozen already.

    Errors: it is no draft, its time is over, it was changed meanwhile, `Cancelled`, those of the engine.
    """
    found = find(study)
    _check_can_open(found)
    with study_database().reading() as session:
        there = _frozen_items(session, study)
    frozen = [] if there else freeze(found.design, report, cancel)
    with study_database().writing() as session:
        row = _in_state(session, study, DRAFT, "be opened")
        if Design.from_plain(row.design) != found.design:
            raise ExegesisError(f"study {study}: was changed while it was being opened. Open it again.")
        _store(session, study, frozen)
        row.state, row.opened = OPEN, time.time()
        items = there or len(frozen)
        _log(session, study, "opened", {"design": row.design, "digest": key_for(row.design), "items": items})
        return record_of(row)


def close(study: int) -> StudyRecord:
    """Takes no more votes. Errors: it is not open."""
    with study_database().writing() as session:
        row = _in_state(session, study, OPEN, "be closed")
        row.state, row.closed = CLOSED, time.time()
        _log(session, study, "closed", {})
        return record_of(row)


def end(study: int) -> StudyRecord:
    """Closes an open study whose time was found to be over: a clock that is set back later opens nothing again."""
    with study_database().writing() as session:
        row = _row(session, study, to_change=True)
        if row.state == OPEN:
            row.state, row.closed = CLOSED, time.time()
            _log(session, study, "closed", {"because": "its time was over"})
        return record_of(row)


def archive(study: int) -> StudyRecord:
    """Puts a closed study away; its votes and results stay. Errors: it is not closed."""
    with study_database().writing() as session:
        row = _in_state(session, study, CLOSED, "be archived")
        row.state = ARCHIVED
        _log(session, study, "archived", {})
        return record_of(row)


def delete(study: int) -> None:
    """Takes the study away with its items, its participants and their votes. The caller has asked for confirmation."""
    with study_database().writing() as session:
        _row(session, study)
        session.execute(sa.delete(Study).where(Study.id == study))


def log_of(study: int) -> list[tuple[str, float, dict[str, Any]]]:
    """What happened to the study, in order: what, when, more of it."""
    with study_database().reading() as session:
        events = session.scalars(sa.select(Event).where(Event.study == study).order_by(Event.id))
        return [(event.kind, event.at, event.details) for event in events]


def _newest(session: Session) -> float:
    of_study = sa.select(sa.func.max(Vote.at)).where(Vote.study == Study.id).correlate(Study).scalar_subquery()
    voted = session.scalar(sa.select(sa.func.max(of_study)).where(Study.state == OPEN))
    return max(voted or 0.0, session.scalar(sa.select(sa.func.max(Event.at))) or 0.0)


def _past(session: Session, row: Study) -> bool:
    """Whether it is open though its time is over."""
    return row.state == OPEN and was_over(session, row.design.get("closes_at"))


def _created(session: Session, design: Design, details: Mapping[str, Any]) -> StudyRecord:
    row = Study(token=new_token(), design=design.as_plain(), state=DRAFT, created=time.time())
    session.add(row)
    session.flush()
    _log(session, row.id, "created", details)
    return record_of(row)


def _check_can_open(found: StudyRecord) -> None:
    if found.state != DRAFT:
        raise _not_in(found.id, found.state, DRAFT, "be opened")
    if is_over(found.design.closes_at):
        raise UsageError("design.closes_at: must be in the future when the study opens. Choose a later time, or none.")


def _store(session: Session, study: int, frozen: list[FrozenItem]) -> None:
    for one in frozen:
        one.item.study = study
    session.add_all([one.item for one in frozen])
    session.flush()
    for one in frozen:
        for shown in one.shown:
            shown.item = one.item.id
        session.add_all(one.shown)


def _frozen_items(session: Session, study: int) -> int:
    return session.scalars(sa.select(sa.func.count()).select_from(Item).where(Item.study == study)).one()


def _row(session: Session, study: int, to_change: bool = False) -> Study:
    """`to_change`: on PostgreSQL the row is held until the transaction ends, as SQLite holds everything."""
    asked = sa.select(Study).where(Study.id == study)
    row = session.scalar(asked.with_for_update() if to_change else asked)
    if row is None:
        raise ExegesisError(f"study: there is no study {study}. List them with: exegesis study list.")
    return row


def _in_state(session: Session, study: int, state: str, wish: str) -> Study:
    row = _row(session, study, to_change=True)
    if row.state != state:
        raise _not_in(study, row.state, state, wish)
    return row


def _not_in(study: int, got: str, wanted: str, wish: str) -> ExegesisError:
    return ExegesisError(f"study {study}: must be {wanted} to {wish}, but it is {got}.")


def _log(session: Session, study: int, kind: str, details: Mapping[str, Any]) -> None:
    session.add(Event(study=study, kind=kind, details=dict(details), at=time.time()))


def record_of(row: Study) -> StudyRecord:
    """The study as this row says."""
    return StudyRecord(row.id, row.token, Design.from_plain(row.design), row.state, row.created, row.opened, row.closed)
