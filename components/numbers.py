"""Numbers as people read them."""

from __future__ import annotations

import math

MINUS = "\u2212"
MOST_DECIMALS = 4


def signed(value: float) -> str:
    """Three significant digits with a sign: +0.123, −0.04, 0."""
    return _minus(f"{value:+.3g}") if value else "0"


def plain(value: float) -> str:
    """Three significant digits."""
    return _minus(f"{value:.3g}")


def decimals_of(largest: float) -> int:
    """As many as three significant digits of `largest`, the largest of its column, need."""
    return max(0, 2 - math.floor(math.log10(largest))) if largest > 0 else 0


def even(value: float, largest: float) -> str:
    """With the decimals of its column: 0.489, 0.007."""
    decimals = decimals_of(largest)
    return _minus(f"{round(value, decimals) + 0.0:.{decimals}f}")  # adding 0 takes the sign from what rounds to it


def fixed(value: float, decimals: int, sign: bool) -> str:
    """With so many decimals; what would read 0 without being 0 is held against the least that does not: <0.001."""
    text = f"{value + 0.0:{'+' if sign and value else ''}.{decimals}f}"
    if value == 0 or text.strip("+-0."):
        return _minus(text)
    return _minus(f"{'<' if value > 0 else '>-'}{10**-decimals:.{decimals}f}")


def small(value: float) -> str:
    """An error that should be 0: three significant digits, and nothing of rounding noise."""
    return plain(value) if value >= 1e-6 or value == 0 else _minus("<\u00a01e-6")


def brief(value: float, largest: float, sign: bool) -> str:
    """As many decimals as two significant digits of `largest` need: +0.04, −0.12, 0."""
    if largest <= 0 or abs(value) < 0.005 * largest:
        return "0"
    decimals = max(0, 1 - math.floor(math.log10(largest)))
    shape = f".{decimals}f" if decimals <= MOST_DECIMALS else ".0e"
    text = format(value, f"+{shape}" if sign else shape)
    return _minus(text) if text.strip("+-0.") else "0"


def hundredths(value: float, sign: bool = False) -> str:
    """Two decimals, as correlations and their means have: +0.08, 0.95."""
    return _minus(format(round(value, 2) + 0.0, "+.2f" if sign else ".2f"))


def percent(share: float) -> str:
    """A probability: 97.3 %; what would round to 0 or 100 without being it is said to be near it."""
    if 0 < share < 0.0005:
        return "<\u00a00.1\u00a0%"
    if 0.9995 < share < 1:
        return ">\u00a099.9\u00a0%"
    return f"{100 * share:.1f}\u00a0%"


def points(change: float) -> str:
    """A change of a probability in percentage points: +12.3, −85.0, 0.0."""
    text = f"{100 * change:+.1f}"
    return _minus(text) if text.strip("+-0.") else "0.0"


def seconds(value: float) -> str:
    """A duration: 4.1 s, 230 ms, under a millisecond."""
    if value < 0.001:
        return "< 1 ms"
    return f"{1000 * value:.0f} ms" if value < 0.95 else f"{value:.1f} s"


def count(number: int, noun: str) -> str:
    """1 evaluation, 1,024 evaluations, no evaluations."""
    if number == 0:
        return f"no {noun}s"
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _minus(text: str) -> str:
    return text.replace("-", MINUS)
