"""Figures beside the limits that they must keep."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """`figure` must be at most `most`, both in `unit`."""

    what: str
    figure: float
    most: float
    unit: str

    @property
    def kept(self) -> bool:
        return self.figure <= self.most


def judge(limits: Sequence[Limit]) -> int:
    """Says which limits are kept; the exit code of the benchmark."""
    for limit in limits:
        verdict = "kept" if limit.kept else "BROKEN"
        print(f"{verdict}: {limit.what}: {limit.figure:,.4g} {limit.unit}, at most {limit.most:,.4g} {limit.unit}")
    sys.stdout.flush()
    return int(not all(limit.kept for limit in limits))


def load() -> float:
    """How many processes wanted to run in the last minute: beside times, or they mean nothing on a shared machine."""
    return round(os.getloadavg()[0], 1)
