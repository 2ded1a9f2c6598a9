"""Reports on the reviews, hand-written and generated: `python -m engine.data.report`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.data.registry import data_root
from engine.data.tables import read_tsv

FOLDER = Path(__file__).resolve().parent
SST2_FILES = ("train.tsv", "dev.tsv", "test.tsv")
LENGTH_BINS = ((4, 9), *((low, low + 4) for low in range(10, 55, 5)), (55, 60))
"""Bins of review lengths, in words."""
TRAIN_COUNT, TEST_COUNT = 8_000, 2_000
RUN_LENGTHS = (1, 2, 3)
"""Largest lengths of the n-grams in the bags of words."""

NEGATION = (
    "aren't", "barely", "can't", "cannot", "couldn't", "didn't", "doesn't", "don't", "hadn't", "hardly",
    "hasn't", "haven't", "isn't", "needn't", "neither", "never", "no", "nobody", "none", "nor", "not",
    "nothing", "nowhere", "scarcely", "shouldn't", "wasn't", "weren't", "without", "won't", "wouldn't",
)  # fmt: skip
CONTRAST = (
    "although", "but", "despite", "even if", "even so", "except", "however", "in spite of",
    "nevertheless", "nonetheless", "still", "though", "unlike", "whereas", "while", "yet",
)  # fmt: skip

_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
# SST-2 is tokenized: "do n't" and "it 's" are single words in plain text.
_SPLIT_SUFFIX = re.compile(r" (n't|'(?:s|m|d|t|re|ve|ll))\b")


def split_words(text: str) -> list[str]:
    """Split a text into lowercase words; "don't" and "well-made" are one word each."""
    return _WORD.findall(text.replace("’", "'").lower())


def find_word_spans(text: str) -> list[tuple[int, int]]:
    """Find start and end of each word, in characters."""
    return [match.span() for match in _WORD.finditer(text.replace("’", "'"))]


def iterate_ngrams(text: str, n: int = 6) -> Iterator[tuple[str, ...]]:
    """Iterate over the n-grams of words, split at hyphens so that "well-made" equals "well made"."""
    words = split_words(_SPLIT_SUFFIX.sub(r"\1", text.replace("-", " ")))
    return zip(*(words[offset:] for offset in range(n)), strict=False)


def find_listed(text: str, entries: Iterable[str]) -> list[str]:
    """Find the entries of a list that a text contains as whole words."""
    padded = f" {' '.join(split_words(text))} "
    return [entry for entry in entries if f" {entry} " in padded]


def find_shared_ngrams(groups: Iterable[Iterable[str]], n: int = 6) -> set[tuple[str, ...]]:
    """Find n-grams that occur in two or more groups of texts."""
    counts = Counter(gram for texts in groups for gram in {gram for text in texts for gram in iterate_ngrams(text, n)})
    return {gram for gram, count in counts.items() if count > 1}


def count_shared(texts: Iterable[str], sentences: Iterable[str]) -> int:
    """Count the six-word n-grams shared by the texts and the sentences."""
    ours = {gram for text in texts for gram in iterate_ngrams(text)}
    return len({gram for sentence in sentences for gram in iterate_ngrams(sentence) if gram in ours})


def marked_share(text: str, spans: Iterable[Sequence[int]]) -> float:
    """Return the share of a text's words that overlap its rationale."""
    words = find_word_spans(text)
    return mean([any(start < e and s < end for s, e in spans) for start, end in words])


def read_records(path: Path = FOLDER / "reviews.jsonl") -> list[dict[str, Any]]:
    """Read the examples of a JSONL file without conversion."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_sentences(folder: Path, files: Iterable[str], columns: Sequence[str]) -> list[str] | None:
    """Read all sentences of local tables, or None if one of them is missing."""
    paths = [folder / name for name in files]
    if not all(path.is_file() for path in paths):
        return None
    return [str(row[column]) for path in paths for _, row in read_tsv(path) for column in columns]


def sst2_sentences(folder: Path) -> list[str] | None:
    """Read all sentences of the local SST-2, or None if a file is missing."""
    return read_sentences(folder, SST2_FILES, ("sentence",))


def mean(values: Iterable[int | float]) -> float:
    """Return the arithmetic mean."""
    numbers = list(values)
    return sum(numbers) / len(numbers)


@dataclass(frozen=True)
class ReviewStatistics:
    """Statistics in the report on the reviews. Lengths are in words, shares from 0 to 1; None if unknown."""

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


def measure_reviews(records: Sequence[dict[str, Any]], sst2: Sequence[str] | None) -> ReviewStatistics:
    """Measure the reviews. Negation and contrast require the author's trait and a word of the list."""
    texts = [record["text"] for record in records]
    shares = [marked_share(record["text"], record["rationale"]) for record in records]
    lists = {"negation": NEGATION, "contrast": CONTRAST}
    declared = {trait: [r for r in records if trait in r["traits"]] for trait in lists}
    backed = {
        trait: [r for r in candidates if find_listed(r["text"], lists[trait])] for trait, candidates in declared.items()
    }
    holding = {trait: sum(bool(find_listed(text, entries)) for text in texts) for trait, entries in lists.items()}
    labels = Counter((record["domain"], record["label"]) for record in records)
    domains = dict.fromkeys(record["domain"] for record in records)
    return ReviewStatistics(
        reviews=len(records),
        lengths=tuple(len(find_word_spans(text)) for text in texts),
        by_domain={domain: (labels[domain, 0], labels[domain, 1]) for domain in domains},
        negation=len(backed["negation"]),
        contrast=len(backed["contrast"]),
        undeclared_words={trait: holding[trait] - len(backed[trait]) for trait in lists},
        unsupported=tuple(r["text"] for trait in lists for r in declared[trait] if r not in backed[trait]),
        ironic=sum("ironic" in record["traits"] for record in records),
        mixed=sum("mixed" in record["traits"] for record in records),
        spans=tuple(len(record["rationale"]) for record in records),
        marked_share=sum(shares) / len(shares),
        marked_extremes=(min(shares), max(shares)),
        shared_within=len(find_shared_ngrams([text] for text in texts)),
        shared_sst2=None if sst2 is None else count_shared(texts, sst2),
        sst2_sentences=None if sst2 is None else len(sst2),
    )


def sst2_line(statistics: ReviewStatistics) -> str:
    """Write the line on overlap with SST-2, or that it was not checked."""
    if statistics.shared_sst2 is None:
        return "* with SST-2: not checked, its files were not found (`EXEGESIS_DATA` names their folder)"
    return f"* with SST-2 (train, dev, test; {statistics.sst2_sentences:,} sentences): {statistics.shared_sst2}"


def render_reviews(statistics: ReviewStatistics) -> str:
    """Render the report on the reviews as Markdown."""
    domains = "\n".join(f"| {name} | {neg} | {pos} |" for name, (neg, pos) in statistics.by_domain.items())
    negative, positive = (sum(pair[label] for pair in statistics.by_domain.values()) for label in (0, 1))
    spans = ", ".join(f"{count} with {size}" for size, count in sorted(Counter(statistics.spans).items()))
    lengths, (low, high) = statistics.lengths, statistics.marked_extremes
    counts = {(start, end): sum(start <= length <= end for length in lengths) for start, end in LENGTH_BINS}
    histogram = "\n".join(f"{start:>2}-{end:<2} {count:>3} {'#' * count}" for (start, end), count in counts.items())
    return f"""# The reviews, measured

Written by `python -m engine.data.report` from `reviews.jsonl`.
A word is a run of letters or digits; inner apostrophes and hyphens belong to it.

{statistics.reviews} reviews, {sum(lengths):,} words, {min(lengths)} to {max(lengths)} words each,
mean {sum(lengths) / statistics.reviews:.1f}.

## Length in words

```
{histogram}
```

## Balance

| domain | negative | positive |
|---|---|---|
{domains}
| all | {negative} | {positive} |

## Language

A review counts when its author declared the trait *and* it holds a word of the list.

* negation: {statistics.negation} ({statistics.undeclared_words["negation"]} more hold a listed word in passing)
* contrast: {statistics.contrast} ({statistics.undeclared_words["contrast"]} more hold a listed word in passing)
* ironic: {statistics.ironic}
* mixed: {statistics.mixed}
* declared without a listed word: {len(statistics.unsupported)}

Negation words: {", ".join(NEGATION)}.

Contrast words: {", ".join(CONTRAST)}.

## Rationales

* spans a review: {spans}
* share of words marked: {statistics.marked_share:.1%} on average, {low:.1%} to {high:.1%}

## Runs of six words

Lowercased words without punctuation; hyphens split; tokenized suffixes such as "do n't" are joined.

* shared by two reviews: {statistics.shared_within}
{sst2_line(statistics)}
"""


@dataclass(frozen=True)
class BagOfWords:
    """Accuracy of a bag of words on the test split, overall and by kind."""

    longest: int
    accuracy: float
    by_kind: dict[str, float]


def measure_bag_of_words(train: Sequence[LabeledExample], test: Sequence[LabeledExample], longest: int) -> BagOfWords:
    """Fit logistic regression on the presence of n-grams of up to `longest` words."""
    bags = CountVectorizer(ngram_range=(1, longest), token_pattern=r"[\w']+", binary=True, min_df=2)
    features = bags.fit_transform([example.text for example in train])
    model = LogisticRegression(C=0.3, max_iter=1000).fit(features, [example.label for example in train])
    predicted = model.predict(bags.transform([example.text for example in test]))
    right = [bool(label == example.label) for label, example in zip(predicted, test, strict=True)]
    kinds = [str(example.extra["kind"]) for example in test]
    by_kind = {kind: mean(r for r, k in zip(right, kinds, strict=True) if k == kind) for kind in sorted(set(kinds))}
    return BagOfWords(longest, mean(right), by_kind)


def render_generated(
    train: Sequence[LabeledExample], test: Sequence[LabeledExample], bags: Sequence[BagOfWords]
) -> str:
    """Render the report on generated reviews as Markdown."""
    kinds = tuple(bags[0].by_kind)
    head = "| runs of | all | " + " | ".join(kinds) + " |\n|---|---|" + "---|" * len(kinds)
    rows = "\n".join(
        f"| {'one word' if bag.longest == 1 else f'up to {bag.longest} words'} | {bag.accuracy:.3f} | "
        + " | ".join(f"{bag.by_kind[kind]:.3f}" for kind in kinds)
        + " |"
        for bag in bags
    )
    traits = Counter(trait for example in train for trait in _list_traits(example))
    shares = "\n".join(f"* {trait}: {count / len(train):.1%}" for trait, count in sorted(traits.items()))
    lengths = [len(find_word_spans(example.text)) for example in train]
    marked = mean(marked_share(example.text, example.rationale) for example in train)
    return f"""# Generated reviews, measured

Written by `python -m engine.data.report` from the first {len(train):,} reviews for training and
{len(test):,} for test of seed 0.

## What a bag of words finds

Accuracy of logistic regression on the words of a text, whatever their order. The label follows from the grammar, so the
truth is 1.000, and guessing is right in half of the cases.

{head}
{rows}

## Language

{min(lengths)} to {max(lengths)} words, mean {mean(lengths):.1f}; {len({e.text for e in train}):,} different texts.
Share of words marked as the reason: {marked:.1%}.

Share of reviews with

{shares}
"""


def _list_traits(example: LabeledExample) -> list[str]:
    traits = example.extra["traits"]
    return [str(trait) for trait in traits] if isinstance(traits, list) else []


def main() -> None:
    reviews = measure_reviews(read_records(), sst2_sentences(data_root() / "sst2"))
    train = load("reviews-generated", split="train", limit=TRAIN_COUNT).examples
    test = load("reviews-generated", split="test", limit=TEST_COUNT).examples
    bags = [measure_bag_of_words(train, test, longest) for longest in RUN_LENGTHS]
    (FOLDER / "reviews_report.md").write_text(render_reviews(reviews), encoding="utf-8")
    (FOLDER / "reviews_generated_report.md").write_text(render_generated(train, test, bags), encoding="utf-8")
    print(f"reviews_report.md: {reviews.reviews} reviews, {reviews.shared_within} runs shared within")
    print(f"reviews_generated_report.md: a bag of words reaches {bags[0].accuracy:.3f}")


if __name__ == "__main__":
    main()
