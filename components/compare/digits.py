"""How the numbers of one map are written: all with the same decimals, so that they can be read down a column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from components.numbers import decimals_of, fixed

LEAST = 1e-3
"""A scale that ends below is written in a power of ten, which stands beside the scale."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Digits:
    """`factor`: what a number is divided by before it is written; `unit` stands behind it, `power` behind the scale."""

    decimals: int
    sign: bool
    factor: float = 1.0
    unit: str = ""
    power: str = ""

    def cell(self, value: float) -> str:
        """A number of the map."""
        return f"{fixed(value / self.factor, self.decimals, self.sign)}{self.unit}"

    def end(self, value: float) -> str:
        """The end of the scale, which needs no sign."""
        return f"{fixed(value / self.factor, self.decimals, False)}{self.unit}"


def digits_of(scores: Float[np.ndarray, "part"], end: float, sign: bool, share: bool) -> Digits:
    """For scores on a scale to `end`. `share`: they are shares of a whole, written in percent."""
    if share:
        return Digits(1, sign, 0.01, "\u00a0%")
    if (scores[np.isfinite(scores)] % 1 == 0).all():
        return Digits(0, sign)
    if 0 < end < LEAST:
        exponent = math.floor(math.log10(end))
        return Digits(2, sign, 10.0**exponent, "", f" × 10{str(exponent).translate(SUPERSCRIPTS)}")
    return Digits(decimals_of(end), sign)
