"""An evaluation apart by label, by correctness or by length, so that each view can be had of each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.errors import unknown
from engine.evaluation.result import Evaluation, Facts

By = Literal["label", "correctness", "length"]
SLICES: tuple[By, ...] = ("label", "correctness", "length")
BINS = 4
"""Of lengths: quarters of the examples, as nearly as equal lengths stay together."""
MOST = 12
"""More slices than that are not told apart in a chart."""
NO_LABEL, NOT_KNOWN = "no label", "not known whether right"


@dataclass(frozen=True)
class Slice:
    """The evaluation of one kind of examples."""

    name: str
    found: Evaluation


def slices(found: Evaluation, by: str) -> list[Slice]:
    """The parts that have examples. An example that no method could explain is in none: nothing is known of it.

    An example counts once a model. Lengths are cut over all models together: give what one model did
    (`Evaluation.slice`) for its own quarters.
    """
    if by not in SLICES:
        raise unknown("slice by", by, SLICES)
    group, order = _by_length(found) if by == "length" else _GROUPS[by](found)
    parts = found.by(group)
    return [Slice(name, parts[name]) for name in order if name in parts]


def cut(found: Evaluation, by: str, name: str) -> Evaluation:
    """One of the slices, by its name."""
    parts = {one.name: one.found for one in slices(found, by)}
    if name not in parts:
        raise unknown("slice", name, parts)
    return parts[name]


def length_bins(lengths: Sequence[int], bins: int = BINS) -> list[tuple[int, int]]:
    """Bounds of quantile bins, both ends within: they cover every length from the least to the greatest once.

    Equal lengths are in one bin, so that there may be fewer bins, and of unequal numbers.
    """
    shares = np.arange(1, bins + 1) / bins
    ends = np.unique(np.quantile(np.array(lengths), shares, method="inverted_cdf")).tolist()
    starts = [min(lengths), *(end + 1 for end in ends[:-1])]
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def _by_length(found: Evaluation) -> tuple[Callable[[Facts], str], list[str]]:
    bins = length_bins([one.length for one in found.facts]) if found.facts else []
    names = [_span(start, end, found.plan.units) for start, end in bins]

    def group(one: Facts) -> str:
        return next(name for (_, end), name in zip(bins, names, strict=True) if one.length <= end)

    return group, names


def _span(start: int, end: int, unit: str) -> str:
    units = f"{unit}es" if unit.endswith("ch") else f"{unit}s"
    if start == end:
        return f"{start} {unit if start == 1 else units}"
    return f"{start} to {end} {units}"


def _by_label(found: Evaluation) -> tuple[Callable[[Facts], str], list[str]]:
    labels = sorted({one.label for one in found.facts if one.label is not None})
    return lambda one: NO_LABEL if one.label is None else one.label, [*labels, NO_LABEL]


def _by_correctness(found: Evaluation) -> tuple[Callable[[Facts], str], list[str]]:
    names = {True: "right", False: "wrong", None: NOT_KNOWN}
    return lambda one: names[one.right], list(names.values())


_GROUPS = {"label": _by_label, "correctness": _by_correctness}
