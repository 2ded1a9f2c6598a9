"""Texts and pictures that are too long for a link, stored in the cache under their SHA-256."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import numpy as np
from jaxtyping import UInt8

from cache import key_for
from engine.request import Picture
from engine.store import result_store

_DIGEST = re.compile(r"[0-9a-f]{64}")


def store_text(text: str) -> str:
    """Store a text; return its SHA-256."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    _store("text", digest, {"text": text}, {})
    return digest


def load_text(digest: str) -> str | None:
    """Return the text of that hash, or None if the cache no longer holds it."""
    entry = result_store().get(_key("text", digest))
    return None if entry is None else str(entry[0]["text"])


def store_picture(pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    """Store the pixels of a picture, and nothing else of its file; return their SHA-256."""
    digest = Picture(pixels).digest
    _store("picture", digest, {}, {"pixels": pixels})
    return digest


def load_picture(digest: str) -> UInt8[np.ndarray, "height width 3"] | None:
    """Return the pixels of that hash, read-only, or None if the cache no longer holds them or it is not a hash."""
    entry = result_store().get(_key("picture", digest)) if _DIGEST.fullmatch(digest) else None
    return None if entry is None else entry[1]["pixels"]


def _store(kind: str, digest: str, meta: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> None:
    key = _key(kind, digest)
    if not result_store().contains(key):
        result_store().put(key, meta, arrays)


def _key(kind: str, digest: str) -> str:
    return key_for({"kind": kind, "digest": digest})
