"""The one result store of this process, in the home folder."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from cache import DEFAULT_BYTES, Store, open_store
from engine.errors import not_allowed
from engine.home import home

BOUND = "EXEGESIS_CACHE_BYTES"


def result_store() -> Store:
    """Shared by all threads; a forked process, another `EXEGESIS_HOME` or another bound gets its own."""
    name = (home() / "cache", _bound(), os.getpid())
    with _lock:
        if name not in _stores:
            _stores[name] = open_store(*name[:2])
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
_stores: dict[tuple[Path, int, int], Store] = {}
os.register_at_fork(after_in_child=_renew_lock)
