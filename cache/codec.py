"""Encoding of cache keys and entries as bytes.

A key is the SHA-256 of the canonical JSON of plain values. An entry holds arrays as safetensors, other values as JSON,
and a checksum of both. Decoding never executes code from an entry. The checksum detects accidents: a flipped byte, a
truncated file, an entry stored under the wrong key. It does not prevent forgery: anyone who can write to the folder
can change results, but cannot run code.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy

MAGIC = b"EXEGESI1"
_DIGEST = hashlib.sha256().digest_size
_BODY = len(MAGIC) + _DIGEST
_KINDS = "biuf"

Meta = dict[str, Any]
Arrays = dict[str, np.ndarray]


def canonical(value: object) -> bytes:
    """Encode a value as canonical JSON in UTF-8: the bytes do not depend on the order of keys.

    Plain values only: None, bool, int, float, str, lists and tuples (encoded alike), and mappings with string keys.
    1, 1.0 and True are encoded differently. A float is written with the shortest digits that restore it exactly.
    Strings are not normalized, so two Unicode spellings of the same letter are different values.
    """
    text = json.dumps(plain(value), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def key_for(parts: Mapping[str, object]) -> str:
    """Return the key of a result, 64 hexadecimal digits, from all values that it depends on."""
    return hashlib.sha256(canonical(parts)).hexdigest()


def plain(value: object, where: str = "value") -> Any:
    """Convert mappings to dicts and tuples to lists. Errors: TypeError or ValueError, naming the invalid part."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return _finite(value, where)  # type: ignore[arg-type]
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_text(name, where): plain(item, f"{where}[{name!r}]") for name, item in value.items()}
    raise TypeError(f"{where}: must be None, bool, int, float, str, a list or a mapping, got {kind.__name__}")


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{where}: must be a finite number, got {value}; use None for a missing number")
    return value


def _text(name: object, where: str) -> str:
    if type(name) is not str:
        raise TypeError(f"{where}: keys must be str, got {type(name).__name__}")
    return name


class CorruptEntry(Exception):
    """Raised if bytes are not those that were stored under their key."""


def encode(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray], key: str = "") -> bytes:
    """Encode an entry, with a checksum that includes its `key`.

    `meta` is plain JSON (tuples are decoded as lists); `arrays` are bool, integer or real float, of any shape.
    """
    text = json.dumps(plain(meta, "meta"), allow_nan=False, separators=(",", ":"))
    payload = safetensors.numpy.save({n: _storable(n, a) for n, a in arrays.items()}, metadata={"meta": text})
    return MAGIC + _seal(payload, key) + payload


def decode(body: object, key: str = "") -> tuple[Meta, Arrays]:
    """Decode an entry to (meta, read-only arrays). Errors: CorruptEntry, and nothing else, for any invalid bytes."""
    body = verify(body, key)
    try:
        payload = body[_BODY:]
        size = int.from_bytes(payload[:8], "little")
        meta = json.loads(json.loads(payload[8 : 8 + size])["__metadata__"]["meta"])
        arrays = safetensors.numpy.load(payload)
    except Exception as error:
        raise CorruptEntry(f"sealed, but not an entry: {error}") from error
    if not isinstance(meta, dict):
        raise CorruptEntry(f"sealed, but its meta is a {type(meta).__name__}")
    for array in arrays.values():
        array.setflags(write=False)
    return meta, arrays


def verify(body: object, key: str = "") -> bytes:
    """Return the bytes of an entry if their checksum is valid under `key`. Errors: CorruptEntry otherwise."""
    if not isinstance(body, bytes) or len(body) < _BODY or body[: len(MAGIC)] != MAGIC:
        raise CorruptEntry("not an entry of this cache")
    if body[len(MAGIC) : _BODY] != _seal(body[_BODY:], key):
        raise CorruptEntry("checksum mismatch")
    return body


def _seal(payload: bytes, key: str) -> bytes:
    digest = hashlib.sha256(f"{len(key)}:{key}".encode("utf-8", "surrogatepass"))
    digest.update(payload)
    return digest.digest()


def _storable(name: str, array: object) -> np.ndarray:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in _KINDS or array.dtype.itemsize > 8:
        got = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"arrays[{name!r}]: must be a numpy array of bool, integers or floats, got {got}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
