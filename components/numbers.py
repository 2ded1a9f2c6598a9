"""Formatting of numbers, durations and counts, and the time zone of the browser."""

from __future__ import annotations

import math
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from components.lazy import st
from engine.format import plural as plural

MINUS = "\u2212"
MOST_DECIMALS = 4


def signed(value: float) -> str:
    """Format with three significant digits and a sign: +0.123, −0.04, 0."""
    return _minus(f"{value:+.3g}") if value else "0"


def plain(value: float) -> str:
    """Format with three significant digits."""
    return _minus(f"{value:z.3g}")


def decimals_of(largest: float) -> int:
    """Return the number of decimals that gives three significant digits of `largest`, the largest value of a column."""
    return max(0, 2 - math.floor(math.log10(largest))) if largest > 0 else 0


def even(value: float, largest: float) -> str:
    """Format with the same decimals as the rest of the column: 0.489, 0.007."""
    decimals = decimals_of(largest)
    return _minus(f"{round(value, decimals) + 0.0:.{decimals}f}")  # adding 0 removes the sign of a negative zero


def fixed(value: float, decimals: int, sign: bool) -> str:
    """Format with a fixed number of decimals; a nonzero value that would round to 0 becomes a bound: <0.001."""
    text = f"{value + 0.0:{'+' if sign and value else ''}.{decimals}f}"
    if value == 0 or text.strip("+-0."):
        return _minus(text)
    return _minus(f"{'<' if value > 0 else '>-'}{10**-decimals:.{decimals}f}")


def small(value: float) -> str:
    """Format an error that should be 0: three significant digits, and a bound for rounding noise below 1e-6."""
    return plain(value) if value >= 1e-6 or value == 0 else _minus("<\u00a01e-6")


def brief(value: float, largest: float, sign: bool) -> str:
    """Format with the decimals that give two significant digits of `largest`: +0.04, −0.12, 0."""
    if largest <= 0 or abs(value) < 0.005 * largest:
        return "0"
    decimals = max(0, 1 - math.floor(math.log10(largest)))
    shape = f".{decimals}f" if decimals <= MOST_DECIMALS else ".0e"
    text = format(value, f"+{shape}" if sign else shape)
    return _minus(text) if text.strip("+-0.") else "0"


def hundredths(value: float, sign: bool = False) -> str:
    """Format with two decimals, for correlations and their means: +0.08, 0.95."""
    return _minus(format(round(value, 2) + 0.0, "+.2f" if sign else ".2f"))


def percent(share: float) -> str:
    """Format a probability: 97.3%; <0.1% and >99.9% for a value that would round to 0 or 100 but is neither."""
    if 0 < share < 0.0005:
        return "<\u00a00.1%"
    if 0.9995 < share < 1:
        return ">\u00a099.9%"
    return f"{100 * share:.1f}%"


def points(change: float) -> str:
    """Format a change of a probability in percentage points: +12.3, −85.0, 0.0."""
    text = f"{100 * change:+.1f}"
    return _minus(text) if text.strip("+-0.") else "0.0"


def seconds(value: float) -> str:
    """Format a duration in seconds: 4.1 s, 230 ms, < 1 ms."""
    if value < 0.001:
        return "< 1 ms"
    return f"{1000 * value:.0f} ms" if value < 0.95 else f"{value:.1f} s"


def count(number: int, noun: str) -> str:
    """Format a count with its noun: 1 evaluation, 1,024 evaluations, no passes."""
    named = noun if number == 1 else plural(noun)
    return f"{number:,} {named}" if number else f"no {named}"


def duration(seconds: float) -> str:
    """Format a waiting time in seconds: 12 s, 3 min 5 s, 2 h 10 min."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def rough_duration(seconds: float) -> str:
    """Format an estimated waiting time, rounded up to a second, a minute or ten minutes: 12 s, 57 min, 2 h 10 min."""
    if seconds <= 59:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    tens = math.ceil(minutes / 10)
    return f"{tens // 6} h {tens % 6 * 10} min" if tens % 6 else f"{tens // 6} h"


def browser_zone() -> tzinfo:
    """Return the browser's time zone, or UTC if it sends none or one that this machine does not have."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (OSError, ValueError):
        return UTC


def format_time(seconds: float, zone: tzinfo) -> str:
    """Format a Unix time as local date and time with its zone: 2026-03-01 14:05 CET."""
    return datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%d %H:%M %Z")


def _minus(text: str) -> str:
    return text.replace("-", MINUS)
