"""Numbers of one example's curve along a randomization: how like the original its map is, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from engine.metrics.ranking import spearman
from engine.metrics.results import MetricKey, MetricRow

if TYPE_CHECKING:
    from engine.randomization.result import ModelRandomization

SPEARMAN = 0
"""The place of Spearman's rho among the measures of a randomization."""
MODES = ("cascading", "independent")

Curve = Float[np.ndarray, "stage"]


def rows_of_models(found: Sequence[ModelRandomization]) -> Iterator[MetricRow]:
    """Of each model, method and example that has a rho at every stage."""
    for one in found:
        means = _over_seeds(one.likeness[:, :, :, SPEARMAN])
        own = [[at for at, stage in enumerate(one.stages) if stage.mode == mode] for mode in MODES]
        for place, method in enumerate(one.methods):
            for at, example in enumerate(one.examples):
                cascading, independent = (means[stages, place, at] for stages in own)
                for id, value in numbers(cascading, independent).items():
                    yield MetricRow(MetricKey(one.model, one.dataset, method, id), example, value)


def _over_seeds(
    values: Float[np.ndarray, "stage seed method example"],
) -> Float[np.ndarray, "stage method example"]:
    """Each by the seeds at which it has a value; NaN where it has none."""
    having = np.isfinite(values)
    total, count = np.where(having, values, 0.0).sum(1), having.sum(1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def numbers(cascading: Curve, independent: Curve) -> Mapping[str, float]:
    """Both from the last block on to the first; none where a rho is missing."""
    if not np.isfinite([*cascading, *independent]).all():
        return {}
    blocks = len(cascading)
    return {
        "cascading_first": float(cascading[0]),
        "cascading_second": float(cascading[min(2, blocks) - 1]),
        "cascading_half": float(cascading[(blocks + 1) // 2 - 1]),
        "cascading_end": float(cascading[-1]),
        "cascading_mean": float(cascading.mean()),
        "cascading_trend": _trend(cascading),
        "independent_first": float(independent[-1]),
        "independent_mean": float(independent.mean()),
    }


def _trend(cascading: Curve) -> float:
    """From -1 where rho falls from stage to stage, the model as it is included, to 1; 0 where it does not move."""
    whole = np.concatenate([[1.0], cascading])
    return spearman(np.arange(len(whole), dtype=np.float64), whole) or 0.0
