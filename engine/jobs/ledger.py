"""The list of jobs, on disk: it outlives sessions and processes, and every process reads and writes it.

SQLite in WAL mode. The tables are made here as they are; when the study brings tables of its own that must
be migrated, Alembic takes over. Until then a ledger of another schema is put aside, not converted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError, SQLAlchemyError

from cache import is_damage
from engine.errors import ExegesisError
from engine.jobs.owner import Owner, lives, me
from engine.jobs.spec import StoredSpec
from engine.sqlite import sqlite_engine

SCHEMA = 1
ACTIVE = ("queued", "running")
STATES = (*ACTIVE, "done", "failed", "cancelled", "interrupted")
_BUSY_SECONDS = 10.0
_SPECS_REMEMBERED = 24

_metadata = sa.MetaData()
jobs = sa.Table(
    "jobs",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("title", sa.String, nullable=False),
    sa.Column("queue", sa.String, nullable=False),
    sa.Column("state", sa.String, nullable=False, index=True),
    sa.Column("total", sa.Integer, nullable=False, default=0),
    sa.Column("done", sa.Integer, nullable=False, default=0),
    sa.Column("computed", sa.Integer, nullable=False, default=0),
    sa.Column("failed", sa.Integer, nullable=False, default=0),
    sa.Column("label", sa.String, nullable=False, default=""),
    sa.Column("seconds_left", sa.Float),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("queued", sa.Float, nullable=False),
    sa.Column("started", sa.Float),
    sa.Column("finished", sa.Float),
    sa.Column("error", sa.Text, nullable=False, default=""),
    sa.Column("note", sa.Text, nullable=False, default=""),
    sa.Column("owner_host", sa.String, nullable=False),
    sa.Column("owner_pid", sa.Integer, nullable=False),
    sa.Column("owner_started", sa.Float, nullable=False),
    sa.Column("heartbeat", sa.Float, nullable=False),
    sa.Column("cancel_requested", sa.Boolean, nullable=False, default=False),
    sa.Column("spec", sa.Text, nullable=False),  # last: SQLite reads past a long text to what stands behind it
    sqlite_autoincrement=True,
)
failures = sa.Table(
    "failures",
    _metadata,
    sa.Column("job", sa.Integer, primary_key=True),
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("label", sa.String, nullable=False),
    sa.Column("error", sa.Text, nullable=False),
)
_LIGHT = [column for column in jobs.c if column is not jobs.c.spec]


@dataclass(frozen=True)
class Job:
    """One job as it stood when it was read. Times are seconds since 1970.

    `done` units are in the cache or failed; `computed` were computed in the latest run, the others were found.
    `seconds_left` is None while there is nothing to tell from. `spec` is read when it is first looked into.
    """

    id: int
    kind: str
    title: str
    spec: Mapping[Any, Any]  # checked at run time, a type of keys would have them read
    queue: str
    state: str
    total: int
    done: int
    computed: int
    failed: int
    label: str
    seconds_left: float | None
    created: float
    queued: float
    started: float | None
    finished: float | None
    error: str
    note: str
    owner: Owner
    heartbeat: float
    cancel_requested: bool

    @property
    def over(self) -> bool:
        """Whether nobody works on it or will without being asked."""
        return self.state not in ACTIVE


@dataclass(frozen=True)
class Failure:
    """One unit that could not be computed."""

    key: str
    label: str
    error: str


class Ledger:
    """All that is known of all jobs. `trouble` says in one sentence when it is not kept on disk.

    `at_work` tells which running jobs this process works on; without it all of its running jobs are believed.
    """

    def __init__(self, path: Path, at_work: Callable[[int], bool] = lambda _: True) -> None:
        self.path = path
        self.trouble = ""
        self._at_work = at_work
        self._spec = functools.lru_cache(_SPECS_REMEMBERED)(self._read_spec)
        self._engine = self._open()

    def add(self, kind: str, title: str, spec: dict[str, Any], queue: str, owner: Owner) -> Job:
        now = time.time()
        row = {"kind": kind, "title": title, "spec": json.dumps(spec), "queue": queue, "state": "queued"}
        times = {"created": now, "queued": now, "heartbeat": now}
        with self._begin() as link:
            made = link.execute(sa.insert(jobs).values(**row, **times, **_owned_by(owner)))
            assert made.inserted_primary_key is not None
            return self._read(link, made.inserted_primary_key[0])

    def get(self, id: int) -> Job:
        """The job as it stands; one that nobody works on any more stands as interrupted."""
        with self._begin(reading=True) as link:
            job = self._read(link, id)
        return self._judged(job)

    def all(self) -> list[Job]:
        """All jobs, the newest first."""
        with self._begin(reading=True) as link:
            rows = link.execute(sa.select(*_LIGHT).order_by(jobs.c.id.desc())).mappings().all()
        return [self._judged(self._job(row)) for row in rows]

    def next_of(self, owner: Owner, queue: str) -> Job | None:
        """The job that has waited longest in this process's queue."""
        waiting = _mine(owner, queue, "queued")
        with self._begin(reading=True) as link:
            row = link.execute(sa.select(*_LIGHT).where(waiting).order_by(jobs.c.queued, jobs.c.id)).mappings().first()
            return None if row is None else self._job(row)

    def before(self, job: Job) -> int:
        """How many jobs of the same queue come before it."""
        same = _mine(job.owner, job.queue, *ACTIVE)
        earlier = (jobs.c.queued < job.queued) | ((jobs.c.queued == job.queued) & (jobs.c.id < job.id))
        ahead = (jobs.c.id != job.id) & ((jobs.c.state == "running") | earlier)
        with self._begin(reading=True) as link:
            return link.execute(sa.select(sa.func.count()).where(same & ahead)).scalar_one()

    def move(self, id: int, states: Iterable[str], **values: Any) -> bool:
        """Sets `values` if the job is in one of `states`: one atomic step, so that only one process does it."""
        with self._begin() as link:
            moved = link.execute(sa.update(jobs).where((jobs.c.id == id) & jobs.c.state.in_(states)).values(**values))
            return moved.rowcount == 1

    def queue_again(self, id: int, states: Iterable[str], queue: str, owner: Owner) -> bool:
        """Puts a job that is over at the end of a queue, as if new; True for the one process that did it."""
        now = time.time()
        fresh = {"error": "", "note": "", "failed": 0, "finished": None, "cancel_requested": False}
        times = {"queued": now, "heartbeat": now, "seconds_left": None}
        if not self.move(id, states, state="queued", queue=queue, **_owned_by(owner), **fresh, **times):
            return False
        with self._begin() as link:
            link.execute(sa.delete(failures).where(failures.c.job == id))
        return True

    def start(self, id: int, owner: Owner) -> bool:
        """Marks a waiting job as running in the owner's process; True for the one who did it."""
        now = time.time()
        return self.move(id, ["queued"], state="running", started=now, heartbeat=now, computed=0, **_owned_by(owner))

    def beat(self, id: int) -> None:
        """Says that the process lives."""
        self.move(id, ["running"], heartbeat=time.time())

    def asked_to_cancel(self, id: int) -> bool:
        """Whether any process has asked to cancel the job."""
        with self._begin(reading=True) as link:
            return bool(link.execute(sa.select(jobs.c.cancel_requested).where(jobs.c.id == id)).scalar())

    def fail(self, id: int, failure: Failure) -> None:
        values = {"job": id, "key": failure.key, "label": failure.label, "error": failure.error}
        with self._begin() as link:
            link.execute(sa.insert(failures).prefix_with("OR REPLACE").values(**values))

    def failures(self, id: int) -> list[Failure]:
        """The units that failed in the latest run."""
        with self._begin(reading=True) as link:
            rows = (
                link.execute(sa.select(failures).where(failures.c.job == id).order_by(sa.text("rowid")))
                .mappings()
                .all()
            )
        return [Failure(row["key"], row["label"], row["error"]) for row in rows]

    def forget(self, id: int) -> bool:
        """Takes a job that is over off the list. Its results stay in the cache."""
        with self._begin() as link:
            gone = link.execute(sa.delete(jobs).where((jobs.c.id == id) & jobs.c.state.not_in(ACTIVE)))
            if gone.rowcount:
                link.execute(sa.delete(failures).where(failures.c.job == id))
            return gone.rowcount == 1

    def close(self) -> None:
        self._engine.dispose()

    def _read(self, link: sa.Connection, id: int) -> Job:
        row = link.execute(sa.select(*_LIGHT).where(jobs.c.id == id)).mappings().first()
        if row is None:
            raise _no_job(id)
        return self._job(row)

    def _read_spec(self, id: int) -> dict[str, Any]:
        with self._begin(reading=True) as link:
            text = link.execute(sa.select(jobs.c.spec).where(jobs.c.id == id)).scalar()
        if text is None:
            raise _no_job(id)
        return json.loads(text)

    def _job(self, row: Mapping[Any, Any]) -> Job:
        values = {name: row[name] for name in row if not str(name).startswith("owner_")}
        owner = Owner(row["owner_host"], row["owner_pid"], row["owner_started"])
        return Job(**values, spec=StoredSpec(functools.partial(self._spec, row["id"])), owner=owner)

    def _judged(self, job: Job) -> Job:
        why = self._left_because(job)
        if not why:
            return job
        error = f"{why} Resume it: what is finished is not computed again."
        values: dict[str, Any] = {"state": "interrupted", "error": error}
        values |= {"finished": job.heartbeat, "seconds_left": None}
        # `queued` is another after a resume: a job that somebody took up since it was read is left alone.
        same = (jobs.c.id == job.id) & (jobs.c.state == job.state) & (jobs.c.queued == job.queued)
        try:
            with self._begin() as link:
                link.execute(sa.update(jobs).where(same).values(**values))
                return self._read(link, job.id)
        except ExegesisError:  # reading goes on where nothing can be written
            return dataclasses.replace(job, **values)

    def _left_because(self, job: Job) -> str:
        """Why nobody works on the job although it stands as active; empty if somebody does or will."""
        if job.over:
            return ""
        if not lives(job.owner, job.heartbeat):
            return "The process that worked on it ended."
        if job.state == "running" and job.owner == me() and not self._at_work(job.id):
            return "Its end could not be written to the list of jobs."
        return ""

    @contextlib.contextmanager
    def _begin(self, reading: bool = False) -> Iterator[sa.Connection]:
        try:
            with self._engine.execution_options(reading=reading).begin() as link:
                yield link
        except (SQLAlchemyError, UnicodeDecodeError) as error:
            if isinstance(error, IntegrityError) or not is_damage(_of_driver(error), self.path):
                raise ExegesisError(f"The list of jobs {self.path} cannot be used: {_cause(error)}.") from error
            if self._inode == _inode(self.path):  # else another process has put it aside
                self._engine.dispose()
                self._engine = self._anew()
            raise ExegesisError(f"{self.trouble} Try again.") from error

    def _open(self) -> sa.Engine:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self._prepared(_engine(f"sqlite:///{self.path}"))
        except OSError as error:
            return self._in_memory(str(error))
        except (DatabaseError, UnicodeDecodeError) as error:
            if isinstance(error, OperationalError) and not is_damage(_of_driver(error), self.path):
                return self._in_memory(_cause(error))
        return self._anew()

    def _prepared(self, engine: sa.Engine) -> sa.Engine:
        with engine.begin() as link:
            version = link.exec_driver_sql("PRAGMA user_version").scalar()
            if version not in (0, SCHEMA):
                raise DatabaseError(None, None, ValueError(f"schema {version}, not {SCHEMA}"))
            _metadata.create_all(link)
            link.execute(sa.select(jobs)).first()
            link.execute(sa.select(failures)).first()
            link.exec_driver_sql(f"PRAGMA user_version={SCHEMA}")
        self._inode = _inode(self.path)
        return engine

    def _anew(self) -> sa.Engine:
        aside = self.path.with_name(f"{self.path.name}.aside-{int(time.time())}")
        try:
            os.replace(self.path, aside)
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            engine = self._prepared(_engine(f"sqlite:///{self.path}"))
        except (OSError, DatabaseError, UnicodeDecodeError) as error:
            return self._in_memory(str(error))
        self.trouble = f"The list of jobs was damaged or of another version: it is now {aside}, and a new one begun."
        return engine

    def _in_memory(self, reason: str) -> sa.Engine:
        self.trouble = f"The list of jobs {self.path} cannot be written ({reason}): it ends with this process."
        return self._prepared(_engine("sqlite://"))


def _engine(address: str) -> sa.Engine:
    return sqlite_engine(address, _BUSY_SECONDS, "synchronous=NORMAL")


def _mine(owner: Owner, queue: str, *states: str) -> sa.ColumnElement[bool]:
    process = (jobs.c.owner_host == owner.host) & (jobs.c.owner_pid == owner.pid)
    return process & (jobs.c.queue == queue) & jobs.c.state.in_(states)


def _owned_by(owner: Owner) -> dict[str, Any]:
    return {"owner_host": owner.host, "owner_pid": owner.pid, "owner_started": owner.started}


def _no_job(id: int) -> ExegesisError:
    return ExegesisError(f"job: there is no job {id}. List them with: exegesis jobs.")


def _inode(path: Path) -> int:
    return path.stat().st_ino if path.exists() else -1


def _of_driver(error: Exception) -> BaseException | None:
    return getattr(error, "orig", error)


def _cause(error: Exception) -> str:
    return str(_of_driver(error) or error).splitlines()[0]
