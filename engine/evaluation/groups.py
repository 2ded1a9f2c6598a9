"""Groups of an evaluation's scores: models by size and architecture, examples in slices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.errors import ExegesisError, unknown
from engine.evaluation.result import Evaluation, ExampleFacts
from engine.evaluation.scores import ScoreFilter, compute_scores
from engine.metrics.results import MetricScore
from engine.models.sizes import ModelSize, model_size

Sizes = Mapping[str, ModelSize]
"""By model."""
By = Literal["label", "correctness", "length"]
SLICES: tuple[By, ...] = ("label", "correctness", "length")
BINS = 4
"""Of lengths: quarters of the examples, as nearly as equal lengths stay together."""
NO_LABEL, NOT_KNOWN = "no label", "not known whether right"


@dataclass(frozen=True)
class SizedScore:
    """The score of a method on a model of this size."""

    score: MetricScore
    size: ModelSize


def read_sizes(models: Iterable[str]) -> dict[str, ModelSize]:
    """The sizes of models by name, from their files; a model whose files do not state one is left out."""
    sizes = {}
    for model in models:
        with contextlib.suppress(ExegesisError):
            sizes[model] = model_size(model)
    return sizes


def size_ladders(sizes: Sizes) -> dict[str, list[str]]:
    """The models of each architecture of which there are at least two sizes, the smallest model first."""
    by: dict[str, list[str]] = {}
    for model in _by_size(sizes):
        by.setdefault(sizes[model].architecture, []).append(model)
    return {name: own for name, own in by.items() if len({sizes[model].parameters for model in own}) > 1}


def architectures(sizes: Sizes) -> list[str]:
    """The architectures there are, in order."""
    return sorted({size.architecture for size in sizes.values()})


def size_ratio(sizes: Sizes) -> float:
    """The ratio of the largest to the smallest number of parameters; 1 without models."""
    counts = [size.parameters for size in sizes.values()]
    return max(counts) / min(counts) if counts else 1.0


def scores_by_size(
    evaluation: Evaluation,
    metric: str,
    sizes: Sizes,
    architecture: str | None = None,
    methods: Sequence[str] | None = None,
) -> list[SizedScore]:
    """Scores along the sizes of one architecture, the first that has several where none is named.

    The thesis, figures 4.1 to 4.5, 4.8 and 4.9. Models of equal size are at one place.
    """
    known = size_ladders(sizes)
    return _sized_scores(evaluation, metric, sizes, known.get(architecture or next(iter(known), ""), []), methods)


def scores_by_architecture(
    evaluation: Evaluation, metric: str, sizes: Sizes, methods: Sequence[str] | None = None
) -> list[SizedScore]:
    """Scores by architecture, and within one by size. The thesis, figures 4.12 to 4.16, 4.19 and 4.20."""
    ordered = sorted(_by_size(sizes), key=lambda model: sizes[model].architecture)
    return _sized_scores(evaluation, metric, sizes, ordered, methods)


def _by_size(sizes: Sizes) -> list[str]:
    return sorted(sizes, key=lambda model: (sizes[model].parameters, model))


def _sized_scores(
    evaluation: Evaluation, metric: str, sizes: Sizes, models: Sequence[str], methods: Sequence[str] | None
) -> list[SizedScore]:
    """Model by model in that order, methods as in the plan."""
    place = {model: at for at, model in enumerate(models)}
    scores = compute_scores(evaluation, metric, ScoreFilter(place, methods))
    return [SizedScore(one, sizes[one.model]) for one in sorted(scores, key=lambda one: place[one.model])]


@dataclass(frozen=True)
class Slice:
    """The evaluation of one kind of examples."""

    name: str
    evaluation: Evaluation


def split(evaluation: Evaluation, by: str) -> list[Slice]:
    """The parts that have examples. An example that no method could explain is in none: nothing is known of it.

    An example counts once a model. Lengths are cut over all models together: give what one model did
    (`Evaluation.slice`) for its own quarters.
    """
    if by not in SLICES:
        raise unknown("slice by", by, SLICES)
    group, order = _by_length(evaluation) if by == "length" else _GROUPS[by](evaluation)
    parts = evaluation.by(group)
    return [Slice(name, parts[name]) for name in order if name in parts]


def length_bins(lengths: Sequence[int], bins: int = BINS) -> list[tuple[int, int]]:
    """Bounds of quantile bins, both ends within: they cover every length from the least to the greatest once.

    Equal lengths are in one bin, so that there may be fewer bins, and of unequal numbers.
    """
    shares = np.arange(1, bins + 1) / bins
    ends = np.unique(np.quantile(np.array(lengths), shares, method="inverted_cdf")).tolist()
    starts = [min(lengths), *(end + 1 for end in ends[:-1])]
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def _by_length(evaluation: Evaluation) -> tuple[Callable[[ExampleFacts], str], list[str]]:
    bins = length_bins([one.length for one in evaluation.facts]) if evaluation.facts else []
    names = [_span(start, end, evaluation.plan.units) for start, end in bins]

    def group(one: ExampleFacts) -> str:
        return next(name for (_, end), name in zip(bins, names, strict=True) if one.length <= end)

    return group, names


def _span(start: int, end: int, unit: str) -> str:
    units = f"{unit}es" if unit.endswith("ch") else f"{unit}s"
    if start == end:
        return f"{start} {unit if start == 1 else units}"
    return f"{start} to {end} {units}"


def _by_label(evaluation: Evaluation) -> tuple[Callable[[ExampleFacts], str], list[str]]:
    labels = sorted({one.label for one in evaluation.facts if one.label is not None})
    return lambda one: NO_LABEL if one.label is None else one.label, [*labels, NO_LABEL]


def _by_correctness(evaluation: Evaluation) -> tuple[Callable[[ExampleFacts], str], list[str]]:
    names = {True: "right", False: "wrong", None: NOT_KNOWN}
    return lambda one: names[one.right], list(names.values())


_GROUPS = {"label": _by_label, "correctness": _by_correctness}
