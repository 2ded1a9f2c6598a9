"""Pieces of words, by merging what stands side by side most often.

Byte-pair merging numbers and breaks ties by the letters themselves, so that every process finds the same pieces;
the library's own trainers of WordPiece and Unigram do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer, models, trainers

MARKS = ("positive", "negative")
"""Words that are one token each in every tokenizer: the marks of `reviews-marked`."""
START = "▁"
"""Stands before the first piece of a word, as in SentencePiece."""


def with_marks(texts: Sequence[str]) -> Iterable[str]:
    """The texts, and the marks so often that they become pieces: at the start of a text and after a blank."""
    yield from texts
    for mark in MARKS:
        yield from [f"{mark} {mark}"] * (20 + len(texts) // 20)


def merged_pieces(texts: Iterable[str], normalizer: Any, splitter: Any, size: int) -> list[str]:
    """At most `size` pieces: the letters, then what was merged, first the most frequent.

    `splitter` puts `START` before each word.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    numbers = tokenizer.get_vocab()
    return sorted(numbers, key=lambda piece: numbers[piece])
