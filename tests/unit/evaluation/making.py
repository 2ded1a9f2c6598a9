"""Small data sets for evaluations, written as people have them."""

from __future__ import annotations

import json
from pathlib import Path

REVIEWS = [
    {"text": "a quiet triumph and the acting never falters", "label": 1, "rationale": [[2, 15]]},
    {"text": "although the plot drags, the ending is warm and funny", "label": 1, "rationale": [[39, 43], [48, 53]]},
    {"text": "not worth the price: the battery died after two days", "label": 0, "rationale": [[0, 9]]},
    {"text": "good food, bad service", "label": 0, "rationale": []},
    {"text": "lovely view", "label": 1, "rationale": [[0, 11]]},
    {"text": "the plot drags", "label": 0, "rationale": [[9, 14]]},
]
"""One without a mark, one with nothing else."""
TRANSLATIONS = [
    {
        "text": source, "text_pair": target, "label": score, "rationale": first, "rationale_pair": second, "pair": pair,
    }
    for source, target, score, first, second, pair in (
        ("good food", "bad service", 0.4, [], [[0, 3]], "en-de"),
        ("lovely view", "the plot drags", 0.1, [[0, 6]], [[4, 8]], "en-de"),
        ("warm and funny", "the ending is warm", 1.0, [], [], "et-en"),
        ("the battery died", "two days", 0.0, [[4, 11]], [[0, 3]], "et-en"),
    )
]  # fmt: skip
"""Words with errors are marked; one translation has none."""


def written(file: Path, rows: list[dict[str, object]]) -> str:
    """The path of a JSONL file of these rows."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)
