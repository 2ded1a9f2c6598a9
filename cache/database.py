"""One SQLite file, opened safely by many threads and processes, replaced when it is broken beyond use.

Below are the statements on its rows, run on a connection of the caller.
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
"""Bytes of an entry besides its body: its row and its place in two indexes."""

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
    sqlite3.SQLITE_ERROR,  # a table is not as we made it
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_CONSTRAINT,
}


FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite; the second where its message quotes damaged text."""


def is_damage(error: BaseException | None, path: Path) -> bool:
    """Whether the file at `path` is at fault, so that only a new one helps."""
    if isinstance(error, UnicodeDecodeError):
        return True
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Python's own: our verdict on the schema, or a text of the schema that is no UTF-8
        return type(error) in (sqlite3.DatabaseError, sqlite3.OperationalError)
    if code & 0xFF == sqlite3.SQLITE_READONLY:  # what a damaged header claims of a file that is not
        return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))
    return (code & 0xFF) in _BROKEN


class Link(sqlite3.Connection):
    """A connection that knows which file it has open, so that a replaced file is noticed."""

    inode = -2
    hindrance: Exception | None = None
    """Why this connection can only read."""


class Database:
    """Lends connections: one a thread at a time, never carried over a fork."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / FILE
        self.damage = ""
        """Why the file was replaced by an empty one, if it was."""
        self._pid = os.getpid()
        self._idle: list[Link] = []

    @contextlib.contextmanager
    def lend(self) -> Iterator[Link]:
        """A connection for the length of a `with`; one that saw an error is closed, not kept.

        An error that is the file's own fault replaces the file before it is passed on.
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
        """Drops the file with this inode and its log, unless another process has done so already."""
        with self._opening():
            if self._inode() != inode:
                return
            self._unlink()
        self.damage = reason

    def is_broken(self, error: Exception) -> bool:
        """Whether the file itself is at fault, so that only a new one helps."""
        return is_damage(error, self.path)

    def close(self) -> None:
        """Closes the idle connections. The next loan opens anew."""
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
        """For a folder that may only be read. A file without a log stands still: SQLite may skip its locks.

        The inode stays unknown, so that the connection serves once and a mended folder is noticed.
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
        link.text_factory = bytes  # tampered text is then judged by its checksum, like everything else
        return link

    @contextlib.contextmanager
    def _opening(self) -> Iterator[None]:
        """Nobody opens the file while somebody replaces it."""
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
    """The statements by the names of what they made; none of an index that a table brings with it."""
    return [sql for (sql,) in link.execute("SELECT CAST(sql AS BLOB) FROM sqlite_schema ORDER BY name")]


@functools.cache
def _schema_made() -> list[bytes | None]:
    """The schema of intact tables."""
    with contextlib.closing(sqlite3.connect(":memory:")) as link:
        link.executescript(_TABLES)
        return _schema(link)


_inherited: list[Link] = []


def writing(link: Link, action: Callable[[Link], T]) -> T:
    """The action in one transaction: all of it or nothing."""
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
    """Disk space of a body of `size` bytes, with the unused rest of the page that it shares."""
    per_page = (PAGE_BYTES - 40) // (size + 12)
    return ROW_BYTES + (PAGE_BYTES // per_page if per_page else -(-size // PAGE_BYTES) * PAGE_BYTES)


def find(link: Link, key: str) -> tuple[int, object] | None:
    """Row id and body, which may be anything: somebody may have tampered with the row."""
    return link.execute(_FIND, (key,)).fetchone()


def enter(link: Link, key: str, body: bytes, size: int) -> None:
    """Adds or replaces an entry as the one used last, even if the clock was set back."""
    identity = link.execute(_ENTER, (key, size, time.time_ns())).fetchall()[0][0]
    link.execute("INSERT OR REPLACE INTO bodies(id, body) VALUES (?, ?)", (identity, body))


def touch(link: Link, uses: Mapping[int, int]) -> None:
    """Writes down when entries (by row id) were used, in nanoseconds; one statement, which frees the GIL."""
    if uses:
        link.execute(_TOUCH, (json.dumps(list(uses.items())),))


def evict(link: Link, limit: int) -> int:
    """Drops the least recently used entries until at most `limit` bytes are left; returns how many."""
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
    """Return the number of entries and of their bytes."""
    row = link.execute("SELECT entries, bytes FROM totals").fetchone()
    if row is None or not all(isinstance(number, int) for number in row):
        recount(link)
        return totals(link)
    return row


def recount(link: Link) -> None:
    """Sets the totals right and drops bodies that belong to no entry."""
    for statement in _RECOUNT:
        link.execute(statement)


def inspect(link: Link) -> Iterator[tuple[int, list[int]]]:
    """Reads all entries in groups; yields (how many were read, the ids of the corrupt ones)."""
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
