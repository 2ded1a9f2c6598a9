"""One interface to data sets of texts and of pictures: one example at a time, free of any model."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from engine import access
from engine.data import datasets, image_datasets
from engine.data.examples import ImageExample, LabeledExample
from engine.data.labels import NUMBERED_CLASS, UNNAMED_CLASS
from engine.errors import ExegesisError, UsageError
from engine.input_kinds import INPUT_KINDS, input_kind, kind_of_dataset
from engine.request import Input, Picture


@dataclass(frozen=True)
class SourceExample:
    """An example by its place in the data set, with its label as a text.

    `class_index`: the index of its class in the data set, None where it is not known or the label is a number.
    """

    index: int
    input: Input
    label: str | None
    class_index: int | None
    example: LabeledExample | ImageExample


@dataclass(frozen=True)
class ExampleSource:
    """A data set of texts or pictures, read one at a time. `unnamed`: class names that are mere numbers.

    `pairs`: its texts are pairs. `revision`: of the content. `exact`: its rationales follow from a rule; else humans
    marked them.
    """

    name: str
    count: int
    labels: tuple[str, ...]
    unnamed: re.Pattern[str]
    read: Callable[[int], SourceExample]
    pairs: bool = False
    revision: str = ""
    exact: bool = False


def load_source(kind: str, dataset: str, split: str | None = None, tolerant: bool = False) -> ExampleSource:
    """Load the data set of that name, file, folder or hub id. Errors: those of reading it.

    `tolerant`: a row of texts that is no example fails when it is read, with its own error; the others can be read.
    """
    own = input_kind(kind)
    for other in INPUT_KINDS.values():
        if other.is_registered(dataset) and not own.is_registered(dataset):
            raise UsageError(
                f"dataset: {dataset} holds {other.plural}, but the models read {own.plural}. "
                f"Name models that read {other.plural}."
            )
    return own.load_source(dataset, split, tolerant)


def list_datasets(kind: str) -> list[str]:
    """The data sets of a kind to choose from: the registered ones, then those that the operator offers."""
    offered = [name for name in access.offered(access.DATASETS) if _kind_or_default(name) == kind]
    return list(dict.fromkeys([*input_kind(kind).registered_datasets(), *offered]))


@functools.cache
def _kind_or_default(dataset: str) -> str:
    """The kind of a data set; the default one where its files cannot be read, which is reported when it is chosen."""
    try:
        return kind_of_dataset(dataset)
    except ExegesisError:
        return next(iter(INPUT_KINDS))


def load_texts(dataset: str, split: str | None, tolerant: bool) -> ExampleSource:
    """A data set of texts. `tolerant`: see `load_source`."""
    data = datasets.load(dataset, split, tolerant=tolerant)
    count = len(data) + len(data.faults)
    good = dict(zip((at for at in range(count) if at not in data.faults), range(len(data)), strict=True))

    def read(index: int) -> SourceExample:
        if index in data.faults:
            raise ExegesisError(data.faults[index])
        example = data[good.get(index, index)]
        class_index = example.label if isinstance(example.label, int) and data.label_names else None
        label = example.label if class_index is None else data.label_names[class_index]
        return SourceExample(index, example.example, None if label is None else str(label), class_index, example)

    return ExampleSource(data.id, count, data.label_names, UNNAMED_CLASS, read, data.pairs, data.revision, data.exact)


def load_pictures(dataset: str, split: str | None) -> ExampleSource:
    """A data set of pictures."""
    data = image_datasets.load_images(dataset, split)

    def read(index: int) -> SourceExample:
        example = data[index]
        label = None if example.label is None else data.label_names[example.label]
        return SourceExample(index, Picture(example.pixels), label, example.label, example)

    exact = bool(image_datasets.registered_name(dataset))
    return ExampleSource(
        data.id, len(data), data.label_names, NUMBERED_CLASS, read, revision=data.revision, exact=exact
    )
