"""Build `nli.jsonl` from the hand-written source: `python -m engine.data.build_nli`.

A block of the source is a line with the premise, followed by a line for each hypothesis,
`label|phenomenon|words|hypothesis`. The label is e, n or c; the highlights are `words` of the premise, separated by
slashes if not adjacent, and words of the hypothesis in [[double brackets]].
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from engine.data.build_reviews import FOLDER, to_jsonl, unmark
from engine.data.labels import NLI_LABELS
from engine.errors import ExegesisError

PHENOMENA = (
    "belief", "cause", "comparison", "condition", "disjunction", "hypernym", "modality", "negation", "place",
    "quantity", "roles", "time", "world",
)  # fmt: skip
"""Phenomena that a label can depend on; `world`: world knowledge."""


def read_pairs(path: Path = FOLDER / "sources" / "nli.txt") -> list[dict[str, Any]]:
    """Read all pairs in order, one of each label in turn."""
    blocks = [block.strip().splitlines() for block in path.read_text(encoding="utf-8").strip().split("\n\n")]
    return [parse_pair(premise, line) for premise, *lines in blocks for line in lines]


def parse_pair(premise: str, line: str) -> dict[str, Any]:
    """Parse a hypothesis into a record of the JSONL contract plus `phenomenon`, with highlights on both sides."""
    letter, phenomenon, words, marked = line.split("|")
    label = next((i for i, name in enumerate(NLI_LABELS) if name[0] == letter), None)
    if label is None or phenomenon not in PHENOMENA:
        raise ExegesisError(f"label or phenomenon not allowed in {line!r}; phenomena: {', '.join(PHENOMENA)}")
    hypothesis, spans = unmark(marked)
    return {
        "text": premise,
        "text_pair": hypothesis,
        "label": label,
        "rationale": sorted(_locate(premise, run) for run in words.split(" / ")),
        "rationale_pair": spans,
        "phenomenon": phenomenon,
    }


def _locate(premise: str, run: str) -> list[int]:
    """Find the span of consecutive words, which must occur in the premise exactly once."""
    spans = [list(match.span()) for match in re.finditer(rf"(?<!\w){re.escape(run)}(?!\w)", premise)]
    if len(spans) != 1:
        raise ExegesisError(f"{run!r} must occur exactly once in {premise!r}, got {len(spans)}")
    return spans[0]


def main() -> None:
    records = read_pairs()
    (FOLDER / "nli.jsonl").write_text(to_jsonl(records), encoding="utf-8")
    print(f"nli.jsonl: {len(records)} pairs")


if __name__ == "__main__":
    main()
