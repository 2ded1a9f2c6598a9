"""Statements on the rows of the store, run on a connection of the caller."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from cache import codec
from cache.codec import CorruptEntry
from cache.database import PAGE_BYTES, Link

T = TypeVar("T")

ROW_BYTES = 200
"""Bytes of an entry besides its body: its row and its place in two indexes."""

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
