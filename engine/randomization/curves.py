"""Curves of a check: a mean over examples at each stage, with its 95 % interval and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.metrics.bootstrap import Interval, interval
from engine.randomization.measures import MEASURES
from engine.randomization.result import PREDICTIONS, OfModel
from engine.randomization.stages import Stage

NO_ANSWER = "the randomized model gives no answer that is a number"


@dataclass(frozen=True)
class Point:
    """A mean over `n` examples, each of which counts by its mean over the seeds; None where no example has a value.

    `interval`: over examples, given these seeds. `by_seed`: the mean of each randomization alone, None where none:
    how far they lie apart is what another randomization would change. `skipped`: maps (an example at a seed) without a
    value, by reason.
    """

    stage: Stage
    value: float | None
    interval: Interval | None
    n: int
    by_seed: tuple[float | None, ...]
    skipped: Mapping[str, int]


@dataclass(frozen=True)
class Curve:
    """One metric along the stages of a mode. `method`: empty of the prediction.

    `start`: the value on the model as it is: 1 of a likeness, the mean probability of the class, no class changed.
    """

    model: str
    dataset: str
    method: str
    metric: str
    mode: str
    start: float
    points: tuple[Point, ...]


def curves_of(found: OfModel, seed: int = 0) -> list[Curve]:
    """Those of each mode, method and measure that has a value or a reason for none; then those of the predictions."""
    return [
        curve
        for mode in dict.fromkeys(stage.mode for stage in found.stages)
        for curve in (*_of_maps(found, mode, seed), *_of_predictions(found, mode, seed))
    ]


def _of_maps(found: OfModel, mode: str, seed: int) -> list[Curve]:
    pictures = np.isfinite(found.likeness[:, :, :, MEASURES.index("ssim")]).any()
    measures = [measure for measure in MEASURES if pictures or measure != "ssim"]
    return [
        _curve(found, mode, method, measure, 1.0, found.likeness[:, :, place, MEASURES.index(measure)], seed)
        for place, method in enumerate(found.methods)
        for measure in measures
    ]


def _of_predictions(found: OfModel, mode: str, seed: int) -> list[Curve]:
    known = np.isfinite(found.after)
    start = float(found.before.mean()) if len(found.before) else 0.0
    changed = np.where(known, found.changed.astype(np.float64), np.nan)
    likely = _curve(found, mode, "", PREDICTIONS[0], start, found.after, seed)
    return [likely] if found.regression else [likely, _curve(found, mode, "", PREDICTIONS[1], 0.0, changed, seed)]


def _curve(
    found: OfModel, mode: str, method: str, metric: str, start: float,
    values: Float[np.ndarray, "stage seed example"], seed: int,
) -> Curve:  # fmt: skip
    points = [
        _point(stage, values[at], _skipped(found, at, method), seed, metric == PREDICTIONS[1])
        for at, stage in enumerate(found.stages)
        if stage.mode == mode
    ]
    return Curve(found.model, found.dataset, method, metric, mode, start, tuple(points))


def _point(
    stage: Stage, values: Float[np.ndarray, "seed example"], skipped: Mapping[str, int], seed: int, share: bool
) -> Point:
    having = np.isfinite(values)
    means = _means(values[:, having.any(0)])
    by_seed = tuple(float(own[has].mean()) if has.any() else None for own, has in zip(values, having, strict=True))
    value = float(means.mean()) if len(means) else None
    return Point(stage, value, interval(means, seed, share), len(means), by_seed, skipped)


def _means(values: Float[np.ndarray, "seed example"]) -> Float[np.ndarray, "example"]:
    """Over the seeds at which the example has a value: each has one at least."""
    having = np.isfinite(values)
    return np.where(having, values, 0.0).sum(0) / having.sum(0)


def _skipped(found: OfModel, stage: int, method: str) -> dict[str, int]:
    counts = Counter[str]()
    for why in found.failed.values():
        counts[why] += len(found.seeds)
    if method:
        codes = found.why[stage, :, found.methods.index(method)]
        counts.update(found.reasons[code] for code in codes[codes >= 0].tolist())
    elif silent := int(np.isnan(found.after[stage]).sum()):
        counts[NO_ANSWER] += silent
    return dict(counts)
