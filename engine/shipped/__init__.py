"""Results shipped with the project, so that its examples open at once, with an empty home and before torch is loaded.

They are ordinary cache entries under the usual keys. When a key changes (a method's version, a parameter, the model),
the lookup misses and the result is computed. `python -m engine.shipped.make` computes the missing ones.
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
"""One encoded entry per line, in base64."""
EVALUATIONS = Path(__file__).parent / "evaluations.jsonl"
"""As `EXPLANATIONS`, with each entry compressed by zlib, as many values are alike."""
RANDOMIZATIONS = Path(__file__).parent / "randomizations.jsonl"
"""Same format as `EVALUATIONS`."""
ATTACKS = Path(__file__).parent / "attacks.jsonl"
"""Same format as `EVALUATIONS`."""
BEHAVIORS = Path(__file__).parent / "behaviors.jsonl"
"""Same format as `EVALUATIONS`."""
CORPORA = Path(__file__).parent / "corpora.jsonl"
"""Same format as `EVALUATIONS`."""
CONCEPTS = Path(__file__).parent / "concepts.jsonl"
"""Same format as `EVALUATIONS`."""
RULES = Path(__file__).parent / "rules.jsonl"
"""Same format as `EVALUATIONS`."""
SCAFFOLDS = Path(__file__).parent / "scaffolds.jsonl"
"""Same format as `EVALUATIONS`. They take hours, so `python -m engine.scaffold.ship` computes them separately."""
SUPPRESSORS = Path(__file__).parent / "suppressors.jsonl"
"""Same format as `EVALUATIONS`. `python -m engine.suppressor.ship` computes them, after training two models."""

_ignored = False


def find(key: str) -> tuple[Meta, Arrays] | None:
    """Return the shipped entry of a key, or None if it is missing or damaged."""
    body = None if _ignored else entries().get(key)
    try:
        return None if body is None else decode(body, key)
    except CorruptEntry:
        return None


@functools.cache
def entries() -> dict[str, bytes]:
    """Return all shipped entries, encoded, by key."""
    files = (EVALUATIONS, RANDOMIZATIONS, ATTACKS, BEHAVIORS, CORPORA, CONCEPTS, RULES, SCAFFOLDS, SUPPRESSORS)
    packed = (line for file in files for line in _bodies(file))
    return dict(_bodies(EXPLANATIONS)) | {key: zlib.decompress(body) for key, body in packed}


def _bodies(file: Path) -> Iterator[tuple[str, bytes]]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    for line in map(json.loads, lines):
        yield line["key"], base64.b64decode(line["body"])


@contextlib.contextmanager
def ignore_entries() -> Iterator[None]:
    """Ignore shipped entries within the block, so that results are recomputed. Not thread-safe."""
    global _ignored
    _ignored = True
    try:
        yield
    finally:
        _ignored = False
