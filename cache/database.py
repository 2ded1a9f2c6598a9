"""A SQLite file that many threads and processes open safely, and that is replaced if it is damaged.

The functions at the end run statements on its rows, on a connection of the caller.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from cache import codec
from cache.codec import CorruptEntry

T = TypeVar("T")

SCHEMA = 1
FILE = f"results.v{SCHEMA}.db"
BUSY_SECONDS = 10.0
PAGE_BYTES = 8192
ROW_BYTES = 200
"""Size of an entry without its body, in bytes: its row and its records in two indexes."""

_TABLES = """
CREATE TABLE entries(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, used INTEGER NOT NULL);
CREATE INDEX entries_by_use ON entries(used);
CREATE TABLE bodies(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE totals(entries INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO totals VALUES (0, 0);
CREATE TRIGGER entry_added AFTER INSERT ON entries BEGIN
  UPDATE totals SET entries = entries + 1, bytes = bytes + new.size; END;
CREATE TRIGGER entry_dropped AFTER DELETE ON entries BEGIN
  UPDATE totals SET entries = entries - 1, bytes = bytes - old.size;
  DELETE FROM bodies WHERE id = old.id; END;
CREATE TRIGGER entry_resized AFTER UPDATE OF size ON entries BEGIN
  UPDATE totals SET bytes = bytes + new.size - old.size; END;
"""

_FIND = "SELECT e.id, b.body FROM entries e LEFT JOIN bodies b ON b.id = e.id WHERE e.key = ?"
_ENTER = (
    "INSERT INTO entries(key, size, used) "
    "VALUES (?, ?, max(?, (SELECT coalesce(max(used), 0) + 1 FROM entries))) "
    "ON CONFLICT(key) DO UPDATE SET size = excluded.size, used = excluded.used RETURNING id"
)
_TOUCH = (
    "UPDATE entries SET used = t.used FROM (SELECT json_extract(value, '$[0]') AS id, "
    "json_extract(value, '$[1]') AS used FROM json_each(?)) AS t "
    "WHERE entries.id = t.id AND entries.used < t.used"
)
_RECOUNT = (
    "DELETE FROM totals",
    "INSERT INTO totals SELECT count(*), coalesce(sum(size), 0) FROM entries",
    "DELETE FROM bodies WHERE id NOT IN (SELECT id FROM entries)",
)

_BROKEN = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,  # a table does not have the expected schema
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_CONSTRAINT,
}


FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite; the second occurs if an error message quotes damaged text."""


def is_damage(error: BaseException | None, path: Path) -> bool:
    """Whether an error means that the file at `path` is damaged and must be replaced."""
    if isinstance(error, UnicodeDecodeError):
        return True
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # raised by Python: an unexpected schema, or a schema that is not UTF-8
        return type(error) in (sqlite3.DatabaseError, sqlite3.OperationalError)
    if code & 0xFF == sqlite3.SQLITE_READONLY:  # a damaged header can claim this of a writable file
        return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))
    return (code & 0xFF) in _BROKEN


class Link(sqlite3.Connection):
    """A connection with the inode of its file, to detect that the file was replaced."""

    inode = -2
    hindrance: Exception | None = None
    """The error that makes this connection read-only."""


class Database:
    """A pool of connections. Each is used by one thread at a time, and never after a fork."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / FILE
        self.damage = ""
        """The reason why the file was replaced by an empty one, or an empty string."""
        self._pid = os.getpid()
        self._idle: list[Link] = []

    @contextlib.contextmanager
    def lend(self) -> Iterator[Link]:
        """Lend a connection for the duration of a `with` block. After an error it is closed, not reused.

        If the error means that the file is damaged, the file is replaced before the error is raised again.
        """
        link = self._take()
        try:
            yield link
        except BaseException as error:
            if isinstance(error, Exception) and self.is_broken(error):
                self.replace(link.inode, str(error))
            link.close()
            raise
        (self._idle if self._pid == os.getpid() else _inherited).append(link)

    def replace(self, inode: int, reason: str) -> None:
        """Delete the file with this inode and its log, unless another process has already done so."""
        with self._opening():
            if self._inode() != inode:
                return
            self._unlink()
        self.damage = reason

    def is_broken(self, error: Exception) -> bool:
        """Whether an error means that the file is damaged and must be replaced."""
        return is_damage(error, self.path)

    def close(self) -> None:
        """Close the idle connections. The next `lend` opens a new one."""
        while self._idle and self._pid == os.getpid():
            with contextlib.suppress(IndexError, sqlite3.Error):
                self._idle.pop().close()

    def _take(self) -> Link:
        if self._pid != os.getpid():
            # SQLite forbids closing a connection that was opened before the fork: keep it, unused.
            _inherited.extend(self._idle)
            self._pid, self._idle = os.getpid(), []
        while self._idle:
            with contextlib.suppress(IndexError):
                link = self._idle.pop()
                if link.inode == self._inode():
                    return link
                link.close()
        return self._open()

    def _inode(self) -> int:
        try:
            return os.stat(self.path).st_ino
        except OSError:
            return -1

    def _open(self) -> Link:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._opening():
                return self._open_to_write()
        except (OSError, sqlite3.OperationalError) as error:
            with contextlib.suppress(OSError, *FAULTS):
                return self._open_to_read(error)
            raise

    def _open_to_write(self) -> Link:
        if self._inode() == -1:
            self._unlink()  # a log without its file
        try:
            return self._connect()
        except FAULTS as error:
            if not self.is_broken(error):
                raise
            self._unlink()
            self.damage = str(error)
        return self._connect()

    def _connect(self) -> Link:
        link = self._link(f"{self.path.absolute().as_uri()}?mode=rwc")
        try:
            link.execute("PRAGMA synchronous=NORMAL")
            link.execute("PRAGMA journal_size_limit=67108864")
            link.execute("PRAGMA recursive_triggers=ON")
            self._prepare(link)
        except BaseException:
            link.close()
            raise
        link.inode = self._inode()
        return link

    def _prepare(self, link: Link) -> None:
        version = link.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA):
            raise sqlite3.DatabaseError(f"schema {version}, not {SCHEMA}")
        if version == 0:
            link.execute(f"PRAGMA page_size={PAGE_BYTES}")
            link.execute("PRAGMA auto_vacuum=INCREMENTAL")
            link.execute("PRAGMA journal_mode=WAL")
            link.executescript(f"BEGIN IMMEDIATE;{_TABLES}PRAGMA user_version={SCHEMA};COMMIT")
        if _schema(link) != _schema_made():
            raise sqlite3.DatabaseError("unexpected tables")
        link.execute("SELECT entries, bytes FROM totals").fetchone()

    def _open_to_read(self, hindrance: Exception) -> Link:
        """Open a read-only connection, for a folder that cannot be written.

        A file without a write-ahead log does not change, so SQLite may skip its locks. The inode is not set, so the
        connection is used once, and a folder that has become writable is noticed.
        """
        log = self.path.with_name(f"{FILE}-wal")
        still = not log.exists() or log.stat().st_size == 0
        link = self._link(f"{self.path.absolute().as_uri()}?mode=ro" + ("&immutable=1" if still else ""))
        try:
            link.execute("SELECT entries, bytes FROM totals").fetchone()
        except BaseException:
            link.close()
            raise
        link.hindrance = hindrance
        return link

    def _link(self, uri: str) -> Link:
        link = sqlite3.connect(
            uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=Link
        )
        link.text_factory = bytes  # tampered text is then detected by the checksum, like all other damage
        return link

    @contextlib.contextmanager
    def _opening(self) -> Iterator[None]:
        """Hold the lock under which the file is opened or replaced."""
        handle = os.open(self.folder / "opening.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _unlink(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(FILE + suffix).unlink(missing_ok=True)


def _schema(link: sqlite3.Connection) -> list[bytes | None]:
    """Return the SQL statements of the schema, ordered by name; None for the automatic index of a table."""
    return [sql for (sql,) in link.execute("SELECT CAST(sql AS BLOB) FROM sqlite_schema ORDER BY name")]


@functools.cache
def _schema_made() -> list[bytes | None]:
    """Return the expected schema."""
    with contextlib.closing(sqlite3.connect(":memory:")) as link:
        link.executescript(_TABLES)
        return _schema(link)


_inherited: list[Link] = []


def writing(link: Link, action: Callable[[Link], T]) -> T:
    """Run an action in one transaction, which is rolled back if it fails."""
    link.execute("BEGIN IMMEDIATE")
    try:
        result = action(link)
        link.execute("COMMIT")
    except BaseException:
        if link.in_transaction:
            link.execute("ROLLBACK")
        raise
    return result


def charge(size: int) -> int:
    """Return the disk space of an entry with a body of `size` bytes, including its share of unused page space."""
    per_page = (PAGE_BYTES - 40) // (size + 12)
    return ROW_BYTES + (PAGE_BYTES // per_page if per_page else -(-size // PAGE_BYTES) * PAGE_BYTES)


def find(link: Link, key: str) -> tuple[int, object] | None:
    """Return (row id, body) of a key, or None. The body may have any type, as the row may have been tampered with."""
    return link.execute(_FIND, (key,)).fetchone()


def enter(link: Link, key: str, body: bytes, size: int) -> None:
    """Insert or replace an entry as the most recently used one, even if the clock was set back."""
    identity = link.execute(_ENTER, (key, size, time.time_ns())).fetchall()[0][0]
    link.execute("INSERT OR REPLACE INTO bodies(id, body) VALUES (?, ?)", (identity, body))


def touch(link: Link, uses: Mapping[int, int]) -> None:
    """Record when entries were used, in nanoseconds by row id. A single statement, which releases the GIL."""
    if uses:
        link.execute(_TOUCH, (json.dumps(list(uses.items())),))


def evict(link: Link, limit: int) -> int:
    """Delete the least recently used entries until at most `limit` bytes are left; returns the number deleted."""
    total, count = totals(link)[1], 0
    while total > limit:
        oldest = link.execute("SELECT id, size FROM entries ORDER BY used, id LIMIT 256").fetchall()
        if not oldest:
            break
        chosen = []
        for identity, size in oldest:
            if total <= limit:
                break
            chosen.append(identity)
            total -= size
        delete(link, chosen)
        count += len(chosen)
    return count


def delete(link: Link, identities: list[int]) -> None:
    link.executemany("DELETE FROM entries WHERE id = ?", [(identity,) for identity in identities])


def totals(link: Link) -> tuple[int, int]:
    """Return (number of entries, their size in bytes); recounts them if the stored totals are damaged."""
    row = link.execute("SELECT entries, bytes FROM totals").fetchone()
    if row is None or not all(isinstance(number, int) for number in row):
        recount(link)
        return totals(link)
    return row


def recount(link: Link) -> None:
    """Recompute the totals and delete bodies without an entry."""
    for statement in _RECOUNT:
        link.execute(statement)


def inspect(link: Link) -> Iterator[tuple[int, list[int]]]:
    """Check all entries in groups; yields (number of entries checked, row ids of the corrupt ones)."""
    last = -(2**63)
    while group := link.execute("SELECT id, key FROM entries WHERE id > ? ORDER BY id LIMIT 500", (last,)).fetchall():
        last = group[-1][0]
        yield len(group), [identity for identity, key in group if not _sound(link, identity, key)]


def _sound(link: Link, identity: int, key: object) -> bool:
    body = link.execute("SELECT body FROM bodies WHERE id = ?", (identity,)).fetchone()
    try:
        codec.decode(body and body[0], key.decode() if isinstance(key, bytes) else str(key))
    except (CorruptEntry, UnicodeDecodeError):
        return False
    return True
