"""Builds `nli.jsonl` from the hand-written source: `python -m engine.data.build_nli`.

A block of the source is a premise on a line and below it its hypotheses, `label|phenomenon|words|hypothesis`: the label
is e, n or c; `words` of the premise (runs of them between slashes) and those in [[double brackets]] are its highlights.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from engine.data.build_reviews import unmark
from engine.data.labels import NLI_LABELS
from engine.errors import ExegesisError

FOLDER = Path(__file__).resolve().parent
PHENOMENA = (
    "belief", "cause", "comparison", "condition", "disjunction", "hypernym", "modality", "negation", "place",
    "quantity", "roles", "time", "world",
)  # fmt: skip
"""What one must understand to tell the label; `world` is knowledge of the world."""


def parse_block(block: str) -> list[dict[str, Any]]:
    """The pairs of one premise as records of the JSONL contract plus `phenomenon`."""
    premise, *lines = block.strip().splitlines()
    return [parse_line(premise, line) for line in lines]


def parse_line(premise: str, line: str) -> dict[str, Any]:
    """One hypothesis with its highlights on both sides."""
    letter, phenomenon, words, marked = line.split("|")
    label = next((i for i, name in enumerate(NLI_LABELS) if name[0] == letter), None)
    if label is None or phenomenon not in PHENOMENA:
        raise ExegesisError(f"label or phenomenon not allowed in {line!r}; phenomena: {', '.join(PHENOMENA)}")
    hypothesis, spans = unmark(marked)
    return {
        "text": premise,
        "text_pair": hypothesis,
        "label": label,
        "rationale": sorted(_place(premise, run) for run in words.split(" / ")),
        "rationale_pair": spans,
        "phenomenon": phenomenon,
    }


def _place(premise: str, run: str) -> list[int]:
    """Where the run stands; it must stand there once."""
    found = [list(match.span()) for match in re.finditer(rf"(?<!\w){re.escape(run)}(?!\w)", premise)]
    if len(found) != 1:
        raise ExegesisError(f"{run!r} must stand exactly once in {premise!r}, got {len(found)}")
    return found[0]


def read_sources(path: Path = FOLDER / "sources" / "nli.txt") -> list[dict[str, Any]]:
    """All pairs in their order: one of each label in turn."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [record for block in blocks for record in parse_block(block)]


def build() -> str:
    """The content of `nli.jsonl`."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in read_sources())


def main() -> None:
    content = build()
    (FOLDER / "nli.jsonl").write_text(content, encoding="utf-8")
    print(f"nli.jsonl: {len(content.splitlines())} pairs")


if __name__ == "__main__":
    main()
