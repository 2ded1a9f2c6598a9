"""Texts for training: labeled examples by split, a held-out part without leakage, and tokenized sets."""

from __future__ import annotations

import dataclasses
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.data.datasets import EMBEDDED, dataset_card, load, registered_name
from engine.data.examples import Dataset, LabeledExample
from engine.data.generation import SPLIT_SIZES, GeneratedExamples
from engine.data.registry import parse_names
from engine.data.slices import split_slice, whole_name
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.models.text_adapter import TextAdapter
from engine.models.text_classifier import tokenize
from engine.params import parse_assignments
from engine.training.measured_sets import measured_name, refuse_trained_set

SCORE = ("score",)
"""The only label of a regression head."""
REPEATED = re.compile(r"(.+?)(?:\*([1-9]\d{0,2}))?")
"""A data set and how often an epoch repeats it: `sentences*4`."""
PART_WORDS = 3
"""Length in words of the index keys for finding a text: a single word of a grammar is in every tenth text."""


@dataclass(frozen=True)
class TextCorpus:
    """The training split, and the labeled validation and test splits, if any. `revision` identifies the content."""

    name: str
    labels: tuple[str, ...]
    regression: bool
    train: tuple[LabeledExample, ...]
    others: dict[str, tuple[LabeledExample, ...]]
    revision: str


@dataclass(frozen=True)
class AddedTexts:
    """The training split of a further data set. `repeats`: how often an epoch repeats each of its examples.

    `dropped`: the number of examples left out because held-out or measured texts contain them.
    """

    name: str
    repeats: int
    rows: list[LabeledExample]
    dropped: int
    revision: str


def read_text_corpus(dataset: str, columns: str = "") -> TextCorpus:
    """Load the training split and the other labeled splits; a single file is all training data."""
    mapping = parse_assignments(columns.split(","), "--columns", "text=review,label=stars") if columns else None
    train = load_train_split(dataset, mapping)
    others = {} if train.split == "all" else _load_other_splits(dataset, mapping, train)
    labels = SCORE if train.task == "regression" else train.label_names
    return TextCorpus(dataset, labels, train.task == "regression", _labelled(train), others, train.revision)


def load_further_texts(names: str, corpus: TextCorpus, add: str = "") -> dict[str, tuple[LabeledExample, ...]]:
    """Load further data sets with the same labels for the final evaluation.

    Errors: a set that is trained on (the data set itself or one in `add`), has other labels or has none.
    """
    trained = (corpus.name, *(name for name, _ in _parse_added(add)))
    sets: dict[str, tuple[LabeledExample, ...]] = {}
    for name in dict.fromkeys(parse_names(names)):
        data = load(name)
        refuse_trained_set(name, data, trained, corpus.revision)
        _check_labels(f"measure {name}", data, corpus)
        if not (rows := _labelled(data)):
            raise not_allowed("measure", "data sets with labels", name)
        sets[measured_name(name, [*corpus.others, *sets])] = rows
    return sets


def load_added_texts(names: str, corpus: TextCorpus, held_out: Sequence[LabeledExample]) -> tuple[AddedTexts, ...]:
    """Load the training splits of further data sets with the same labels, such as `sentences*4,reviews-written`.

    Examples whose text is part of a held-out text are dropped. `held_out`: all examples that a score is computed on.
    """
    added: list[AddedTexts] = []
    for name, repeats in _parse_added(names):
        if any(_is_same_set(name, other) for other in (corpus.name, *(one.name for one in added))):
            raise not_allowed("add", "data sets that are named once", name, f"To repeat one, write {name}*2.")
        data = load_train_split(name)
        _check_labels(f"add {name}", data, corpus)
        whole = _labelled(data)
        rows = drop_contained_rows(whole, held_out)
        if not rows:
            raise ExegesisError(
                f"add: every text of {name} is part of a held-out or measured text. Use --no-drop-contained."
            )
        added.append(AddedTexts(name, repeats, rows, len(whole) - len(rows), data.revision))
    return tuple(added)


def _parse_added(names: str) -> list[tuple[str, int]]:
    """Parse `sentences*4,reviews-written` into names and repeats."""
    parsed = []
    for part in parse_names(names):
        match = REPEATED.fullmatch(part)
        if match is None or "*" in match[1]:
            raise not_allowed("add", "names of data sets, each with *1 to *999 at most, such as sentences*4", part)
        parsed.append((match[1], int(match[2] or 1)))
    return parsed


def _is_same_set(first: str, second: str) -> bool:
    """Whether two names denote the same examples: the same data set, or the same slice of it."""
    (one, rows), (other, others) = split_slice(first), split_slice(second)
    same_rows = (rows and rows.rows) == (others and others.rows)
    return same_rows and Path(one).resolve() == Path(other).resolve()


def _check_labels(argument: str, data: Dataset, corpus: TextCorpus) -> None:
    labels = SCORE if data.task == "regression" else data.label_names
    if labels != corpus.labels:
        raise not_allowed(argument, f"labeled {', '.join(corpus.labels)}", ", ".join(labels) or "no labels")


def load_train_split(dataset: str, mapping: dict[str, str] | None = None) -> Dataset:
    """Load the training split, or the whole of a data set without splits."""
    whole = whole_name(dataset)
    if Path(whole).is_file() or registered_name(whole) in EMBEDDED:
        return load(dataset, columns=mapping)
    return load(dataset, split="train", columns=mapping)


def text_source(dataset: str) -> dict[str, str]:
    """Return title, source and license of a data set for the card; for a file, its name without the path."""
    if known := registered_name(dataset):
        card = dataset_card(known)
        return {"name": card.title, "source": card.source, "licence": card.licence}
    name = dataset if dataset.startswith("hub:") else Path(dataset).name
    return {"name": name, "source": name, "licence": "as its source states; not known to Exegesis"}


def text_sources(datasets: Iterable[str]) -> dict[str, str]:
    """Return the joined titles, sources and licenses of several data sets, as in `text_source`."""
    sources = [text_source(name) for name in datasets]
    return {key: "; ".join(dict.fromkeys(s[key].rstrip(".") for s in sources)) for key in sources[0]}


def _load_other_splits(
    dataset: str, mapping: dict[str, str] | None, train: Dataset
) -> dict[str, tuple[LabeledExample, ...]]:
    # Named classes must have the same indices in every split.
    names = None if registered_name(dataset) or train.task == "regression" else train.label_names
    splits = {}
    for split in ("validation", "test"):
        try:
            other = load(dataset, split=split, columns=mapping, label_names=names)
        except UsageError:
            continue
        if other.task != train.task:
            raise ExegesisError(f"dataset: {dataset} is {train.task} in train but {other.task} in {split}.")
        if isinstance(other.examples, GeneratedExamples):  # the requested size is for training
            other = dataclasses.replace(other, examples=other.examples[: SPLIT_SIZES[split]])
        if rows := _labelled(other):
            splits[other.split] = rows
    return splits


def _labelled(data: Dataset) -> tuple[LabeledExample, ...]:
    return tuple(example for example in data.examples if example.label is not None)


def split_held_out(
    examples: Sequence[LabeledExample], count: int, seed: int = 0, drop_contained: bool = True
) -> tuple[list[LabeledExample], list[LabeledExample]]:
    """Split into (train, held out) by `seed`. `count` examples are held out, at most a fifth.

    With `drop_contained`, held-out texts are drawn from the longer half of those not contained in another text, and
    training texts contained in a held-out text (by whole words, ignoring case) are dropped. SST-2's training set
    includes the phrases of its sentences, so a plain random split would leak held-out words.
    """
    texts = [_normalize(e) for e in examples]
    candidates = _longest_whole(texts) if drop_contained else list(range(len(examples)))
    wanted = min(count, max(1, len(examples) // 5), len(candidates))
    chosen = set(random.Random(seed).sample(candidates, wanted))
    held_out = [examples[i] for i in sorted(chosen)]
    rest = [example for i, example in enumerate(examples) if i not in chosen]
    return drop_contained_rows(rest, held_out) if drop_contained else rest, held_out


def drop_contained_rows(rows: Sequence[LabeledExample], held_out: Sequence[LabeledExample]) -> list[LabeledExample]:
    """Return the examples whose text is not part of a held-out text, by whole words, ignoring case."""
    index = ContainmentIndex(map(_normalize, held_out))
    return [row for row in rows if not index.contains(_normalize(row))]


def sample_rows(rows: Sequence[LabeledExample], count: int, seed: int) -> list[LabeledExample]:
    """Draw `count` rows by `seed`; return all rows in order if there are no more, or if `count` is 0."""
    if not count or count >= len(rows):
        return list(rows)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    return [rows[i] for i in order[:count].tolist()]


class ContainmentIndex:
    """Index for finding texts that contain another as consecutive whole words, fast for 1e5 texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)
        self._by_part: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for i, text in enumerate(self._texts):
            words = text.split()
            for part in {*_runs(words, 1), *_runs(words, PART_WORDS)}:
                self._by_part[part].append(i)

    def contains(self, text: str, strictly: bool = False) -> bool:
        """Whether an indexed text contains `text`; `strictly`: a longer text. Every text contains the empty one."""
        words = text.split()
        postings = [self._by_part.get(part, []) for part in _runs(words, PART_WORDS if len(words) >= PART_WORDS else 1)]
        places: Sequence[int] = min(postings, key=len) if postings else range(len(self._texts))
        return any(text in self._texts[i] and not (strictly and text == self._texts[i]) for i in places)


def _runs(words: Sequence[str], length: int) -> set[tuple[str, ...]]:
    """Return all runs of `length` consecutive words."""
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def _longest_whole(texts: list[str]) -> list[int]:
    """Return the indices of texts that no longer text contains: the half with most words; of equal texts, the first."""
    index = ContainmentIndex(texts)
    first = {text: i for i, text in reversed(list(enumerate(texts)))}
    whole = [i for text, i in first.items() if not index.contains(text, strictly=True)]
    whole.sort(key=lambda i: (-len(texts[i].split()), i))
    return whole[: max(1, len(whole) // 2)]


def _normalize(example: LabeledExample) -> str:
    # Spaces at both ends make `in` respect word boundaries; the tab separates the texts of a pair.
    parts = [example.text] if example.text_pair is None else [example.text, example.text_pair]
    joined = " \t ".join(" ".join(part.lower().split()) for part in parts)
    return f" {joined} "


@dataclass(frozen=True)
class TokenizedTexts:
    """Tokenized examples: inputs as lists of ids, and labels. `pad`: padding value of each input."""

    inputs: list[dict[str, list[int]]]
    labels: list[float]
    pad: dict[str, int]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> list[int]:
        """Number of tokens of each example."""
        return [len(row["input_ids"]) for row in self.inputs]

    def batch(self, indices: Sequence[int], device: torch.device) -> dict[str, torch.Tensor]:
        """Return right-padded inputs (batch, longest) as int64 on `device`."""
        rows = [self.inputs[i] for i in indices]
        return {name: pad_rows([row[name] for row in rows], self.pad[name]).to(device) for name in rows[0]}


def pad_rows(rows: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
    """Stack rows as int64 (rows, longest), padded on the right."""
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])


def tokenize_examples(
    examples: Sequence[LabeledExample], tokenizer: Any, max_length: int, adapter: TextAdapter
) -> TokenizedTexts:
    """Tokenize texts and pairs as in explanations (an empty second text is ignored), truncated to `max_length`."""
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if adapter.token_types else [])]
    rows: dict[int, dict[str, list[int]]] = {}
    for paired in (False, True):
        places = [i for i, e in enumerate(examples) if bool(e.text_pair) == paired]
        if places:
            pairs = [examples[i].text_pair or "" for i in places] if paired else None
            tokenized = tokenize(tokenizer, [examples[i].text for i in places], pairs, max_length)
            rows |= {i: {name: tokenized[name][k] for name in names} for k, i in enumerate(places)}
    pad = {"input_ids": tokenizer.pad_token_id, "attention_mask": 0, "token_type_ids": 0}
    return TokenizedTexts([rows[i] for i in range(len(examples))], [float(e.label or 0) for e in examples], pad)
