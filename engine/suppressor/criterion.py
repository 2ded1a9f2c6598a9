"""The test of whether a method credits a suppressor, shared by the Gaussian problem, texts and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.stats
from jaxtyping import Float

from engine.errors import ExegesisError
from engine.metrics.results import share_interval

LEVEL = 0.05
"""Family-wise error rate of the verdicts on all methods of a problem, for each of the two features."""
ROUNDING = 1e-9
"""Scores below this share of the method's largest absolute score count as zero."""
INFORMATIVE, SUPPRESSOR, UNUSED = range(3)
"""Columns of the scores: the feature that carries the class, the suppressor, and a feature that is not used."""
PASSES, CREDITS, NEITHER = "passes", "credits the suppressor", "credits neither"
"""Verdicts. `NEITHER`: not even the informative feature is significantly above the unused one."""
CRITERION = (
    "A method credits a feature if its |score| exceeds that of the unused feature in significantly more than half of "
    f"the examples (one-sided sign test at {LEVEL:.0%} for each of the two features, Holm's correction over methods). "
    "It passes if it credits the informative feature and not the suppressor. To pass is no proof that the suppressor "
    "gets nothing: the interval of the share of examples says how much the test may have missed."
)
NOT_FINITE = "Some scores are not finite numbers."

Scores = Float[np.ndarray, "example 3"]
"""One row per example, and a column each for the informative feature, the suppressor and the unused feature."""


@dataclass(frozen=True)
class SuppressorVerdict:
    """Mean |score| of the three features, in the unit of the method, and the verdict.

    `above`: share of examples in which the suppressor's |score| exceeds that of the unused feature, from 0 to 1. Ties
    do not count; it is 0 if all are ties. `low`, `high`: its uncorrected 95% interval. `p`: p-value of the one-sided
    sign test, with Holm's correction over the methods of the problem.
    """

    method: str
    informative: float
    suppressor: float
    unused: float
    above: float
    low: float
    high: float
    p: float
    verdict: str

    @property
    def share(self) -> float:
        """Share of the suppressor in the sum of the three means, from 0 to 1; 0 if all are zero."""
        whole = self.informative + self.suppressor + self.unused
        return self.suppressor / whole if whole else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return every field and the share as plain values."""
        return {**asdict(self), "share": self.share}


def judge(scores: Mapping[str, Scores]) -> list[SuppressorVerdict]:
    """Judge all methods of a problem by `CRITERION`, in the given order. Errors: a score is not a finite number."""
    for method, own in scores.items():
        if not np.isfinite(own).all():
            raise ExegesisError(f"{method}: {NOT_FINITE} It cannot be judged.")
    amounts = [_amounts(own) for own in scores.values()]
    p_informative, p_suppressor = (
        holm([p_above(*count_above(own, column)) for own in amounts]) for column in (INFORMATIVE, SUPPRESSOR)
    )
    verdicts = []
    for at, method in enumerate(scores):
        verdict = PASSES if p_informative[at] < LEVEL else NEITHER
        verdict = CREDITS if p_suppressor[at] < LEVEL else verdict
        hits, count = count_above(amounts[at], SUPPRESSOR)
        low, high = share_interval(hits, count) if count else (0.0, 0.0)
        informative, suppressor, unused = amounts[at].mean(0).tolist()
        share = hits / count if count else 0.0
        verdicts.append(
            SuppressorVerdict(
                method, informative, suppressor, unused, share, low, high, float(p_suppressor[at]), verdict
            )
        )
    return verdicts


def _amounts(scores: Scores) -> Scores:
    """Absolute scores without rounding noise."""
    amounts = np.abs(scores)
    return np.where(amounts > ROUNDING * amounts.max(), amounts, 0.0)


def count_above(amounts: Scores, column: int) -> tuple[int, int]:
    """Number of examples in which the feature exceeds the unused one, and number of examples in which they differ."""
    excess = amounts[:, column] - amounts[:, UNUSED]
    return int((excess > 0).sum()), int((excess != 0).sum())


def p_above(hits: int, count: int) -> float:
    """One-sided p-value of the sign test; 1 if there is nothing to count."""
    return float(scipy.stats.binomtest(hits, count, alternative="greater").pvalue) if count else 1.0


def holm(p: list[float]) -> Float[np.ndarray, "method"]:
    """Adjust p-values for multiple tests. Source: Holm (1979), A simple sequentially rejective test procedure."""
    values, order = np.array(p), np.argsort(p)
    stepped = np.maximum.accumulate(values[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected
