"""A Unigram language model over pieces (Kudo, 2018), by hard expectation-maximisation.

The library's trainer sums in the order of a hash map; this one counts, and so is the same in every process.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import models

from engine.training.pretraining.pieces import MARKS, START, merged_pieces

ROUNDS = 3
"""Each parts the words in their likeliest way and drops the rarest pieces."""


def unigram_model(texts: list[str], normalizer: Any, splitter: Any, size: int, special: list[str]) -> models.Unigram:
    """`special` tokens (one is `<unk>`), then pieces with their log-probabilities, the likeliest first."""
    words = _words(texts, normalizer, splitter)
    wanted = size - len(special)
    pieces = merged_pieces(texts, normalizer, splitter, 2 * wanted)
    needed = {START, *(p for p in pieces if len(p) == 1), *(START + mark for mark in MARKS)}
    scores = dict.fromkeys(special, 0.0) | {p: -10.0 + 0.001 * len(p) for p in {*pieces, *needed}}
    for left in range(ROUNDS - 1, -1, -1):
        counts = _counts(words, _model(scores, special))
        count = wanted + (len(scores) - len(special) - wanted) * left // ROUNDS
        kept = _most_used({p: counts[p] for p in scores if p not in special}, needed, count)
        scores = dict.fromkeys(special, 0.0) | _log_probabilities(kept)
    return _model(scores, special)


def _words(texts: Iterable[str], normalizer: Any, splitter: Any) -> Counter[str]:
    words: Counter[str] = Counter()
    for text in texts:
        words.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    return words


def _model(scores: Mapping[str, float], special: list[str]) -> models.Unigram:
    rest = sorted(((p, s) for p, s in scores.items() if p not in special), key=lambda row: (-row[1], row[0]))
    return models.Unigram([*((p, 0.0) for p in special), *rest], unk_id=special.index("<unk>"))


def _counts(words: Counter[str], model: models.Unigram) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for token in model.tokenize(word):
            counts[token.value] += count
    return counts


def _most_used(counts: Mapping[str, int], needed: set[str], count: int) -> dict[str, int]:
    order = sorted(counts, key=lambda piece: (piece not in needed, -counts[piece], piece))
    return {piece: counts[piece] for piece in order[: max(count, len(needed))]}


def _log_probabilities(counts: Mapping[str, int]) -> dict[str, float]:
    """In nats, each count raised by one, to six decimals."""
    total = sum(counts.values()) + len(counts)
    return {piece: round(math.log((count + 1) / total), 6) for piece, count in counts.items()}
