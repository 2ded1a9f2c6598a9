"""Cache keys: the SHA-256 of a canonical JSON of plain values."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any


def canonical(value: object) -> bytes:
    """UTF-8 JSON that is the same bytes for the same value, whatever the order of the keys.

    Plain values only: None, bool, int, float, str, lists or tuples (written alike), mappings with text keys.
    1, 1.0 and True differ; a float is written with the shortest digits that give it back exactly; text is
    not normalized, so that two spellings of the same letter stay two values.
    """
    text = json.dumps(plain(value), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def key_for(parts: Mapping[str, object]) -> str:
    """64 hexadecimal digits that name a result by all that it depends on."""
    return hashlib.sha256(canonical(parts)).hexdigest()


def plain(value: object, where: str = "value") -> Any:
    """Return the value in dicts and lists only. TypeError or ValueError names the place that is not plain."""
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
