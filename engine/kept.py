"""What is too long for a link, texts and pictures: kept in the cache under its hash."""

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


def keep_text(text: str) -> str:
    """Keeps the text and returns its SHA-256."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    _keep("text", digest, {"text": text}, {})
    return digest


def kept_text(digest: str) -> str | None:
    """The text of that hash, or None if the cache no longer holds it."""
    entry = result_store().get(_key("text", digest))
    return None if entry is None else str(entry[0]["text"])


def keep_picture(pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    """Keeps the picture's pixels, and nothing else of its file; returns their SHA-256."""
    digest = Picture(pixels).digest
    _keep("picture", digest, {}, {"pixels": pixels})
    return digest


def kept_picture(digest: str) -> UInt8[np.ndarray, "height width 3"] | None:
    """The picture of that hash, read-only; None if the cache no longer holds it, or if it is no such hash."""
    entry = result_store().get(_key("picture", digest)) if _DIGEST.fullmatch(digest) else None
    return None if entry is None else entry[1]["pixels"]


def _keep(kind: str, digest: str, meta: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> None:
    key = _key(kind, digest)
    if not result_store().contains(key):
        result_store().put(key, meta, arrays)


def _key(kind: str, digest: str) -> str:
    return key_for({"kind": kind, "digest": digest})
