"""Builds `reviews.jsonl` from the hand-written sources: `python -m engine.data.build_reviews`.

A source file holds one review a line, `label|traits|text`, the reason for the label in [[double brackets]].
Traits are `plain` or a comma list of `ironic`, `mixed`, `negation`, `contrast`; the first is the kind.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from engine.errors import ExegesisError

FOLDER = Path(__file__).resolve().parent
DOMAINS = ("films", "books", "restaurants", "products", "travel")
TRAITS = ("plain", "ironic", "mixed", "negation", "contrast")

_MARK = re.compile(r"\[\[|\]\]")


def unmark(marked: str) -> tuple[str, list[list[int]]]:
    """The text without its brackets, and the spans that they held, in characters."""
    text, spans = "", list[list[int]]()
    opened: int | None = None
    position = 0
    for mark in _MARK.finditer(marked):
        text += marked[position : mark.start()]
        position = mark.end()
        if (mark.group() == "[[") == (opened is not None):
            raise ExegesisError(f"brackets do not match in {marked!r}")
        if opened is None:
            opened = len(text)
        else:
            spans.append([opened, len(text)])
            opened = None
    if opened is not None:
        raise ExegesisError(f"brackets do not match in {marked!r}")
    return text + marked[position:], spans


def parse_line(line: str, domain: str) -> dict[str, Any]:
    """One source line as a record of the JSONL contract plus `domain`, `kind` and `traits`."""
    label, traits, marked = line.split("|")
    named = traits.split(",")
    if label not in ("0", "1") or not set(named) <= set(TRAITS):
        raise ExegesisError(f"{domain}: label or traits not allowed in {line!r}; traits: {', '.join(TRAITS)}")
    text, spans = unmark(marked)
    return {
        "text": text,
        "label": int(label),
        "rationale": spans,
        "domain": domain,
        "kind": named[0],
        "traits": [trait for trait in named if trait != "plain"],
    }


def read_sources(folder: Path = FOLDER / "sources") -> list[dict[str, Any]]:
    """All reviews, one of each domain in turn, so that the first n are as balanced as the whole."""
    queues = [_read_domain(folder, domain) for domain in DOMAINS]
    longest = max(len(queue) for queue in queues)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def _read_domain(folder: Path, domain: str) -> list[dict[str, Any]]:
    lines = (folder / f"{domain}.txt").read_text(encoding="utf-8").splitlines()
    records = [parse_line(line, domain) for line in lines if line.strip()]
    by_label = [[record for record in records if record["label"] == label] for label in (1, 0)]
    return [by_label[turn % 2].pop(0) for turn in range(2 * min(map(len, by_label)))] + by_label[0] + by_label[1]


def build() -> str:
    """The content of `reviews.jsonl`."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in read_sources())


def main() -> None:
    target = FOLDER / "reviews.jsonl"
    content = build()
    target.write_text(content, encoding="utf-8")
    print(f"{target.name}: {len(content.splitlines())} reviews")


if __name__ == "__main__":
    main()
