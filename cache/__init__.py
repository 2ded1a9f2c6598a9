"""The disk cache: canonical keys, a safe codec, a bounded store, and one computation for concurrent requests."""

from __future__ import annotations

from pathlib import Path

from cache.codec import CorruptEntry, canonical, decode, encode, key_for
from cache.database import is_damage
from cache.flight import single_flight
from cache.store import CheckReport, Stats, Store

DEFAULT_BYTES = 4 * 1024**3


def open_store(folder: Path) -> Store:
    """Open the store in `folder`, which is created if necessary, with at most `DEFAULT_BYTES` of entries."""
    return Store(folder, DEFAULT_BYTES)


__all__ = [
    "DEFAULT_BYTES",
    "CheckReport",
    "CorruptEntry",
    "Stats",
    "Store",
    "canonical",
    "decode",
    "encode",
    "is_damage",
    "key_for",
    "open_store",
    "single_flight",
]
