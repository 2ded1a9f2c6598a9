"""Results that come with the project, so that its examples open at once, in an empty home and before torch is there.

They are ordinary cache entries, found by the same keys: after any change that changes a key (a method's version, a
parameter, the model) they are simply not found, and what is asked for is computed. `python -m engine.shipped.make`
computes them anew.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from cache import CorruptEntry, decode
from cache.codec import Arrays, Meta

FILE = Path(__file__).parent / "results.jsonl"
"""One sealed entry a line, in base64."""
EVALUATIONS = Path(__file__).parent / "evaluations.jsonl"
"""The same, each packed by zlib: they are mostly alike numbers."""
RANDOMIZATIONS = Path(__file__).parent / "randomizations.jsonl"
"""As packed."""
ATTACKS = Path(__file__).parent / "attacks.jsonl"
"""As packed."""
SCAFFOLDS = Path(__file__).parent / "scaffolds.jsonl"
"""As packed. They take hours, so that they are not made with the others but by `python -m engine.scaffold.ship`."""

_aside = False


def find(key: str) -> tuple[Meta, Arrays] | None:
    """The shipped entry of that key; a damaged one is as good as none."""
    body = None if _aside else entries().get(key)
    try:
        return None if body is None else decode(body, key)
    except CorruptEntry:
        return None


@functools.cache
def entries() -> dict[str, bytes]:
    """Every shipped entry by its key."""
    packed = (line for file in (EVALUATIONS, RANDOMIZATIONS, ATTACKS, SCAFFOLDS) for line in _bodies(file))
    return dict(_bodies(FILE)) | {key: zlib.decompress(body) for key, body in packed}


def _bodies(file: Path) -> Iterator[tuple[str, bytes]]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    for line in map(json.loads, lines):
        yield line["key"], base64.b64decode(line["body"])


@contextlib.contextmanager
def set_aside() -> Iterator[None]:
    """Inside, nothing shipped is found: for those who compute anew. For one thread's use."""
    global _aside
    _aside = True
    try:
        yield
    finally:
        _aside = False
