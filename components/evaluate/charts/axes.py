"""The axes of a chart: their words, ends and ticks, told once for all layers that stand on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import altair as alt

from components.evaluate.charts.frame import Span

BESIDE = 1.3
"""By which factor a logarithmic axis goes on beyond its points."""
FINE = (1, 2, 5)
"""Ticks of each power of ten, where few powers are in sight."""
FEW = 2
TICKS = 8
"""About so many on an even axis."""
PLAIN = "format(datum.value, ',')"
"""Each tick as a number of its own: 0.001, 1,000."""


@dataclass(frozen=True)
class Axis:
    """`words`: a line each."""

    words: Sequence[str]
    scale: alt.Scale
    ticks: alt.Axis = field(default_factory=alt.Axis)

    def x(self, column: str) -> alt.X:
        """The column across."""
        return alt.X(f"{column}:Q", title=list(self.words), scale=self.scale, axis=self.ticks)

    def y(self, column: str) -> alt.Y:
        """The column upwards."""
        return alt.Y(f"{column}:Q", title=list(self.words), scale=self.scale, axis=self.ticks)


def evenly(words: Sequence[str], span: Span | None) -> Axis:
    """From end to end of a span."""
    scale = alt.Scale(zero=False) if span is None else alt.Scale(domain=list(span), nice=False)
    return Axis(words, scale, alt.Axis(tickCount=TICKS))


def by_factors(words: Sequence[str], values: Sequence[int | float]) -> Axis:
    """Powers of ten lie evenly, around these values. A value of 0 has no logarithm: it stands at the left end."""
    above = [value for value in values if value > 0] or [1.0]
    low, high, zero = min(above) / BESIDE, max(above) * BESIDE, min(values) <= 0
    ticks = alt.Axis(labelExpr=PLAIN, labelOverlap="greedy", values=_ticks(low, high, zero))
    if zero:
        return Axis(words, alt.Scale(type="symlog", constant=low, domain=[0, high], nice=False), ticks)
    return Axis(words, alt.Scale(type="log", domain=[low, high], nice=False), ticks)


def _ticks(low: int | float, high: int | float, zero: bool) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = FINE if len(powers) - 2 <= FEW else FINE[:1]
    inside = (step * 10.0**power for power in powers for step in steps)
    return [*([0.0] if zero else []), *(tick for tick in inside if low <= tick <= high)]
