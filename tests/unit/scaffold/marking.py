"""Small data sets that say what matters in their examples."""

from __future__ import annotations

import json
from pathlib import Path

from engine.data.sources import load_source
from engine.scaffold.plan import EvaluationSample

TEXTS = (
    "the film is a quiet triumph", "although a film drags", "not worth a film", "good food and a film", "lovely view",
    "film",
)  # fmt: skip
"""Each marks its word film; the last but one has none, and the last nothing else."""


def marked_file(file: Path, pair: bool = False) -> Path:
    """The texts with their marks; as pairs, the second text of the first one is marked too."""
    rows = []
    for place, text in enumerate(TEXTS):
        start = text.find("film")
        row: dict[str, object] = {
            "text": text,
            "label": place % 2,
            "rationale": [] if start < 0 else [[start, start + 4]],
        }
        if pair:
            row |= {"text_pair": "bad service here", "rationale_pair": [[0, 3]] if place == 0 else []}
        rows.append(row)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def marked_pictures(teacher: str, count: int) -> EvaluationSample:
    """The first procedural scenes, whose masks are known."""
    source = load_source("image", "scenes", None, tolerant=True)
    return EvaluationSample(teacher, "scenes", None, tuple(range(count)), source)
