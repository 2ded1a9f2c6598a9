"""A data set of texts or of pictures, read alike: one example at a time, free of any model."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from engine import access
from engine.data.classes import PLACED, UNNAMED
from engine.data.examples import LabelledExample
from engine.data.images.examples import ImageExample
from engine.errors import ExegesisError, UsageError
from engine.request import Input, Picture


@dataclass(frozen=True)
class Candidate:
    """An example by its place in the data set, with all that is known of it.

    `known`: the index of its class in the data set, None where it is not known or a number.
    """

    index: int
    input: Input
    label: str | None
    known: int | None
    given: LabelledExample | ImageExample


@dataclass(frozen=True)
class Source:
    """A data set of texts or pictures, read one at a time. `unnamed`: class names that stand for none.

    `pairs`: its texts are pairs. `revision`: of the content. `exact`: what it marks follows from how it was made; else
    somebody marked it.
    """

    name: str
    count: int
    labels: tuple[str, ...]
    unnamed: re.Pattern[str]
    read: Callable[[int], Candidate]
    pairs: bool = False
    revision: str = ""
    exact: bool = False


def source_of(kind: str, dataset: str, split: str | None = None, tolerant: bool = False) -> Source:
    """The data set of that name, file, folder or hub id. Errors: those of reading it.

    `tolerant`: a row of texts that is no example fails when it is read, with its own error, and not all of them.
    """
    _check_kind(kind, dataset)
    return _pictures(dataset, split) if kind == "image" else _texts(dataset, split, tolerant)


def listed_datasets(kind: str) -> list[str]:
    """The data sets to choose from, "text" or "image": the registered ones, then those that the operator offers."""
    from engine.data.datasets import dataset_names
    from engine.data.images.datasets import image_names

    own = image_names() if kind == "image" else dataset_names()
    return list(dict.fromkeys([*own, *(name for name in access.offered(access.DATASETS) if _kind(name) == kind)]))


@functools.cache
def _kind(dataset: str) -> str:
    """What a data set holds; "text" where its files cannot be read, which is told as soon as it is chosen."""
    from engine.data.images.datasets import is_images

    try:
        return "image" if is_images(dataset) else "text"
    except ExegesisError:
        return "text"


def _check_kind(kind: str, dataset: str) -> None:
    """A name of the other kind is known, only not to these models."""
    from engine.data import datasets
    from engine.data.images import datasets as pictures

    texts, shown = datasets.registered(dataset), pictures.registered(dataset)
    if kind == "image" and texts and not shown:
        raise _other_kind(dataset, "texts", "pictures")
    if kind == "text" and shown and not texts:
        raise _other_kind(dataset, "pictures", "texts")


def _other_kind(dataset: str, holds: str, read: str) -> UsageError:
    return UsageError(f"dataset: {dataset} holds {holds}, but the models read {read}. Name models that read {holds}.")


def _texts(dataset: str, split: str | None, tolerant: bool) -> Source:
    from engine.data.datasets import load

    data = load(dataset, split, tolerant=tolerant)
    count = len(data) + len(data.faults)
    good = dict(zip((at for at in range(count) if at not in data.faults), range(len(data)), strict=True))

    def read(index: int) -> Candidate:
        if index in data.faults:
            raise ExegesisError(data.faults[index])
        one = data[good.get(index, index)]
        known = one.label if isinstance(one.label, int) and data.label_names else None
        label = one.label if known is None else data.label_names[known]
        return Candidate(index, one.example, None if label is None else str(label), known, one)

    return Source(data.id, count, data.label_names, UNNAMED, read, data.pairs, data.revision, data.exact)


def _pictures(dataset: str, split: str | None) -> Source:
    from engine.data.images.datasets import load_images, registered

    data = load_images(dataset, split)

    def read(index: int) -> Candidate:
        one = data[index]
        label = None if one.label is None else data.label_names[one.label]
        return Candidate(index, Picture(one.pixels), label, one.label, one)

    return Source(
        data.id, len(data), data.label_names, PLACED, read, revision=data.revision, exact=bool(registered(dataset))
    )
