"""Comprehensiveness and sufficiency: what the class loses without the top of a map, and with the top alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.metrics.curves import WAYS, RemovalCurve, removal_curves
from engine.metrics.shared_rows import Tally
from engine.params import PROBABILITY
from engine.progress import CancelToken, Report, silent
from engine.request import Request

SHARES = (5, 10, 20, 50)
"""The percentages K over which both are means."""


@dataclass(frozen=True)
class Faithfulness:
    """`without`: m as the units with the highest scores go; `alone`: m as they come back, everything else removed.

    `quantity`: that of both metrics, "probability" (m, as published) or "logit" (f in the place of m). Where m is near
    1 it hardly falls while f falls much. Of a regression head both are the score.
    """

    without: RemovalCurve
    alone: RemovalCurve

    def comprehensiveness(self, shares: Sequence[int] = SHARES, quantity: str = PROBABILITY) -> float:
        """The mean over k of `m(x) - m(RemoveTop_k)`, in the unit of the quantity; high is good."""
        whole = self.without.at(0, quantity)
        return float(np.mean([whole - self.without.at(share, quantity) for share in shares]))

    def sufficiency(self, shares: Sequence[int] = SHARES, quantity: str = PROBABILITY) -> float:
        """The mean over k of `m(x) - m(KeepTop_k)`, in the unit of the quantity; low is good."""
        whole = self.alone.at(100, quantity)
        return float(np.mean([whole - self.alone.at(share, quantity) for share in shares]))


def faithfulness(
    requests: Sequence[Request],
    percents: Sequence[int],
    removal: str | None = None,
    unit: str | None = None,
    report: Report = silent,
    cancel: CancelToken | None = None,
    tally: Tally | None = None,
    logits: bool = False,
) -> list[Faithfulness]:
    """One a request, in the order asked, from the curves of `removal_curves`, which share their passes.

    `logits`: whether both metrics are wanted of the logit too.

    Source: DeYoung et al. (2020), section 5; the thesis, definitions 2.1 and 2.2.
    """
    curves = removal_curves(requests, removal, report, cancel, unit, WAYS, percents, tally, logits)
    without, alone = curves[: len(requests)], curves[len(requests) :]
    return [Faithfulness(*pair) for pair in zip(without, alone, strict=True)]
