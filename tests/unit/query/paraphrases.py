"""Paraphrases by people who had not seen the grammar: how many are understood exactly, missed and misunderstood.

`python -m tests.unit.query.paraphrases` prints the numbers of each set, by the authors' answers as written and with
corrections. A corrected line keeps what its author wrote and says why: ordinals, whose index is one less ("third
example" has the index 2), and methods that are or are not here.

`first`: 200 lines, all seen while the grammar was developed. `second`: 100 lines, on which the grammar was tried once
and then developed; when they were opened, 92 were understood exactly as written, 7 missed and 1 misunderstood, which
names a method that its author did not know. `held-out`: 100 lines on which the grammar was tried once and not
developed; refusals that were added later cost one of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.query import OPERATIONS, NotUnderstood, parse
from engine.query.grammar import THIS

FILES = {"first": "paraphrases.jsonl", "second": "paraphrases_1.jsonl", "held-out": "paraphrases_2.jsonl"}
SETS = {
    name: [json.loads(line) for line in (Path(__file__).parent / file).read_text("utf-8").splitlines()]
    for name, file in FILES.items()
}
SLOTS = {
    "method": "methods",
    "model": "models",
    "data": "dataset",
    "class": "target",
    "examples": "example",
    "n": "count",
}
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
        elif name == "texts":
            slots["text"], slots["text_pair"] = value
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


def as_written(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """The line with the answer that its author wrote, before any correction."""
    if "author_slots" not in line:
        return line
    return {**line, "operation": line.get("author_operation", line["operation"]), "slots": line["author_slots"]}


if __name__ == "__main__":
    for name, lines in SETS.items():
        print(name, "as written:", dict(Counter(outcome(as_written(line)) for line in lines)))
        corrected = sum("author_slots" in line for line in lines)
        print(name, f"with {corrected} corrections:", dict(Counter(map(outcome, lines))))
