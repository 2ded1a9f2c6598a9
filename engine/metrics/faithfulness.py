"""Comprehensiveness and sufficiency: what the class loses without the top of a map, and with the top alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.metrics.curves import WAYS, RemovalCurve, removal_curves
from engine.metrics.shared_rows import Tally
from engine.progress import CancelToken, Report, silent
from engine.request import Request

SHARES = (5, 10, 20, 50)
"""The percentages K over which both are means."""


@dataclass(frozen=True)
class Faithfulness:
    """`without`: m as the units with the highest scores go; `alone`: m as they come back, everything else removed."""

    without: RemovalCurve
    alone: RemovalCurve

    def comprehensiveness(self, shares: Sequence[int] = SHARES) -> float:
        """The mean over k of `m(x) - m(RemoveTop_k)`, in the unit of m; high is good."""
        return float(np.mean([self.without.at(0) - self.without.at(share) for share in shares]))

    def sufficiency(self, shares: Sequence[int] = SHARES) -> float:
        """The mean over k of `m(x) - m(KeepTop_k)`, in the unit of m; low is good."""
        return float(np.mean([self.alone.at(100) - self.alone.at(share) for share in shares]))


def faithfulness(
    requests: Sequence[Request],
    percents: Sequence[int],
    removal: str | None = None,
    unit: str | None = None,
    report: Report = silent,
    cancel: CancelToken | None = None,
    tally: Tally | None = None,
) -> list[Faithfulness]:
    """One a request, in the order asked, from the curves of `removal_curves`, which share their passes.

    Source: DeYoung et al. (2020), section 5; the thesis, definitions 2.1 and 2.2.
    """
    curves = removal_curves(requests, removal, report, cancel, unit, WAYS, percents, tally)
    without, alone = curves[: len(requests)], curves[len(requests) :]
    return [Faithfulness(*pair) for pair in zip(without, alone, strict=True)]
