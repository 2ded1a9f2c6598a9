"""The items of a study: read from its data set, drawn by its seed, with what the model says to each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.labels import match_classes
from engine.data.sources import ExampleSource, SourceExample, load_source
from engine.errors import ExegesisError, UsageError
from engine.predictions import predictions
from engine.progress import CancelToken, Report, silent
from engine.request import Example, Input
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


def choose(design: Design, report: Report = silent, cancel: CancelToken | None = None) -> list[Chosen]:
    """Practice items first. A checked design and an unchanged data set and model give the same items.

    Errors: too few examples meet the conditions; those of the data set and the model.
    """
    source = load_source(design.kind, design.dataset, design.items.split)
    if design.items.how == "hand":
        return _by_hand(design, source, report, cancel)
    wanted = design.items.count + design.practice
    found: list[tuple[SourceExample, Prediction]] = []
    for group in _in_groups(candidates(design, source)):
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


def candidates(design: Design, source: ExampleSource) -> Iterator[SourceExample]:
    """The examples that are asked for, in their order, before the model is asked of any.

    Whether the model is right is not looked at: that is known when the study opens.
    """
    if design.items.how == "hand":
        return _picked(design.items, source)
    _check_label(design.items, source)
    return _fitting(design.items, source, design.seed)


def _by_hand(design: Design, source: ExampleSource, report: Report, cancel: CancelToken | None) -> list[Chosen]:
    found = _predicted(design, list(candidates(design, source)), report, cancel)
    return _chosen(found[: design.practice], True) + _chosen(found[design.practice :], False)


def _picked(items: ItemChoice, source: ExampleSource) -> Iterator[SourceExample]:
    for index in items.indices:
        if index >= source.count:
            raise UsageError(f"design.items.indices: must be 0 to {source.count - 1} in {source.name}, got {index}.")
    return (source.read(index) for index in items.indices)


def _chosen(found: Sequence[tuple[SourceExample, Prediction]], practice: bool) -> list[Chosen]:
    return [Chosen(one.index, practice, one.input, one.label, prediction) for one, prediction in found]


def _check_label(items: ItemChoice, source: ExampleSource) -> None:
    if items.how == "filter" and items.label is not None and items.label not in source.labels:
        known = ", ".join(source.labels) or "none"
        raise UsageError(f"design.items.label: must be a class of {source.name} ({known}), got {items.label!r}.")


def _fitting(items: ItemChoice, source: ExampleSource, seed: int) -> Iterator[SourceExample]:
    """Those whose label and length fit, in the order that the seed draws; of equal inputs the first."""
    met: set[Input] = set()
    for index in np.random.default_rng(seed).permutation(source.count):
        one = source.read(int(index))
        if one.input not in met and (items.how != "filter" or _fits(items, one)):
            met.add(one.input)
            yield one


def _fits(items: ItemChoice, one: SourceExample) -> bool:
    if items.label is not None and one.label != items.label:
        return False
    if not isinstance(one.input, Example):
        return True
    words = len(f"{one.input.text} {one.input.text_pair or ''}".split())
    return items.least_words <= words and (items.most_words is None or words <= items.most_words)


def _in_groups(candidates: Iterator[SourceExample]) -> Iterator[list[SourceExample]]:
    group: list[SourceExample] = []
    for one in candidates:
        group.append(one)
        if len(group) == TOGETHER:
            yield group
            group = []
    if group:
        yield group


def _judged(
    design: Design, source: ExampleSource, group: list[SourceExample], report: Report, cancel: CancelToken | None
) -> list[tuple[SourceExample, Prediction]]:
    found = _predicted(design, group, report, cancel)
    if design.items.how != "filter" or design.items.judged == "any":
        return found
    classes = match_classes(source.labels, found[0][1].labels, source.unnamed)
    if classes.indices is None:
        raise UsageError(f"design.items.judged: {classes.note} Choose any.")
    same = {True: design.items.judged == "right", False: design.items.judged == "wrong"}
    truth = [None if one.class_index is None else classes.indices[one.class_index] for one, _ in found]
    return [pair for pair, true in zip(found, truth, strict=True) if true is not None and same[true == pair[1].index]]


def _predicted(
    design: Design, group: list[SourceExample], report: Report, cancel: CancelToken | None
) -> list[tuple[SourceExample, Prediction]]:
    said = predictions(design.model, [one.input for one in group], report=report, cancel=cancel)
    return list(zip(group, said, strict=True))
