"""The result store of this process: shipped results, and the cache in the home folder."""

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
    """The store in the home folder, with the results that come with the project.

    Shipped results are looked up and not copied into the folder: they are there in a read-only or full home and after
    `cache clear`, and the size of the cache counts only what was computed here.
    """

    heard: dict[str, bytes] | None = None
    """If set, records all that is put: a worker on another machine sends it back."""

    def get(self, key: str) -> tuple[Meta, Arrays] | None:
        return shipped.find(key) or super().get(key)

    def contains(self, key: str) -> bool:
        return shipped.find(key) is not None or super().contains(key)

    def put_body(self, key: str, body: bytes) -> bool:
        if self.heard is not None:
            self.heard[key] = body
        return super().put_body(key, body)


def result_store() -> ResultStore:
    """Return the store, shared by all threads; one each per process, `EXEGESIS_HOME` and bound."""
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
