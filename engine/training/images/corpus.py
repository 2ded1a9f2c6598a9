"""The pictures of a training by split, and the part of train on which the epoch is chosen."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from engine.data.images.datasets import ImageDataset, load_images
from engine.data.named import names_in
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.training.images.config import ImageTrainConfig

MEASURED = ("validation", "test", "unmarked")


@dataclass(frozen=True)
class ImageCorpus:
    """`train`, and the other splits that exist, on which the finished model is measured."""

    name: str
    labels: tuple[str, ...]
    train: ImageDataset
    others: dict[str, ImageDataset]


def read_corpus(dataset: str) -> ImageCorpus:
    """The train split and whatever else is there. A set without splits is all training data."""
    train = _train(dataset)
    others = {} if train.split == "all" else _others(dataset, train)
    if len(train.label_names) < 2:
        raise ExegesisError(f"dataset: {dataset} has no two labels. Put its pictures into a folder a class.")
    return ImageCorpus(dataset, train.label_names, train, others)


def further(names: str, corpus: ImageCorpus) -> dict[str, ImageDataset]:
    """Other picture sets with the same labels, by name, on which the finished model is measured."""
    found = {}
    for name in names_in(names):
        data = load_images(name)
        if data.label_names != corpus.labels:
            raise not_allowed(f"measure {name}", f"labelled {', '.join(corpus.labels)}", ", ".join(data.label_names))
        found[Path(name).name] = data
    return found


def split_held_out(corpus: ImageCorpus, config: ImageTrainConfig) -> tuple[list[int], list[int]]:
    """(train, held out): places in the train split, drawn by the seed; at most a fifth is held out."""
    places = [i for i, label in enumerate(corpus.train.labels) if label is not None]
    if len(places) < 10:
        raise ExegesisError(f"dataset: {corpus.name} has {len(places)} labelled pictures; at least 10 are needed.")
    random.Random(config.seed).shuffle(places)
    count = min(config.held_out, max(1, len(places) // 5))
    held, kept = places[:count], places[count:]
    return kept[: config.train_size or None], held


def _train(dataset: str) -> ImageDataset:
    try:
        return load_images(dataset, split="train")
    except UsageError:
        whole = load_images(dataset)
        if whole.split != "all":
            raise
        return whole


def _others(dataset: str, train: ImageDataset) -> dict[str, ImageDataset]:
    found = {}
    for split in MEASURED:
        try:
            other = load_images(dataset, split=split)
        except UsageError:
            continue
        if other.label_names != train.label_names:
            raise ExegesisError(f"dataset: {dataset} has other classes in {split} than in train. Make them the same.")
        found[split] = other
    return found
