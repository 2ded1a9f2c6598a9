"""The table of jobs on disk, shared by all sessions and processes, and the processes that own jobs.

SQLite in WAL mode. A file with another schema version is renamed, not converted.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError, SQLAlchemyError

from cache import is_damage
from engine.errors import ExegesisError
from engine.sqlite import sqlite_engine

SCHEMA = 1
ACTIVE = ("queued", "running")
STATES = (*ACTIVE, "done", "failed", "cancelled", "interrupted")
_BUSY_SECONDS = 10.0
HEARTBEAT_SECONDS = 2.0
_SILENT_SECONDS = 60.0
_SAME_START_SECONDS = 2.0
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
    sa.Column("spec", sa.Text, nullable=False),  # last: SQLite must read a long text to reach the columns after it
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
_WITHOUT_SPEC = [column for column in jobs.c if column is not jobs.c.spec]


@dataclass(frozen=True)
class Process:
    """A process by host, pid and start time (seconds since 1970), which distinguishes reused pids."""

    host: str
    pid: int
    started: float


def this_process() -> Process:
    """The current process."""
    return process_of(os.getpid())


@functools.cache
def process_of(pid: int) -> Process:
    """The process with this pid on this machine."""
    return Process(socket.gethostname(), pid, psutil.Process(pid).create_time())


def is_alive(process: Process, heartbeat: float) -> bool:
    """Whether the process is running; on another machine, whether its heartbeat is recent."""
    if process.host != socket.gethostname():
        return time.time() - heartbeat < _SILENT_SECONDS
    if process.pid == os.getpid():
        return abs(this_process().started - process.started) < _SAME_START_SECONDS
    try:
        running = psutil.Process(process.pid)
        if running.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(running.create_time() - process.started) < _SAME_START_SECONDS
    except psutil.Error:
        return False


class StoredSpec(Mapping[str, Any]):
    """The specification of a job, read on first use because it may list 100,000 examples."""

    def __init__(self, read: Callable[[], dict[str, Any]]) -> None:
        self._read = read

    @functools.cached_property
    def _values(self) -> dict[str, Any]:
        return self._read()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"StoredSpec({self._values!r})" if "_values" in vars(self) else "StoredSpec(not read yet)"

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        """A plain dict, so that `dataclasses.asdict` of a job can be written as JSON."""
        return copy.deepcopy(self._values, memo)


@dataclass(frozen=True)
class Job:
    """The state of a job when it was read. Times are seconds since 1970.

    `done`: number of cached or failed units; `computed`: of units computed in the latest run. `seconds_left`: None
    while it cannot be estimated. `spec`: read on first use.
    """

    id: int
    kind: str
    title: str
    spec: Mapping[Any, Any]  # run-time checks of a key type would read it
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
    owner: Process
    heartbeat: float
    cancel_requested: bool

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.state not in ACTIVE


@dataclass(frozen=True)
class UnitFailure:
    """A unit that could not be computed."""

    key: str
    label: str
    error: str


class JobTable:
    """All jobs of all processes. `status`: empty, or a message if they are not stored on disk.

    `at_work`: returns whether a thread of this process runs a job; by default always True.
    """

    def __init__(self, path: Path, at_work: Callable[[int], bool] = lambda _: True) -> None:
        self.path = path
        self.status = ""
        self._at_work = at_work
        self._spec = functools.lru_cache(_SPECS_REMEMBERED)(self._read_spec)
        self._engine = self._open()

    def add(self, kind: str, title: str, spec: dict[str, Any], queue: str, owner: Process) -> Job:
        now = time.time()
        row = {"kind": kind, "title": title, "spec": json.dumps(spec), "queue": queue, "state": "queued"}
        times = {"created": now, "queued": now, "heartbeat": now}
        with self._begin() as connection:
            inserted = connection.execute(sa.insert(jobs).values(**row, **times, **_owner_columns(owner)))
            assert inserted.inserted_primary_key is not None
            return self._read(connection, inserted.inserted_primary_key[0])

    def get(self, id: int) -> Job:
        """The current state of a job. Marks an abandoned job as interrupted."""
        with self._begin(reading=True) as connection:
            job = self._read(connection, id)
        return self._with_interruption(job)

    def all(self) -> list[Job]:
        """All jobs, newest first."""
        with self._begin(reading=True) as connection:
            rows = connection.execute(sa.select(*_WITHOUT_SPEC).order_by(jobs.c.id.desc())).mappings().all()
        return [self._with_interruption(self._job(row)) for row in rows]

    def next_queued(self, owner: Process, queue: str) -> Job | None:
        """The job that has waited longest in a queue of this process."""
        waiting = _queue_of(owner, queue, "queued")
        with self._begin(reading=True) as connection:
            row = (
                connection.execute(sa.select(*_WITHOUT_SPEC).where(waiting).order_by(jobs.c.queued, jobs.c.id))
                .mappings()
                .first()
            )
            return None if row is None else self._job(row)

    def count_ahead(self, job: Job) -> int:
        """Number of jobs of the same queue that come before it."""
        same = _queue_of(job.owner, job.queue, *ACTIVE)
        earlier = (jobs.c.queued < job.queued) | ((jobs.c.queued == job.queued) & (jobs.c.id < job.id))
        ahead = (jobs.c.id != job.id) & ((jobs.c.state == "running") | earlier)
        with self._begin(reading=True) as connection:
            return connection.execute(sa.select(sa.func.count()).where(same & ahead)).scalar_one()

    def count_by_state(self) -> dict[str, int]:
        """Number of jobs in each state, over all processes, as last written."""
        count = sa.select(jobs.c.state, sa.func.count()).group_by(jobs.c.state)
        with self._begin(reading=True) as connection:
            return {row[0]: row[1] for row in connection.execute(count)}

    def move(self, id: int, states: Iterable[str], **values: Any) -> bool:
        """Set `values` atomically if the job is in one of `states`. Returns whether it was."""
        with self._begin() as connection:
            moved = connection.execute(
                sa.update(jobs).where((jobs.c.id == id) & jobs.c.state.in_(states)).values(**values)
            )
            return moved.rowcount == 1

    def queue_again(self, id: int, states: Iterable[str], queue: str, owner: Process) -> bool:
        """Put a finished job at the end of a queue. Returns True in the one process that did it."""
        now = time.time()
        fresh = {"error": "", "note": "", "failed": 0, "finished": None, "cancel_requested": False}
        times = {"queued": now, "heartbeat": now, "seconds_left": None}
        if not self.move(id, states, state="queued", queue=queue, **_owner_columns(owner), **fresh, **times):
            return False
        with self._begin() as connection:
            connection.execute(sa.delete(failures).where(failures.c.job == id))
        return True

    def start(self, id: int, owner: Process) -> bool:
        """Mark a queued job as running. Returns True in the one process that did it."""
        now = time.time()
        return self.move(
            id, ["queued"], state="running", started=now, heartbeat=now, computed=0, **_owner_columns(owner)
        )

    def beat(self, id: int) -> None:
        """Update the heartbeat."""
        self.move(id, ["running"], heartbeat=time.time())

    def cancel_requested(self, id: int) -> bool:
        """Whether any process requested to cancel the job."""
        with self._begin(reading=True) as connection:
            return bool(connection.execute(sa.select(jobs.c.cancel_requested).where(jobs.c.id == id)).scalar())

    def fail(self, id: int, failure: UnitFailure) -> None:
        values = {"job": id, "key": failure.key, "label": failure.label, "error": failure.error}
        with self._begin() as connection:
            connection.execute(sa.insert(failures).prefix_with("OR REPLACE").values(**values))

    def failures(self, id: int) -> list[UnitFailure]:
        """The units that failed in the latest run."""
        with self._begin(reading=True) as connection:
            rows = (
                connection.execute(sa.select(failures).where(failures.c.job == id).order_by(sa.text("rowid")))
                .mappings()
                .all()
            )
        return [UnitFailure(row["key"], row["label"], row["error"]) for row in rows]

    def forget(self, id: int) -> bool:
        """Remove a finished job from the list. Its results stay in the cache."""
        with self._begin() as connection:
            deleted = connection.execute(sa.delete(jobs).where((jobs.c.id == id) & jobs.c.state.not_in(ACTIVE)))
            if deleted.rowcount:
                connection.execute(sa.delete(failures).where(failures.c.job == id))
            return deleted.rowcount == 1

    def close(self) -> None:
        self._engine.dispose()

    def _read(self, connection: sa.Connection, id: int) -> Job:
        row = connection.execute(sa.select(*_WITHOUT_SPEC).where(jobs.c.id == id)).mappings().first()
        if row is None:
            raise _missing_job(id)
        return self._job(row)

    def _read_spec(self, id: int) -> dict[str, Any]:
        with self._begin(reading=True) as connection:
            text = connection.execute(sa.select(jobs.c.spec).where(jobs.c.id == id)).scalar()
        if text is None:
            raise _missing_job(id)
        return json.loads(text)

    def _job(self, row: Mapping[Any, Any]) -> Job:
        values = {name: row[name] for name in row if not str(name).startswith("owner_")}
        owner = Process(row["owner_host"], row["owner_pid"], row["owner_started"])
        return Job(**values, spec=StoredSpec(functools.partial(self._spec, row["id"])), owner=owner)

    def _with_interruption(self, job: Job) -> Job:
        why = self._reason_abandoned(job)
        if not why:
            return job
        error = f"{why} Resume the job: finished parts are not computed again."
        values: dict[str, Any] = {"state": "interrupted", "error": error}
        values |= {"finished": job.heartbeat, "seconds_left": None}
        # `queued` changes on resume: a job that was resumed since it was read is left alone.
        same = (jobs.c.id == job.id) & (jobs.c.state == job.state) & (jobs.c.queued == job.queued)
        try:
            with self._begin() as connection:
                connection.execute(sa.update(jobs).where(same).values(**values))
                return self._read(connection, job.id)
        except ExegesisError:  # the table is read-only
            return dataclasses.replace(job, **values)

    def _reason_abandoned(self, job: Job) -> str:
        """The reason why an active job is abandoned; empty if a process runs it or will."""
        if job.is_over:
            return ""
        if not is_alive(job.owner, job.heartbeat):
            return "The process that ran it ended."
        if job.state == "running" and job.owner == this_process() and not self._at_work(job.id):
            return "Its result could not be written to the list of jobs."
        return ""

    @contextlib.contextmanager
    def _begin(self, reading: bool = False) -> Iterator[sa.Connection]:
        try:
            with self._engine.execution_options(reading=reading).begin() as connection:
                yield connection
        except (SQLAlchemyError, UnicodeDecodeError) as error:
            if isinstance(error, IntegrityError) or not is_damage(_driver_error(error), self.path):
                raise ExegesisError(f"The list of jobs {self.path} cannot be used: {_cause(error)}.") from error
            if self._inode == _inode(self.path):  # otherwise another process has renamed it
                self._engine.dispose()
                self._engine = self._start_anew()
            raise ExegesisError(f"{self.status} Try again.") from error

    def _open(self) -> sa.Engine:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self._prepared(_engine(f"sqlite:///{self.path}"))
        except OSError as error:
            return self._in_memory(str(error))
        except (DatabaseError, UnicodeDecodeError) as error:
            if isinstance(error, OperationalError) and not is_damage(_driver_error(error), self.path):
                return self._in_memory(_cause(error))
        return self._start_anew()

    def _prepared(self, engine: sa.Engine) -> sa.Engine:
        with engine.begin() as connection:
            version = connection.exec_driver_sql("PRAGMA user_version").scalar()
            if version not in (0, SCHEMA):
                raise DatabaseError(None, None, ValueError(f"schema {version}, not {SCHEMA}"))
            _metadata.create_all(connection)
            connection.execute(sa.select(jobs)).first()
            connection.execute(sa.select(failures)).first()
            connection.exec_driver_sql(f"PRAGMA user_version={SCHEMA}")
        self._inode = _inode(self.path)
        return engine

    def _start_anew(self) -> sa.Engine:
        aside = self.path.with_name(f"{self.path.name}.aside-{int(time.time())}")
        try:
            os.replace(self.path, aside)
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            engine = self._prepared(_engine(f"sqlite:///{self.path}"))
        except (OSError, DatabaseError, UnicodeDecodeError) as error:
            return self._in_memory(str(error))
        self.status = (
            f"The list of jobs was damaged or has another version. It was renamed to {aside}; a new list was started."
        )
        return engine

    def _in_memory(self, reason: str) -> sa.Engine:
        self.status = (
            f"The list of jobs {self.path} cannot be written ({reason}). Jobs are lost when this process ends."
        )
        return self._prepared(_engine("sqlite://"))


def _engine(address: str) -> sa.Engine:
    return sqlite_engine(address, _BUSY_SECONDS, "synchronous=NORMAL")


def _queue_of(owner: Process, queue: str, *states: str) -> sa.ColumnElement[bool]:
    process = (jobs.c.owner_host == owner.host) & (jobs.c.owner_pid == owner.pid)
    return process & (jobs.c.queue == queue) & jobs.c.state.in_(states)


def _owner_columns(owner: Process) -> dict[str, Any]:
    return {"owner_host": owner.host, "owner_pid": owner.pid, "owner_started": owner.started}


def _missing_job(id: int) -> ExegesisError:
    return ExegesisError(f"job: there is no job {id}. List them with: exegesis jobs.")


def _inode(path: Path) -> int:
    return path.stat().st_ino if path.exists() else -1


def _driver_error(error: Exception) -> BaseException | None:
    return getattr(error, "orig", error)


def _cause(error: Exception) -> str:
    return str(_driver_error(error) or error).splitlines()[0]
