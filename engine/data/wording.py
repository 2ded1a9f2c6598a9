"""Words of a review: how they are counted, which of them negate or contrast, which runs two texts share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
# SST-2 is tokenised: "do n't" and "it 's" are one word each in running text.
_SPLIT_SUFFIX = re.compile(r" (n't|'(?:s|m|d|t|re|ve|ll))\b")

NEGATION = (
    "aren't", "barely", "can't", "cannot", "couldn't", "didn't", "doesn't", "don't", "hadn't", "hardly",
    "hasn't", "haven't", "isn't", "needn't", "neither", "never", "no", "nobody", "none", "nor", "not",
    "nothing", "nowhere", "scarcely", "shouldn't", "wasn't", "weren't", "without", "won't", "wouldn't",
)  # fmt: skip
CONTRAST = (
    "although", "but", "despite", "even if", "even so", "except", "however", "in spite of",
    "nevertheless", "nonetheless", "still", "though", "unlike", "whereas", "while", "yet",
)  # fmt: skip


def words(text: str) -> list[str]:
    """The lowercased words of a text; "don't" and "well-made" are one word each."""
    return _WORD.findall(text.replace("’", "'").lower())


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each word starts and ends, in characters."""
    return [match.span() for match in _WORD.finditer(text.replace("’", "'"))]


def ngrams(text: str, n: int = 6) -> Iterator[tuple[str, ...]]:
    """Every run of n words; hyphens split, so that "well-made" meets "well made"."""
    plain = words(_SPLIT_SUFFIX.sub(r"\1", text.replace("-", " ")))
    return zip(*(plain[offset:] for offset in range(n)), strict=False)


def holds(text: str, listed: Iterable[str]) -> list[str]:
    """The listed words and phrases that a text holds, as whole words."""
    padded = f" {' '.join(words(text))} "
    return [entry for entry in listed if f" {entry} " in padded]


def shared_ngrams(texts: Iterable[str], n: int = 6) -> dict[tuple[str, ...], list[int]]:
    """Runs of n words that two or more of the texts hold, with the indices of those texts."""
    seen: dict[tuple[str, ...], set[int]] = {}
    for index, text in enumerate(texts):
        for gram in ngrams(text, n):
            seen.setdefault(gram, set()).add(index)
    return {gram: sorted(where) for gram, where in seen.items() if len(where) > 1}
