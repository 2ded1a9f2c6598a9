"""The one database of studies: SQLite in the home folder, or PostgreSQL by `EXEGESIS_DATABASE_URL`.

What is committed is on the disk: a confirmed vote survives the death of the process and of the machine.
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


class WrongAddress(UsageError):
    """The address of the database is of no use. It is the organiser's: no participant is told it."""


class StudyDatabase:
    """Transactions on the study's tables, which are brought up to date when it is made."""

    def __init__(self, address: sa.URL) -> None:
        self.address = address
        with self._told():
            self.engine = _sqlite(address) if _is_sqlite(address) else _postgres(address)
            with _alone(address):
                self._upgrade()
        level: dict[str, Any] = {} if _is_sqlite(address) else {"isolation_level": "REPEATABLE READ"}
        self._snapshots = self.engine.execution_options(reading=True, **level)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that sees one state of the database and changes nothing."""
        with self._told(), Session(self._snapshots, expire_on_commit=False) as session:
            yield session

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """A session whose changes are all on the disk at its end, or none of them.

        Errors: `IntegrityError` passes, for the caller to say what came twice.
        """
        with self._told(), Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        self.engine.dispose()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except (SQLAlchemyError, UnicodeDecodeError) as error:  # the latter where a message quotes damaged text
            cause = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise ExegesisError(f"The database of studies {_public(self.address)} cannot be used: {cause}.") from error

    def _upgrade(self) -> None:
        """One transaction: a process that dies in it leaves the tables as they were."""
        from alembic.util import CommandError

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
    """Shared by all threads; a forked process, another home or another address gets its own."""
    name = (_address(), os.getpid())
    with _lock:
        if name not in _databases:
            _databases[name] = StudyDatabase(name[0])
        return _databases[name]


def upgrade(link: sa.Connection) -> None:
    """The migrations that this database has not had yet. The caller holds the transaction."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    script = ScriptDirectory(str(MIGRATIONS))
    with EnvironmentContext(config, script, fn=lambda now, _: script._upgrade_revs("head", now)) as environment:
        environment.configure(connection=link)
        environment.run_migrations()


def _address() -> sa.URL:
    given = os.environ.get(ADDRESS, "").strip()
    if not given:
        return sa.URL.create("sqlite", database=str((home() / "study.db").resolve()))
    try:
        address = sa.make_url(given)
    except ArgumentError:  # its text is not repeated: it may hold a password
        raise WrongAddress(f"{ADDRESS}: is not the address of a database. {_EXAMPLE}") from None
    return _checked(address)


def _checked(address: sa.URL) -> sa.URL:
    if address.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return address.set(drivername="postgresql+psycopg")
    if _is_sqlite(address) and address.database not in (None, "", ":memory:"):
        return address
    raise WrongAddress(
        f"{ADDRESS}: must be the address of a PostgreSQL database or of a SQLite file, got {_public(address)}. "
        f"{_EXAMPLE}"
    )


def _is_sqlite(address: sa.URL) -> bool:
    return address.drivername == "sqlite"


def _sqlite(address: sa.URL) -> sa.Engine:
    return sqlite_engine(
        address.render_as_string(hide_password=False), BUSY_SECONDS, "synchronous=FULL", "foreign_keys=ON"
    )


def _postgres(address: sa.URL) -> sa.Engine:
    options = {"options": "-c synchronous_commit=on"}
    try:
        return sa.create_engine(address, connect_args=options, pool_pre_ping=True, hide_parameters=True)
    except ModuleNotFoundError as error:
        raise ExegesisError(
            f"{ADDRESS}: needs the package {error.name}. Install it with: pip install 'exegesis[postgres]'."
        ) from None


@contextlib.contextmanager
def _alone(address: sa.URL) -> Iterator[None]:
    """Nobody else prepares the same SQLite file: two that turn on its WAL at once refuse each other."""
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
