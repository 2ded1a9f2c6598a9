"""Errors of estimated maps relative to exact maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.lazy import scipy


@dataclass(frozen=True)
class MapErrors:
    """Errors of predicted maps relative to exact maps, on examples that were not trained on.

    `relative`: sum of squared differences divided by the sum of squared exact scores, both over all examples; 0 is
    perfect, 1 is a map of zeros. `pearson`, `spearman`, `cosine`: -1 to 1, means over the examples for which they are
    defined; None if there are none. `count`: number of examples.
    """

    relative: float
    pearson: float | None
    spearman: float | None
    cosine: float | None
    count: int


def map_errors(
    exact: Sequence[Float[np.ndarray, "_"]], estimated: Sequence[Float[np.ndarray, "_"]]
) -> MapErrors | None:
    """Return the errors of estimated maps; None if there are no maps or all exact scores are zero."""
    total = sum(float((one**2).sum()) for one in exact)
    if not total:
        return None
    squared = sum(float(((one - other) ** 2).sum()) for one, other in zip(exact, estimated, strict=True))
    pairs = list(zip(exact, estimated, strict=True))
    varied = [(one, other) for one, other in pairs if len(one) > 2 and np.ptp(one) > 0 and np.ptp(other) > 0]
    lengths = [(one, other, float(np.linalg.norm(one) * np.linalg.norm(other))) for one, other in pairs]
    return MapErrors(
        relative=squared / total,
        pearson=_mean([float(np.corrcoef(one, other)[0, 1]) for one, other in varied]),
        spearman=_mean([float(scipy.stats.spearmanr(one, other).statistic) for one, other in varied]),
        cosine=_mean([float(one @ other) / length for one, other, length in lengths if length]),
        count=len(exact),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
