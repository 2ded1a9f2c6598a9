"""The held-out part of a training set, without leaks from phrases to the sentences that hold them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch

from engine.data.examples import LabelledExample


def held_out_split(
    examples: Sequence[LabelledExample], count: int, seed: int = 0, drop_contained: bool = True
) -> tuple[list[LabelledExample], list[LabelledExample]]:
    """(train, held out). Held out are `count` examples, at most a fifth, drawn by `seed`.

    With `drop_contained`, only texts that are part of no longer text are held out, in the half with most words,
    and every train text that is part of a held-out one (by whole words, case ignored) is dropped: SST-2's train
    set holds the phrases of its sentences, so that a plain random split would test on seen words.
    """
    texts = [_words(e) for e in examples]
    candidates = _longest_whole(texts) if drop_contained else list(range(len(examples)))
    wanted = min(count, max(1, len(examples) // 5), len(candidates))
    chosen = set(random.Random(seed).sample(candidates, wanted))
    held = Containment(texts[i] for i in chosen)
    rest = [i for i in range(len(examples)) if i not in chosen]
    kept = [i for i in rest if not held.holds(texts[i])] if drop_contained else rest
    return [examples[i] for i in kept], [examples[i] for i in sorted(chosen)]


def drawn(rows: Sequence[LabelledExample], count: int, seed: int) -> list[LabelledExample]:
    """`count` of the rows in an order drawn by `seed`; all as they are where there are no more, or `count` is 0."""
    if not count or count >= len(rows):
        return list(rows)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    return [rows[i] for i in order[:count].tolist()]


class Containment:
    """Which texts hold a given one as consecutive whole words; indexed by word, so that sets of 1e5 are fast."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for i, text in enumerate(self._texts):
            for word in set(text.split()):
                self._by_word[word].append(i)

    def holds(self, text: str, strictly: bool = False) -> bool:
        """Whether an indexed text holds `text`; `strictly`: one that is longer. An empty text is held by all."""
        postings = [self._by_word.get(word, []) for word in set(text.split())]
        places: Sequence[int] = min(postings, key=len) if postings else range(len(self._texts))
        return any(text in self._texts[i] and not (strictly and text == self._texts[i]) for i in places)


def _longest_whole(texts: list[str]) -> list[int]:
    """Indices of texts inside no longer text, the first of equal ones; of these the half with most words."""
    index = Containment(texts)
    first = {text: i for i, text in reversed(list(enumerate(texts)))}
    whole = [i for text, i in first.items() if not index.holds(text, strictly=True)]
    whole.sort(key=lambda i: (-len(texts[i].split()), i))
    return whole[: max(1, len(whole) // 2)]


def _words(example: LabelledExample) -> str:
    # The blanks at both ends make `in` respect word boundaries; the tab keeps a pair's texts apart.
    parts = [example.text] if example.text_pair is None else [example.text, example.text_pair]
    joined = " \t ".join(" ".join(part.lower().split()) for part in parts)
    return f" {joined} "
