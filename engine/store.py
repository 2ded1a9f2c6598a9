"""The one result store of this process: what comes with the project, and what the home folder holds."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from cache import DEFAULT_BYTES, Store
from cache.codec import Arrays, Meta
from engine import shipped
from engine.errors import not_allowed
from engine.home import home

BOUND = "EXEGESIS_CACHE_BYTES"


class ResultStore(Store):
    """The store in the home folder; the results that come with the project are found in it too.

    They are looked up and not copied into the folder: so they are there in a read-only or full home and after
    `cache clear`, and a cache's size says what was computed here.
    """

    heard: dict[str, bytes] | None = None
    """Where it is set, what is put is noted here too: a worker of another machine hands it over."""

    def get(self, key: str) -> tuple[Meta, Arrays] | None:
        return shipped.find(key) or super().get(key)

    def contains(self, key: str) -> bool:
        return shipped.find(key) is not None or super().contains(key)

    def put_body(self, key: str, body: bytes) -> bool:
        if self.heard is not None:
            self.heard[key] = body
        return super().put_body(key, body)


def result_store() -> ResultStore:
    """Shared by all threads; a forked process, another `EXEGESIS_HOME` or another bound gets its own."""
    name = (home() / "cache", _bound(), os.getpid())
    with _lock:
        if name not in _stores:
            _stores[name] = ResultStore(*name[:2])
        return _stores[name]


def _bound() -> int:
    given = os.environ.get(BOUND, "").strip() or str(DEFAULT_BYTES)
    if not given.isdigit():
        raise not_allowed(BOUND, "a whole number of bytes", given, f"Example: {BOUND}={DEFAULT_BYTES}.")
    return int(given)


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


_lock = threading.Lock()
_stores: dict[tuple[Path, int, int], ResultStore] = {}
os.register_at_fork(after_in_child=_renew_lock)
