"""Paraphrases by somebody who had not seen the grammar: how many are understood exactly, missed and misunderstood.

`python -m tests.unit.query.paraphrases` prints the numbers of both halves. The grammar was developed on the lines with
an even index; of the others only numbers were looked at. A line with a `correction` says why its slots are not the
author's, which it keeps.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.query import OPERATIONS, NotUnderstood, parse
from engine.query.grammar import THIS

LINES = [json.loads(line) for line in (Path(__file__).parent / "paraphrases.jsonl").read_text("utf-8").splitlines()]
HALVES = {"development": LINES[::2], "held-out": LINES[1::2]}
SLOTS = {"method": "methods", "model": "models", "data": "dataset", "class": "target", "examples": "example"}
EXACT, MISSED, MISUNDERSTOOD = "exact", "missed", "misunderstood"
Meaning = tuple[str, dict[str, Any]] | None


def meaning(line: Mapping[str, Any]) -> Meaning:
    """The operation and slots of a line; None where it must not be understood."""
    if line["operation"] is None:
        return None
    slots: dict[str, Any] = {}
    for name, value in line["slots"].items():
        slot = SLOTS.get(name, name)
        if name in ("method", "model"):
            slots[slot] = [value]
        elif name == "examples":
            [slots[slot]] = value
        else:
            slots[slot] = value
    return line["operation"], slots


def understood(text: str) -> Meaning:
    """What the grammar makes of a sentence. The shown example is the same as none."""
    try:
        query = parse(text, frozenset(OPERATIONS))
    except NotUnderstood:
        return None
    return query.operation, {name: value for name, value in query.slots().items() if value != THIS}


def outcome(line: Mapping[str, Any]) -> str:
    """Whether a line is understood exactly, missed, or understood as something else."""
    read = understood(line["text"])
    return EXACT if read == meaning(line) else MISSED if read is None else MISUNDERSTOOD


if __name__ == "__main__":
    for half, lines in HALVES.items():
        print(half, dict(Counter(map(outcome, lines))))
