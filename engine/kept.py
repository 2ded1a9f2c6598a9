"""Texts too long for a link: kept in the cache under their hash."""

from __future__ import annotations

import hashlib

from cache import key_for
from engine.store import result_store


def keep_text(text: str) -> str:
    """Keeps the text and returns its SHA-256."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    key = _key(digest)
    if not result_store().contains(key):
        result_store().put(key, {"text": text}, {})
    return digest


def kept_text(digest: str) -> str | None:
    """The text of that hash, or None if the cache no longer holds it."""
    entry = result_store().get(_key(digest))
    return None if entry is None else str(entry[0]["text"])


def _key(digest: str) -> str:
    return key_for({"kind": "text", "digest": digest})
