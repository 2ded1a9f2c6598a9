"""The result store: a bounded map from key to (meta, arrays). Faults of the disk never raise or give wrong data.

It uses sqlite3 in WAL mode, with the entries stored inline. Readers never wait (a read is one indexed lookup in an
open file, even while another process writes), and size, access order and entry change in one transaction. The
alternative, diskcache, writes the access order on each read, unpickles stored values unless all four methods of its
Disk are overridden, and stores larger values in separate files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cache import codec, database
from cache.codec import Arrays, CorruptEntry, Meta
from cache.database import FAULTS, Database, Link

_MANY_USES = 1000
_USE_SECONDS = 2.0
_LARGEST = 900_000_000  # SQLite's own limit for one value is 10^9 bytes

T = TypeVar("T")


@dataclass(frozen=True)
class Stats:
    """Statistics of a store. `bytes`: size of the entries, at most `max_bytes`. `file_bytes`: including free pages."""

    folder: str
    entries: int
    bytes: int
    max_bytes: int
    file_bytes: int
    hits: int
    misses: int
    status: str

    def as_plain(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class CheckReport:
    """Result of `Store.check`: corrupt entries that were dropped, and whether a damaged file was replaced."""

    checked: int
    dropped: int
    replaced: bool
    status: str

    @property
    def ok(self) -> bool:
        return not (self.dropped or self.replaced or self.status)


class Store:
    """A store shared by all threads of a process; each process opens its own on the same folder.

    The access order is exact within a process. Other processes learn of hits after about two seconds, and of at most
    a thousand different entries at a time.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        self._trouble = ""
        self._database = Database(self.folder)
        self._uses = _Uses()
        self._hits = self._misses = 0
        weakref.finalize(self, _leave, self._database, self._uses)

    @property
    def status(self) -> str:
        """Message for users with the problem and what to do about it; empty if there is none."""
        damage = self._database.damage
        news = f"The cache in {self.folder} was damaged ({damage}). A new cache was started." if damage else ""
        return self._trouble or news

    def get(self, key: str) -> tuple[Meta, Arrays] | None:
        """Return the entry of `key`, or None. A corrupt entry is deleted and counts as a miss."""
        row = self._try(database.find, _valid(key))
        if row is not None:
            try:
                entry = codec.decode(row[1], key)
            except CorruptEntry:
                self._write(database.delete, [row[0]])
            else:
                self._hits += 1
                if self._uses.note(row[0]):
                    threading.Thread(target=self._write_uses, daemon=True).start()
                return entry
        self._misses += 1
        return None

    def contains(self, key: str) -> bool:
        """Whether `get` would return an entry. Its checksum is verified; the call does not count as a use."""
        row = self._try(database.find, _valid(key))
        if row is None:
            return False
        try:
            codec.verify(row[1], key)
        except CorruptEntry:
            self._write(database.delete, [row[0]])
            return False
        return True

    def put(self, key: str, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bool:
        """Store an entry, evicting the least recently used ones. Returns False if it was not stored (see `status`).

        Errors: TypeError or ValueError for values that are not plain, which is an error of the caller.
        """
        return self.put_body(_valid(key), codec.encode(meta, arrays, key))

    def put_body(self, key: str, body: bytes) -> bool:
        """Store bytes that `codec.encode` returned for this key. Returns False if they were not stored."""
        size = database.charge(len(body))
        if size > min(self.max_bytes, _LARGEST):
            self._trouble = f"A result of {size:,} bytes was not cached: the limit is {self.max_bytes:,} bytes."
            return False
        stored = self._write(self._put, key, body, size) is not None
        if stored:
            self._trouble = ""
        return stored

    def stats(self) -> Stats:
        """Return the sizes of the store, and the hits and misses of this process."""
        entries, total = self._try(database.totals) or (0, 0)
        file_bytes = self._try(_file_bytes) or 0
        counts = (entries, total, self.max_bytes, file_bytes, self._hits, self._misses)
        return Stats(str(self.folder), *counts, self.status)

    def check(self) -> CheckReport:
        """Check every entry, delete the corrupt ones and recompute the totals; a damaged file is replaced."""
        self._database.damage = ""
        checked, dropped = self._try(self._inspect) or (0, 0)
        self._write(database.recount)
        return CheckReport(checked, dropped, bool(self._database.damage), self.status)

    def prune(self, max_bytes: int | None = None) -> int:
        """Delete the least recently used entries until at most `max_bytes` are left; returns the number deleted.

        The default is the limit of the store. Unlike eviction in `put`, this returns the space to the disk.
        """
        limit = self.max_bytes if max_bytes is None else max_bytes
        self._write_uses()
        count = self._write(database.evict, limit)
        self._try(_shrink)
        return count or 0

    def clear(self) -> int:
        """Delete all entries and return their number."""
        return self.prune(-1)

    def close(self) -> None:
        """Save the access order and close the file. The store can be used again afterwards."""
        self._write_uses()
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _put(self, link: Link, key: str, body: bytes, size: int) -> bool:
        database.touch(link, self._uses.take())
        database.enter(link, key, body, size)
        database.evict(link, self.max_bytes)
        return True

    def _inspect(self, link: Link) -> tuple[int, int]:
        sound = link.execute("PRAGMA quick_check(1)").fetchone()[0]
        if sound != b"ok":
            raise sqlite3.DatabaseError(sound.decode(errors="replace"))
        checked = dropped = 0
        for count, bad in database.inspect(link):
            self._write(database.delete, bad)
            checked, dropped = checked + count, dropped + len(bad)
        return checked, dropped

    def _write_uses(self) -> None:
        uses = self._uses.take()
        if uses:
            self._write(database.touch, uses)

    def _write(self, action: Callable[..., T], *arguments: Any) -> T | None:
        return self._try(database.writing, lambda link: action(link, *arguments))

    def _try(self, action: Callable[..., T], *arguments: Any) -> T | None:
        """Run an action on a connection. If the disk or the file fails, return None and set the status.

        A damaged file has been replaced by the time its error arrives here, so the action is tried once more.
        """
        for last in (False, True):
            link = None
            try:
                with self._database.lend() as link:
                    result = action(link, *arguments)
                self._say(link.hindrance)
                return result
            except (OSError, *FAULTS) as error:
                if last or not self._database.is_broken(error):
                    self._say((link and link.hindrance) or error)
                    break
        return None

    def _say(self, error: Exception | None) -> None:
        if error is not None:
            self._trouble = describe_fault(self.folder, error)


class _Uses:
    """Times of hits by row id, collected so that no read has to wait for a write."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._when: dict[int, int] = {}
        self._taken = time.monotonic()

    def note(self, identity: int) -> bool:
        """Record a hit. Returns True when it is time to write all hits to disk."""
        if self._pid != os.getpid():
            self._pid, self._when = os.getpid(), {}
        if len(self._when) < _MANY_USES:
            self._when[identity] = time.time_ns()
        now = time.monotonic()
        due = now - self._taken > _USE_SECONDS
        if due:
            self._taken = now
        return due

    def take(self) -> dict[int, int]:
        taken, self._when = self._when, {}
        self._taken = time.monotonic()
        return taken


def _leave(opened: Database, uses: _Uses) -> None:
    """Save the hits and close a store that was not closed, when it is collected or the process exits."""
    taken = uses.take()
    if taken:
        with contextlib.suppress(OSError, *FAULTS), opened.lend() as link:
            link.execute("PRAGMA busy_timeout=200")
            database.writing(link, lambda link: database.touch(link, taken))
    opened.close()


def describe_fault(folder: Path, error: Exception) -> str:
    """Describe an error of the cache for users, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk of the cache {folder} is full, so new results are not cached. Free space or move the cache."
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"Another process locked the cache {folder} for too long, so a result was not cached."
    if code == sqlite3.SQLITE_READONLY:
        return f"The cache folder {folder} is read-only, so new results are not cached. Make it writable."
    return (
        f"The cache {folder} cannot be used ({error}), so results are computed each time. "
        "Make the folder writable or choose another one."
    )


def _file_bytes(link: Link) -> int:
    pages, size = (link.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return pages * size


def _shrink(link: Link) -> None:
    link.executescript("PRAGMA incremental_vacuum")  # execute would stop after one page
    link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _valid(key: object) -> str:
    if not isinstance(key, str) or not key.isascii() or not 0 < len(key) <= 200:
        raise ValueError(f"key: must be 1 to 200 ASCII characters, got {key!r:.80}")
    return key
