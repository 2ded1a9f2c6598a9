"""Build `reviews.jsonl` from the hand-written sources: `python -m engine.data.build_reviews`.

Each line of a source is `label|traits|text`, with the rationale in [[double brackets]]. Traits are `plain` or a list
of `ironic`, `mixed`, `negation`, `contrast` separated by commas; the first is the kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.data.examples import interleave
from engine.errors import ExegesisError

FOLDER = Path(__file__).resolve().parent
REVIEW_DOMAINS = ("films", "books", "restaurants", "products", "travel")
REVIEW_TRAITS = ("plain", "ironic", "mixed", "negation", "contrast")

_BRACKETS = re.compile(r"\[\[|\]\]")


def unmark(marked: str) -> tuple[str, list[list[int]]]:
    """Remove double brackets: (text, spans that were inside them, in characters)."""
    text, spans = "", list[list[int]]()
    start: int | None = None
    position = 0
    for bracket in _BRACKETS.finditer(marked):
        text += marked[position : bracket.start()]
        position = bracket.end()
        if (bracket.group() == "[[") == (start is not None):
            raise ExegesisError(f"brackets do not match in {marked!r}")
        if start is None:
            start = len(text)
        else:
            spans.append([start, len(text)])
            start = None
    if start is not None:
        raise ExegesisError(f"brackets do not match in {marked!r}")
    return text + marked[position:], spans


def read_reviews() -> list[dict[str, Any]]:
    """Read all reviews, alternating domains and labels, so that the first n are as balanced as the whole."""
    return interleave(_read_domain(domain) for domain in REVIEW_DOMAINS)


def _read_domain(domain: str) -> list[dict[str, Any]]:
    lines = (FOLDER / "sources" / f"{domain}.txt").read_text(encoding="utf-8").splitlines()
    records = [parse_review(line, domain) for line in lines if line.strip()]
    return interleave([record for record in records if record["label"] == label] for label in (1, 0))


def parse_review(line: str, domain: str) -> dict[str, Any]:
    """Parse a source line into a record of the JSONL contract plus `domain`, `kind` and `traits`."""
    label, listed, marked = line.split("|")
    traits = listed.split(",")
    if label not in ("0", "1") or not set(traits) <= set(REVIEW_TRAITS):
        raise ExegesisError(f"{domain}: label or traits not allowed in {line!r}; traits: {', '.join(REVIEW_TRAITS)}")
    text, spans = unmark(marked)
    return {
        "text": text,
        "label": int(label),
        "rationale": spans,
        "domain": domain,
        "kind": traits[0],
        "traits": [trait for trait in traits if trait != "plain"],
    }


def to_jsonl(records: Iterable[dict[str, Any]]) -> str:
    """Serialize records as JSONL."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def main() -> None:
    records = read_reviews()
    (FOLDER / "reviews.jsonl").write_text(to_jsonl(records), encoding="utf-8")
    print(f"reviews.jsonl: {len(records)} reviews")


if __name__ == "__main__":
    main()
