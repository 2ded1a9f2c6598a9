"""Models by size and by architecture: what a metric is drawn against in the views of scale and of architecture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import ExegesisError
from engine.evaluation.result import Evaluation
from engine.evaluation.views.points import Wanted, points
from engine.metrics.results import MetricScore
from engine.models.sizes import ModelSize, model_size

Sizes = Mapping[str, ModelSize]
"""By model."""


@dataclass(frozen=True)
class Sized:
    """What a method comes to on a model of that size."""

    score: MetricScore
    size: ModelSize


def sizes_of(models: Iterable[str]) -> tuple[dict[str, ModelSize], dict[str, str]]:
    """The sizes by model, from its files, and of models whose files do not say: why not."""
    sizes, unknown = dict[str, ModelSize](), dict[str, str]()
    for model in models:
        try:
            sizes[model] = model_size(model)
        except ExegesisError as error:
            unknown[model] = " ".join(str(error).split())
    return sizes, unknown


def ladders(sizes: Sizes) -> dict[str, list[str]]:
    """The models of each architecture of which there are at least two sizes, the smallest model first."""
    by: dict[str, list[str]] = {}
    for model in _by_size(sizes):
        by.setdefault(sizes[model].architecture, []).append(model)
    return {name: own for name, own in by.items() if len({sizes[model].parameters for model in own}) > 1}


def architectures(sizes: Sizes) -> list[str]:
    """The architectures there are, in order."""
    return sorted({size.architecture for size in sizes.values()})


def spread(sizes: Sizes) -> float:
    """How many times as many parameters the largest model has as the smallest; 1 where there is none."""
    counts = [size.parameters for size in sizes.values()]
    return max(counts) / min(counts) if counts else 1.0


def scaling(
    found: Evaluation, metric: str, sizes: Sizes, architecture: str | None = None, methods: Sequence[str] | None = None
) -> list[Sized]:
    """Scores along the sizes of one architecture, the first that has several where none is named.

    The thesis, figures 4.1 to 4.5, 4.8 and 4.9. Models of equal size stand at one place.
    """
    known = ladders(sizes)
    return _sized(found, metric, sizes, known.get(architecture or next(iter(known), ""), []), methods)


def by_architecture(found: Evaluation, metric: str, sizes: Sizes, methods: Sequence[str] | None = None) -> list[Sized]:
    """Scores by architecture, and within one by size. The thesis, figures 4.12 to 4.16, 4.19 and 4.20."""
    ordered = sorted(_by_size(sizes), key=lambda model: sizes[model].architecture)
    return _sized(found, metric, sizes, ordered, methods)


def _by_size(sizes: Sizes) -> list[str]:
    return sorted(sizes, key=lambda model: (sizes[model].parameters, model))


def _sized(
    found: Evaluation, metric: str, sizes: Sizes, models: Sequence[str], methods: Sequence[str] | None
) -> list[Sized]:
    """Model by model in that order, methods as in the plan."""
    place = {model: at for at, model in enumerate(models)}
    scores = points(found, metric, Wanted(place, methods))
    return [Sized(one, sizes[one.model]) for one in sorted(scores, key=lambda one: place[one.model])]
