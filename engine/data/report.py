"""Measures `reviews.jsonl` and writes `reviews_report.md`: `python -m engine.data.report`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.data.sst2 import data_root
from engine.data.wording import CONTRAST, NEGATION, holds, ngrams, shared_ngrams, word_spans

FOLDER = Path(__file__).resolve().parent
SST2_FILES = ("train.tsv", "dev.tsv", "test.tsv")
BINS = (
    (4, 9),
    (10, 14),
    (15, 19),
    (20, 24),
    (25, 29),
    (30, 34),
    (35, 39),
    (40, 44),
    (45, 49),
    (50, 54),
    (55, 60),
)


@dataclass(frozen=True)
class Stats:
    """What the report says of the reviews; lengths in words, shares in 0..1, unknown is None."""

    reviews: int
    lengths: tuple[int, ...]
    by_domain: dict[str, tuple[int, int]]
    negation: int
    contrast: int
    undeclared_words: dict[str, int]
    unsupported: tuple[str, ...]
    ironic: int
    mixed: int
    spans: tuple[int, ...]
    marked_share: float
    marked_extremes: tuple[float, float]
    shared_within: int
    shared_sst2: int | None
    sst2_sentences: int | None


def read_records(path: Path = FOLDER / "reviews.jsonl") -> list[dict[str, Any]]:
    """The reviews as they stand in the JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def sst2_sentences(folder: Path) -> list[str] | None:
    """All sentences of the local SST-2, or None where a file of it is missing."""
    paths = [folder / name for name in SST2_FILES]
    if not all(path.is_file() for path in paths):
        return None
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return [line.rpartition("\t")[0] for line in lines]


def marked_words(record: dict[str, Any]) -> float:
    """Share of a review's words that its rationale touches."""
    spans = word_spans(record["text"])
    touched = [any(start < e and s < end for s, e in record["rationale"]) for start, end in spans]
    return sum(touched) / len(spans)


def shared_with(texts: Sequence[str], sentences: Sequence[str]) -> int:
    """How many runs of six words the texts share with the sentences."""
    ours = {gram for text in texts for gram in ngrams(text)}
    return len({gram for sentence in sentences for gram in ngrams(sentence) if gram in ours})


def measure(records: Sequence[dict[str, Any]], sst2: Sequence[str] | None) -> Stats:
    """Everything that the report shows. Negation and contrast need the author's trait and a listed word."""
    texts = [record["text"] for record in records]
    shares = [marked_words(record) for record in records]
    lists = {"negation": NEGATION, "contrast": CONTRAST}
    declared = {trait: [r for r in records if trait in r["traits"]] for trait in lists}
    backed = {trait: [r for r in found if holds(r["text"], lists[trait])] for trait, found in declared.items()}
    listed = {trait: sum(bool(holds(text, entries)) for text in texts) for trait, entries in lists.items()}
    labels = Counter((record["domain"], record["label"]) for record in records)
    domains = dict.fromkeys(record["domain"] for record in records)
    return Stats(
        reviews=len(records),
        lengths=tuple(len(word_spans(text)) for text in texts),
        by_domain={domain: (labels[domain, 0], labels[domain, 1]) for domain in domains},
        negation=len(backed["negation"]),
        contrast=len(backed["contrast"]),
        undeclared_words={trait: listed[trait] - len(backed[trait]) for trait in lists},
        unsupported=tuple(r["text"] for trait in lists for r in declared[trait] if r not in backed[trait]),
        ironic=sum("ironic" in record["traits"] for record in records),
        mixed=sum("mixed" in record["traits"] for record in records),
        spans=tuple(len(record["rationale"]) for record in records),
        marked_share=sum(shares) / len(shares),
        marked_extremes=(min(shares), max(shares)),
        shared_within=len(shared_ngrams(texts)),
        shared_sst2=None if sst2 is None else shared_with(texts, sst2),
        sst2_sentences=None if sst2 is None else len(sst2),
    )


def histogram(lengths: Sequence[int]) -> str:
    """Reviews by number of words, one bar a bin."""
    counts = [(low, high, sum(low <= length <= high for length in lengths)) for low, high in BINS]
    return "\n".join(f"{low:>2}-{high:<2} {count:>3} {'#' * count}" for low, high, count in counts)


def sst2_line(stats: Stats) -> str:
    """The line on SST-2, which says so where the check could not be made."""
    if stats.shared_sst2 is None:
        return "* with SST-2: not checked, its files were not found (`EXEGESIS_DATA` names their folder)"
    return f"* with SST-2 (train, dev, test; {stats.sst2_sentences:,} sentences): {stats.shared_sst2}"


def render(stats: Stats) -> str:
    """The report as Markdown."""
    domains = "\n".join(f"| {name} | {neg} | {pos} |" for name, (neg, pos) in stats.by_domain.items())
    negative, positive = (sum(pair[label] for pair in stats.by_domain.values()) for label in (0, 1))
    spans = ", ".join(f"{count} with {size}" for size, count in sorted(Counter(stats.spans).items()))
    lengths, (low, high) = stats.lengths, stats.marked_extremes
    return f"""# The reviews, measured

Written by `python -m engine.data.report` from `reviews.jsonl`.
A word is a run of letters or digits; inner apostrophes and hyphens belong to it.

{stats.reviews} reviews, {sum(lengths):,} words, {min(lengths)} to {max(lengths)} words each,
mean {sum(lengths) / stats.reviews:.1f}.

## Length in words

```
{histogram(lengths)}
```

## Balance

| domain | negative | positive |
|---|---|---|
{domains}
| all | {negative} | {positive} |

## Language

A review counts when its author declared the trait *and* it holds a word of the list.

* negation: {stats.negation} ({stats.undeclared_words["negation"]} more hold a listed word in passing)
* contrast: {stats.contrast} ({stats.undeclared_words["contrast"]} more hold a listed word in passing)
* ironic: {stats.ironic}
* mixed: {stats.mixed}
* declared without a listed word: {len(stats.unsupported)}

Negation words: {", ".join(NEGATION)}.

Contrast words: {", ".join(CONTRAST)}.

## Rationales

* spans a review: {spans}
* share of words marked: {stats.marked_share:.1%} on average, {low:.1%} to {high:.1%}

## Runs of six words

Lowercased words without punctuation; hyphens split; tokenised suffixes such as "do n't" are joined.

* shared by two reviews: {stats.shared_within}
{sst2_line(stats)}
"""


def main() -> None:
    stats = measure(read_records(), sst2_sentences(data_root() / "sst2"))
    (FOLDER / "reviews_report.md").write_text(render(stats), encoding="utf-8")
    print(f"reviews_report.md: {stats.reviews} reviews, {stats.shared_within} runs shared within")


if __name__ == "__main__":
    main()
