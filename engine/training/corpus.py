"""The labelled examples of a fine-tuning by split, from any data set that the project can load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.data.datasets import Dataset, LabelledExample, dataset_card, load, registered
from engine.data.named import names_in
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.params import parse_assignments

SCORE = ("score",)
"""The one label of a regression head."""
ONE_SPLIT = ("reviews", "nli")
"""Embedded sets without splits."""


@dataclass(frozen=True)
class Corpus:
    """`train`, and of `validation` and `test` those that exist with labels. `revision` stands for the content."""

    name: str
    labels: tuple[str, ...]
    regression: bool
    train: tuple[LabelledExample, ...]
    others: dict[str, tuple[LabelledExample, ...]]
    revision: str


def read_corpus(dataset: str, columns: str = "") -> Corpus:
    """The train split and whatever else is there. A single file without splits is all training data."""
    mapping = parse_assignments(columns.split(",")) if columns else None
    train = train_part(dataset, mapping)
    others = {} if train.split == "all" else _others(dataset, mapping, train)
    labels = SCORE if train.task == "regression" else train.label_names
    rows = _labelled(train)
    return Corpus(dataset, labels, train.task == "regression", rows, others, train.revision)


def further(names: str, corpus: Corpus) -> dict[str, tuple[LabelledExample, ...]]:
    """Other data sets with the same labels, by name, on which the finished model is measured."""
    found = {}
    for name in names_in(names):
        data = load(name)
        labels = SCORE if data.task == "regression" else data.label_names
        if labels != corpus.labels:
            raise not_allowed(f"measure {name}", f"labelled {', '.join(corpus.labels)}", ", ".join(labels))
        found[Path(name).name] = _labelled(data)
    return found


def train_part(dataset: str, mapping: dict[str, str] | None = None) -> Dataset:
    """The train split, or the whole of a set without splits."""
    if Path(dataset).is_file() or dataset in ONE_SPLIT:
        return load(dataset, columns=mapping)
    return load(dataset, split="train", columns=mapping)


def known_card(dataset: str) -> dict[str, str]:
    """Title, source and licence of a data set; of a file only its name, never where it lies."""
    if known := registered(dataset):
        card = dataset_card(known)
        return {"name": card.title, "source": card.source, "licence": card.licence}
    name = dataset if dataset.startswith("hub:") else Path(dataset).name
    return {"name": name, "source": name, "licence": "as its source states; not known to Exegesis"}


def _others(dataset: str, mapping: dict[str, str] | None, train: Dataset) -> dict[str, tuple[LabelledExample, ...]]:
    # Classes that are named by words must get the same numbers in every split.
    names = None if registered(dataset) or train.task == "regression" else train.label_names
    found = {}
    for split in ("validation", "test"):
        try:
            other = load(dataset, split=split, columns=mapping, label_names=names)
        except UsageError:
            continue
        if other.task != train.task:
            raise ExegesisError(f"dataset: {dataset} is {train.task} in train but {other.task} in {split}.")
        if rows := _labelled(other):
            found[other.split] = rows
    return found


def _labelled(data: Dataset) -> tuple[LabelledExample, ...]:
    return tuple(example for example in data.examples if example.label is not None)
