"""The database of studies and its tables: SQLite in the home folder, or the one set by `EXEGESIS_DATABASE_URL`.

A committed transaction is on disk, so a confirmed vote survives a crash of the process or the machine. Times are the
server's, in seconds since 1970 (UTC). Deleting a study deletes all its rows.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from engine.errors import ExegesisError, UsageError
from engine.home import home
from engine.sqlite import sqlite_engine

JsonObject = dict[str, Any]
_CONSTRAINT_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Base class of all tables. Constraints have names, so that migrations can change them."""

    metadata = sa.MetaData(naming_convention=_CONSTRAINT_NAMES)
    type_annotation_map = {  # noqa: RUF012  (SQLAlchemy reads it from the class)
        JsonObject: sa.JSON(none_as_null=True),
        list[int]: sa.JSON(none_as_null=True),
        float: sa.Double(),
    }


class Study(Base):
    """A study. Anyone with `token` can join; `secret` determines the random orders and never leaves the database."""

    __tablename__ = "studies"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012  (SQLAlchemy reads it from the class)
    id: Mapped[int] = mapped_column(primary_key=True)
    token: Mapped[str] = mapped_column(unique=True)
    secret: Mapped[str] = mapped_column(default=lambda: secrets.token_urlsafe(32))
    design: Mapped[JsonObject]
    state: Mapped[str]
    created: Mapped[float]
    opened: Mapped[float | None]
    closed: Mapped[float | None]


def _study() -> Mapped[int]:
    return mapped_column(sa.ForeignKey("studies.id", ondelete="CASCADE"), index=True)


def _item() -> Mapped[int]:
    return mapped_column(sa.ForeignKey("items.id", ondelete="CASCADE"), index=True)


def _annotator() -> Mapped[int]:
    return mapped_column(sa.ForeignKey("annotators.id", ondelete="CASCADE"), index=True)


class Item(Base):
    """Snapshot of an input and the model's prediction, taken when the study opened.

    `input`: text and text_pair, the fields of a prompt, or the SHA-256 of a picture, whose PNG is in `picture`.
    `prediction`: labels, logits, probabilities, regression. `edit`: in a study of edits, a changed word and the
    prediction for the edited text. `place`: index among all items of the study, including practice items.
    """

    __tablename__ = "items"
    __table_args__ = (sa.UniqueConstraint("study", "place"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    place: Mapped[int]
    practice: Mapped[bool]
    input: Mapped[JsonObject]
    picture: Mapped[bytes | None]
    label: Mapped[str | None]
    prediction: Mapped[JsonObject]
    edit: Mapped[JsonObject | None]
    explanations: Mapped[list[ItemExplanation]] = relationship(order_by="ItemExplanation.place", passive_deletes="all")


class ItemExplanation(Base):
    """Snapshot of one explanation of an item. `place`: index of its method in `Design.ballot_methods`.

    `body`: scores, tokens and grid as sealed safetensors (see `cache.codec`); `digest`: SHA-256 of the body.
    """

    __tablename__ = "shown"
    __table_args__ = (sa.UniqueConstraint("item", "place"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[int] = _item()
    place: Mapped[int]
    body: Mapped[bytes]
    provenance: Mapped[JsonObject]
    digest: Mapped[str]


class Annotator(Base):
    """A participant under a pseudonym. `code`: salted SHA-256 of the code to continue on another device."""

    __tablename__ = "annotators"
    __table_args__ = (
        sa.UniqueConstraint("study", "pseudonym"),
        sa.UniqueConstraint("study", "code"),
        {"sqlite_autoincrement": True},
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    pseudonym: Mapped[str]
    code: Mapped[str]
    joined: Mapped[float]
    consented: Mapped[float | None]


class _BallotColumns:
    """Columns of a ballot and of its votes. Annotator, item and repeat identify the ballot.

    `order`: index of each method in `Design.ballot_methods`, in the order of places A, B, ....
    """

    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    annotator: Mapped[int] = _annotator()
    item: Mapped[int] = _item()
    repeat: Mapped[int]
    order: Mapped[list[int]]
    at: Mapped[float]


class IssuedBallot(_BallotColumns, Base):
    """A ballot issued to an annotator. It is the same after a reload and on another device.

    An annotator's ballots are in the order of their ids. `token`: the only identifier that the page sees.
    """

    __tablename__ = "ballots"
    __table_args__ = (sa.UniqueConstraint("annotator", "item", "repeat"), {"sqlite_autoincrement": True})
    token: Mapped[str] = mapped_column(unique=True)


class Vote(_BallotColumns, Base):
    """One answer to a ballot.

    `ranks`: one per method in the ballot's order; 1 is best, equal ranks are ties. `guess`: the answer in a study of
    guesses. Neither: cannot tell. `token`: chosen by the client, so that a repeated submission is stored once.
    `superseded_by`: token of the answer or undo that replaced this one. An annotator has at most one vote per item and
    repeat that is not superseded.
    """

    __tablename__ = "votes"
    __table_args__ = (
        sa.UniqueConstraint("annotator", "token"),
        sa.Index(
            "uq_votes_current",
            "annotator",
            "item",
            "repeat",
            unique=True,
            sqlite_where=sa.text("superseded_by IS NULL"),
            postgresql_where=sa.text("superseded_by IS NULL"),
        ),
        sa.Index(None, "study", "at"),
        {"sqlite_autoincrement": True},
    )
    ranks: Mapped[list[int] | None]
    guess: Mapped[JsonObject | None]
    seconds: Mapped[float]
    token: Mapped[str]
    superseded_by: Mapped[str | None]


def is_same_ballot(
    one: type[_BallotColumns] | _BallotColumns, other: type[_BallotColumns] | _BallotColumns
) -> sa.ColumnElement[bool]:
    """Return the SQL condition that two tables, or a table and a row, refer to the same ballot."""
    return sa.and_(*(getattr(one, name) == getattr(other, name) for name in ("annotator", "item", "repeat")))


class Event(Base):
    """An entry in the log of a study, such as opened, closed, vote undone, or a vote excluded by a rule."""

    __tablename__ = "events"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012  (SQLAlchemy reads it from the class)
    id: Mapped[int] = mapped_column(primary_key=True)
    study: Mapped[int] = _study()
    kind: Mapped[str]
    details: Mapped[JsonObject]
    at: Mapped[float] = mapped_column(index=True)


ADDRESS = "EXEGESIS_DATABASE_URL"
BUSY_SECONDS = 30.0
MIGRATIONS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x65786567  # any number that nothing else uses in this database
_EXAMPLE = "Example: postgresql://user:password@host/name."


class InvalidAddress(UsageError):
    """The database address is not usable. Only the organizer sees this error, never a participant."""


class StudyDatabase:
    """Transactions on the study tables, which are migrated on creation."""

    def __init__(self, address: sa.URL) -> None:
        self.address = address
        with self._readable_errors():
            self.engine = _create_engine(address)
            try:
                with _file_lock(address):
                    self._upgrade()
            except BaseException:
                self.engine.dispose()
                raise
        level: dict[str, Any] = {} if _is_sqlite(address) else {"isolation_level": "REPEATABLE READ"}
        self._snapshots = self.engine.execution_options(reading=True, **level)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a read-only session that sees a consistent snapshot of the database."""
        with self._readable_errors(), Session(self._snapshots, expire_on_commit=False) as session:
            yield session

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a session that commits all changes to disk at its end, or none of them.

        Errors: `IntegrityError` is passed on, since the caller knows what was duplicated.
        """
        with self._readable_errors(), Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        self.engine.dispose()

    @contextlib.contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except (SQLAlchemyError, UnicodeDecodeError) as error:  # the latter if a message quotes damaged text
            cause = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise ExegesisError(f"The study database {_public(self.address)} cannot be used: {cause}.") from error

    def _upgrade(self) -> None:
        """Migrate in one transaction, so that a crash changes nothing. Errors: tables of a newer version."""
        with self.engine.begin() as link:
            if link.dialect.name == "postgresql":
                link.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            try:
                upgrade(link)
            except CommandError as error:
                raise ExegesisError(
                    f"The study database {_public(self.address)} was written by a newer version of Exegesis ({error}). "
                    f"Update Exegesis, or set {ADDRESS} to another database."
                ) from error


def study_database() -> StudyDatabase:
    """Return the database at the configured address. The process has one object per address, for all threads."""
    key = (database_address(), os.getpid())
    with _lock:
        if key not in _databases:
            _databases[key] = StudyDatabase(key[0])
        return _databases[key]


def upgrade(link: sa.Connection) -> None:
    """Run the pending migrations in the caller's transaction."""
    config = Config()
    script = ScriptDirectory(str(MIGRATIONS), version_locations=[str(MIGRATIONS)])
    with EnvironmentContext(config, script, fn=lambda now, _: script._upgrade_revs("head", now)) as environment:
        environment.configure(connection=link)
        environment.run_migrations()


def database_address() -> sa.URL:
    """Return the configured address, by default a SQLite file in the home folder. Errors: an unusable address."""
    text = os.environ.get(ADDRESS, "").strip()
    if not text:
        return sa.URL.create("sqlite", database=str((home() / "study.db").resolve()))
    try:
        address = sa.make_url(text)
    except ArgumentError:  # it may contain a password, so the message omits it
        raise InvalidAddress(f"{ADDRESS}: is not the address of a database. {_EXAMPLE}") from None
    if address.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return address.set(drivername="postgresql+psycopg")
    if _is_sqlite(address) and address.database not in (None, "", ":memory:"):
        return address
    raise InvalidAddress(
        f"{ADDRESS}: must be the address of a PostgreSQL database or of a SQLite file, got {_public(address)}. "
        f"{_EXAMPLE}"
    )


def _is_sqlite(address: sa.URL) -> bool:
    return address.drivername == "sqlite"


def _create_engine(address: sa.URL) -> sa.Engine:
    if _is_sqlite(address):
        path = address.render_as_string(hide_password=False)
        return sqlite_engine(path, BUSY_SECONDS, "synchronous=FULL", "foreign_keys=ON")
    options = {"options": "-c synchronous_commit=on"}
    try:
        return sa.create_engine(address, connect_args=options, pool_pre_ping=True, hide_parameters=True)
    except ModuleNotFoundError as error:
        raise ExegesisError(
            f"{ADDRESS}: needs the package {error.name}. Install it with: pip install 'exegesis[postgres]'."
        ) from None


@contextlib.contextmanager
def _file_lock(address: sa.URL) -> Iterator[None]:
    """Lock the setup of a SQLite file exclusively: two processes cannot turn on its WAL at the same time."""
    if not _is_sqlite(address):
        yield
        return
    path = Path(str(address.database))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ExegesisError(f"The study database {path} cannot be created ({error.strerror}).") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _public(address: sa.URL) -> str:
    return address.render_as_string(hide_password=True)


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


_lock = threading.Lock()
_databases: dict[tuple[sa.URL, int], StudyDatabase] = {}
os.register_at_fork(after_in_child=_renew_lock)
