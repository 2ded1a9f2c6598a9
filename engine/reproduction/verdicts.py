"""From numbers and their intervals to a verdict, and to the number of examples that would settle an open one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "does not hold", "cannot be told", "not run"]
VERDICTS: tuple[Verdict, ...] = ("holds", "does not hold", "cannot be told", "not run")
Bounds = tuple[int | float | None, int | float | None]
ROUNDING = 1e-9
"""What sums of equal values may be off."""


@dataclass(frozen=True)
class Margin:
    """How far a number is inside its bounds, with the ends of its 95 % interval; below 0 outside. Of `n` examples.

    `strict`: the bound itself is outside.
    """

    value: int | float
    low: int | float
    high: int | float
    n: int
    strict: bool = False

    @property
    def verdict(self) -> Verdict:
        least = ROUNDING if self.strict else -ROUNDING
        if self.low >= least:
            return "holds"
        return "does not hold" if self.high < least else "cannot be told"

    @property
    def settled_by(self) -> int | None:
        """How many examples would bring the interval's near end to the bound; None where the number is the bound.

        An interval of a mean narrows with the square root of n: half of it, h, reaches a distance d at n (h / d)^2.
        One more than there are at least: where the end already is at the bound, n would have to grow, if by little.
        """
        if abs(self.value) <= ROUNDING:
            return None
        half = self.value - self.low if self.value > 0 else self.high - self.value
        return max(math.ceil(round(self.n * (half / self.value) ** 2, 6)), self.n + 1)


def margin(value: float, interval: tuple[float, float], bounds: Bounds, n: int, strict: bool = False) -> Margin:
    """Of a number that must lie between the bounds; None is no bound. `strict`: and not on one."""
    lower, upper = -math.inf if bounds[0] is None else bounds[0], math.inf if bounds[1] is None else bounds[1]

    def inside(number: float) -> float:
        return min(number - lower, upper - number)

    low, high = interval
    # Inside two bounds a number is farthest from both in their middle.
    best = min(max(_middle(lower, upper), low), high)
    return Margin(inside(value), min(inside(low), inside(high)), inside(best), n, strict)


def _middle(lower: float, upper: float) -> float:
    return (lower + upper) / 2 if math.isfinite(lower) or math.isfinite(upper) else 0.0


def most(choices: Sequence[Margin]) -> Margin:
    """Where one of several is enough."""
    return Margin(
        max(one.value for one in choices),
        max(one.low for one in choices),
        max(one.high for one in choices),
        min(one.n for one in choices),
        choices[0].strict,
    )


def judged(asked: Sequence[Margin]) -> tuple[Verdict, int | None]:
    """Of several that must all be inside: the verdict, and where it cannot be told the n that would settle it.

    All of them inside at the 95 % level each is a test of the whole at that level (Berger, 1982); one that is outside
    is enough against it. So one open number that is outside settles it as soon as it is told from its bound, else
    every open one must be.
    """
    verdicts = [one.verdict for one in asked]
    if "does not hold" in verdicts:
        return "does not hold", None
    if "cannot be told" not in verdicts:
        return "holds", None
    settled = [(one.value < 0, one.settled_by) for one in asked if one.verdict == "cannot be told"]
    outside = [n for is_outside, n in settled if is_outside and n is not None]
    if outside:
        return "cannot be told", min(outside)
    inside = [n for _, n in settled]
    known = [n for n in inside if n is not None]
    return "cannot be told", max(known) if len(known) == len(inside) else None
