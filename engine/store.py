"""The result store of this process: shipped results, and the cache in the home folder.

It also holds texts and pictures that are too long for a link, under their SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from cache import DEFAULT_BYTES, Store, key_for
from cache.codec import Arrays, Meta
from engine import shipped
from engine.cache_mirror import configured_mirror, mirror_at, read_mirrored
from engine.errors import not_allowed
from engine.home import home
from engine.request import Picture

BOUND = "EXEGESIS_CACHE_BYTES"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ResultStore(Store):
    """The store in the home folder, combined with the results that are shipped with the project.

    Shipped results are looked up and not copied into the folder: they are available with a read-only or full home
    folder and after `cache clear`, and the size of the cache counts only results computed here.
    """

    heard: dict[str, bytes] | None = None
    """If set, records all entries that are stored: a worker on another machine sends them back."""

    def get(self, key: str) -> tuple[Meta, Arrays] | None:
        found = shipped.find(key) or super().get(key)
        return super().get(key) if found is None and self._fetch(key) else found

    def contains(self, key: str) -> bool:
        return shipped.find(key) is not None or super().contains(key) or self._fetch(key)

    def put_body(self, key: str, body: bytes) -> bool:
        stored = super().put_body(key, body)
        if self.heard is not None:
            self.heard[key] = body
        elif stored and (address := configured_mirror()):
            mirror_at(address).write(key, body)
        return stored

    def _fetch(self, key: str) -> bool:
        """Copy an entry from the mirror on a worker that has one, and return whether it was stored."""
        body = None if self.heard is None else read_mirrored(key)
        return body is not None and self.put_body(key, body)


def result_store() -> ResultStore:
    """Return the store, shared by all threads: one for each process, `EXEGESIS_HOME` and size limit."""
    name = (home() / "cache", _bound(), os.getpid())
    with _lock:
        if name not in _stores:
            _stores[name] = ResultStore(*name[:2])
        return _stores[name]


def store_text(text: str) -> str:
    """Store a text; return its SHA-256."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    _store_blob("text", digest, {"text": text}, {})
    return digest


def load_text(digest: str) -> str | None:
    """Return the text of that hash, or None if the cache no longer holds it."""
    entry = result_store().get(_key("text", digest))
    return None if entry is None else str(entry[0]["text"])


def store_picture(pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    """Store the pixels of a picture, and nothing else of its file; return their SHA-256."""
    digest = Picture(pixels).digest
    _store_blob("picture", digest, {}, {"pixels": pixels})
    return digest


def load_picture(digest: str) -> UInt8[np.ndarray, "height width 3"] | None:
    """Return the pixels of that hash, read-only, or None if the cache no longer holds them or it is not a hash."""
    entry = result_store().get(_key("picture", digest)) if _DIGEST.fullmatch(digest) else None
    return None if entry is None else entry[1]["pixels"]


def _store_blob(kind: str, digest: str, meta: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> None:
    key = _key(kind, digest)
    if not result_store().contains(key):
        result_store().put(key, meta, arrays)


def _key(kind: str, digest: str) -> str:
    return key_for({"kind": kind, "digest": digest})


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
