"""Results that come with the project, so that its examples open at once, in an empty home and before torch is loaded.

They are ordinary cache entries under the same keys: once a key changes (a method's version, a parameter, the model) the
lookup misses, and the result is computed. `python -m engine.shipped.make` computes those that are missing.
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

EXPLANATIONS = Path(__file__).parent / "results.jsonl"
"""One sealed entry a line, in base64."""
EVALUATIONS = Path(__file__).parent / "evaluations.jsonl"
"""As `EXPLANATIONS`, each entry packed by zlib: their numbers are mostly alike."""
RANDOMIZATIONS = Path(__file__).parent / "randomizations.jsonl"
"""Packed alike."""
ATTACKS = Path(__file__).parent / "attacks.jsonl"
"""Packed alike."""
BEHAVIORS = Path(__file__).parent / "behaviors.jsonl"
"""Packed alike."""
CORPORA = Path(__file__).parent / "corpora.jsonl"
"""Packed alike."""
CONCEPTS = Path(__file__).parent / "concepts.jsonl"
"""Packed alike."""
RULES = Path(__file__).parent / "rules.jsonl"
"""Packed alike."""
SCAFFOLDS = Path(__file__).parent / "scaffolds.jsonl"
"""Packed alike. They take hours, so that `python -m engine.scaffold.ship` makes them apart from the others."""
SUPPRESSORS = Path(__file__).parent / "suppressors.jsonl"
"""Packed alike. `python -m engine.suppressor.ship` makes them: it trains two models first."""

_ignored = False


def find(key: str) -> tuple[Meta, Arrays] | None:
    """The shipped entry of the key, or None; a damaged one counts as missing."""
    body = None if _ignored else entries().get(key)
    try:
        return None if body is None else decode(body, key)
    except CorruptEntry:
        return None


@functools.cache
def entries() -> dict[str, bytes]:
    """Every shipped entry by its key."""
    files = (EVALUATIONS, RANDOMIZATIONS, ATTACKS, BEHAVIORS, CORPORA, CONCEPTS, RULES, SCAFFOLDS, SUPPRESSORS)
    packed = (line for file in files for line in _bodies(file))
    return dict(_bodies(EXPLANATIONS)) | {key: zlib.decompress(body) for key, body in packed}


def _bodies(file: Path) -> Iterator[tuple[str, bytes]]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    for line in map(json.loads, lines):
        yield line["key"], base64.b64decode(line["body"])


@contextlib.contextmanager
def ignore_entries() -> Iterator[None]:
    """Find no shipped entry inside, so that results are computed anew. For one thread only."""
    global _ignored
    _ignored = True
    try:
        yield
    finally:
        _ignored = False
