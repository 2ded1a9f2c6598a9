"""The items of a study: read from its data set, drawn by its seed, with what the model says to each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.classes import PLACED, UNNAMED, match_classes
from engine.errors import ExegesisError, UsageError
from engine.predictions import predictions
from engine.progress import CancelToken, Report, silent
from engine.request import Example, Input, Picture
from engine.result import Prediction
from engine.study.design import Design, ItemChoice

TOGETHER = 64
"""Candidates that are read and judged at a time."""


@dataclass(frozen=True)
class Chosen:
    """One item: its place in the data set, the input, its label's name if that is known, the model's prediction."""

    index: int
    practice: bool
    input: Input
    label: str | None
    prediction: Prediction


@dataclass(frozen=True)
class _Candidate:
    """`known`: the index of its class in the data set, None where it is not known or a number."""

    index: int
    input: Input
    label: str | None
    known: int | None


@dataclass(frozen=True)
class _Source:
    """A data set of texts or pictures, read one at a time."""

    name: str
    count: int
    labels: tuple[str, ...]
    unnamed: re.Pattern[str]
    read: Callable[[int], _Candidate]


def choose(design: Design, report: Report = silent, cancel: CancelToken | None = None) -> list[Chosen]:
    """Practice items first. A checked design and an unchanged data set and model give the same items.

    Errors: too few examples meet the conditions; those of the data set and the model.
    """
    source = _source(design)
    if design.items.how == "hand":
        return _by_hand(design, source, report, cancel)
    _check_label(design.items, source)
    wanted = design.items.count + design.practice
    found: list[tuple[_Candidate, Prediction]] = []
    for group in _in_groups(_fitting(design.items, source, design.seed)):
        found += _judged(design, source, group, report, cancel)
        if len(found) >= wanted:
            break
    if len(found) < wanted:
        raise ExegesisError(
            f"design.items: {wanted} are wanted with the practice items, but of the {source.count:,} examples of "
            f"{source.name} only {len(found)} fit. Ask for fewer, or for less of them."
        )
    counted, practice = found[: design.items.count], found[design.items.count : wanted]
    return _chosen(practice, True) + _chosen(counted, False)


def _by_hand(design: Design, source: _Source, report: Report, cancel: CancelToken | None) -> list[Chosen]:
    for index in design.items.indices:
        if index >= source.count:
            raise UsageError(f"design.items.indices: must be 0 to {source.count - 1} in {source.name}, got {index}.")
    candidates = [source.read(index) for index in design.items.indices]
    found = _predicted(design, candidates, report, cancel)
    return _chosen(found[: design.practice], True) + _chosen(found[design.practice :], False)


def _chosen(found: Sequence[tuple[_Candidate, Prediction]], practice: bool) -> list[Chosen]:
    return [Chosen(one.index, practice, one.input, one.label, prediction) for one, prediction in found]


def _check_label(items: ItemChoice, source: _Source) -> None:
    if items.how == "filter" and items.label is not None and items.label not in source.labels:
        known = ", ".join(source.labels) or "none"
        raise UsageError(f"design.items.label: must be a class of {source.name} ({known}), got {items.label!r}.")


def _fitting(items: ItemChoice, source: _Source, seed: int) -> Iterator[_Candidate]:
    """Those whose label and length fit, in the order that the seed draws; of equal inputs the first."""
    met: set[Input] = set()
    for index in np.random.default_rng(seed).permutation(source.count):
        one = source.read(int(index))
        if one.input not in met and (items.how != "filter" or _fits(items, one)):
            met.add(one.input)
            yield one


def _fits(items: ItemChoice, one: _Candidate) -> bool:
    if items.label is not None and one.label != items.label:
        return False
    if not isinstance(one.input, Example):
        return True
    words = len(f"{one.input.text} {one.input.text_pair or ''}".split())
    return items.least_words <= words and (items.most_words is None or words <= items.most_words)


def _in_groups(candidates: Iterator[_Candidate]) -> Iterator[list[_Candidate]]:
    group: list[_Candidate] = []
    for one in candidates:
        group.append(one)
        if len(group) == TOGETHER:
            yield group
            group = []
    if group:
        yield group


def _judged(
    design: Design, source: _Source, group: list[_Candidate], report: Report, cancel: CancelToken | None
) -> list[tuple[_Candidate, Prediction]]:
    found = _predicted(design, group, report, cancel)
    if design.items.how != "filter" or design.items.judged == "any":
        return found
    classes = match_classes(source.labels, found[0][1].labels, source.unnamed)
    if classes.of is None:
        raise UsageError(f"design.items.judged: {classes.said} Choose any.")
    same = {True: design.items.judged == "right", False: design.items.judged == "wrong"}
    truth = [None if one.known is None else classes.of[one.known] for one, _ in found]
    return [pair for pair, true in zip(found, truth, strict=True) if true is not None and same[true == pair[1].index]]


def _predicted(
    design: Design, group: list[_Candidate], report: Report, cancel: CancelToken | None
) -> list[tuple[_Candidate, Prediction]]:
    said = predictions(design.model, [one.input for one in group], report=report, cancel=cancel)
    return list(zip(group, said, strict=True))


def _source(design: Design) -> _Source:
    return _pictures(design) if design.kind == "image" else _texts(design)


def _texts(design: Design) -> _Source:
    from engine.data.datasets import load

    data = load(design.dataset, design.items.split)

    def read(index: int) -> _Candidate:
        one = data[index]
        known = one.label if isinstance(one.label, int) and data.label_names else None
        label = one.label if known is None else data.label_names[known]
        return _Candidate(index, one.example, None if label is None else str(label), known)

    return _Source(data.id, len(data), data.label_names, UNNAMED, read)


def _pictures(design: Design) -> _Source:
    from engine.data.images.datasets import load_images

    data = load_images(design.dataset, design.items.split)

    def read(index: int) -> _Candidate:
        one = data[index]
        label = None if one.label is None else data.label_names[one.label]
        return _Candidate(index, Picture(one.pixels), label, one.label)

    return _Source(data.id, len(data), data.label_names, PLACED, read)
