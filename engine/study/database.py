"""The database of studies: SQLite in the home folder, or PostgreSQL by `EXEGESIS_DATABASE_URL`.

A committed transaction is on the disk: a confirmed vote survives the death of the process and of the machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
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
from sqlalchemy.orm import Session

from engine.errors import ExegesisError, UsageError
from engine.home import home
from engine.sqlite import sqlite_engine

ADDRESS = "EXEGESIS_DATABASE_URL"
BUSY_SECONDS = 30.0
MIGRATIONS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x65786567  # any number that nobody else takes in this database
_EXAMPLE = "Example: postgresql://user:password@host/name."


class InvalidAddress(UsageError):
    """The address of the database is not usable. It concerns the organizer: participants never see this error."""


class StudyDatabase:
    """Transactions on the study's tables, which are migrated at the start."""

    def __init__(self, address: sa.URL) -> None:
        self.address = address
        with self._readable_errors():
            self.engine = _create_engine(address)
            with _file_lock(address):
                self._upgrade()
        level: dict[str, Any] = {} if _is_sqlite(address) else {"isolation_level": "REPEATABLE READ"}
        self._snapshots = self.engine.execution_options(reading=True, **level)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """A read-only session that sees one state of the database."""
        with self._readable_errors(), Session(self._snapshots, expire_on_commit=False) as session:
            yield session

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """A session whose changes are all on the disk at its end, or none of them.

        Errors: `IntegrityError` passes: the caller knows what was duplicated.
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
        except (SQLAlchemyError, UnicodeDecodeError) as error:  # the latter where a message quotes damaged text
            cause = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise ExegesisError(f"The database of studies {_public(self.address)} cannot be used: {cause}.") from error

    def _upgrade(self) -> None:
        """Migrate in one transaction: a process that dies in it leaves the tables as they were."""
        with self.engine.begin() as link:
            if link.dialect.name == "postgresql":
                link.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            try:
                upgrade(link)
            except CommandError as error:
                raise ExegesisError(
                    f"The database of studies {_public(self.address)} is of a later version of Exegesis ({error}). "
                    "Update Exegesis, or name another database."
                ) from error


def study_database() -> StudyDatabase:
    """The database of this process, shared by all threads; another home or address has its own."""
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
    """The configured address, or that of the file in the home folder. Errors: no database can have it."""
    text = os.environ.get(ADDRESS, "").strip()
    if not text:
        return sa.URL.create("sqlite", database=str((home() / "study.db").resolve()))
    try:
        address = sa.make_url(text)
    except ArgumentError:  # the text may contain a password, so it is not repeated
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
    """Exclusive lock on preparing a SQLite file: two processes that turn on its WAL at once refuse each other."""
    if not _is_sqlite(address):
        yield
        return
    path = Path(str(address.database))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ExegesisError(f"The database of studies {path} cannot be made ({error.strerror}).") from None
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
