"""What charts of an evaluation say: axes, values, intervals, how many examples, and what could not be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import altair as alt
import pandas as pd

from components.evaluate.charts.frame import Frame, Span
from components.numbers import plain
from engine.evaluation.reasons import counted
from engine.metrics.catalog import Better, metric
from engine.metrics.results import MetricScore

BETTER: dict[Better, str] = {"high": "higher is better", "low": "lower is better", "neither": "neither way is better"}
WHY = "Why"
"""The column of tables that says why examples have no value, where there are such."""
DOUBT = "Interval"
"""The one that says why there is none, where there is none."""


def axis_words(id: str) -> list[str]:
    """A metric on an axis, a line each: what it is and in which unit, and which way is better."""
    found = metric(id)
    unit = "" if found.unit in found.title.lower() else f" ({found.unit})"
    return [f"{found.title}{unit}", BETTER[found.better]]


def interval_words(score: MetricScore) -> str:
    """The ends of the 95 % interval, or why there is none."""
    return score.doubt or " to ".join(map(plain, score.interval or ()))


def skipped_words(score: MetricScore) -> str:
    """How many examples have no value, and why."""
    return counted(score.skipped) or "none"


def not_drawn(table: pd.DataFrame) -> str:
    """A sentence about what a chart of that table cannot draw, empty where it draws all. Not escaped."""
    if table.empty:
        return ""
    without = table[table["Value"].isna()]
    places = ("Slice", "Method", "Model", WHY)
    rows = without[[name for name in places if name in table]].drop_duplicates().to_dict("records")
    told = [f"{row['Method']} on {row['Model']}{_within(row.get('Slice'))} ({row[WHY]})" for row in rows]
    return f"Not drawn, for no example has a value: {', '.join(told)}." if told else ""


def _within(slice: object) -> str:
    return f", {slice}" if isinstance(slice, str) else ""


def tips(frame: Frame, more: Mapping[str, str], value: str = "Value") -> list[alt.Tooltip]:
    """What hovering tells: columns and what they are called; `more` stands between the names and the numbers."""
    slice = {"slice": "Slice"} if frame.slice else {}
    numbers = {"shown": value, "interval": "95 % interval", "examples": "Examples", "skipped": "Without a value"}
    told = {"name": "Method", "model": "Model", **slice, **more, **numbers}
    return [alt.Tooltip(f"{column}:N", title=title) for column, title in told.items()]


def record(score: MetricScore, frame: Frame) -> dict[str, object]:
    """A point as charts take it: what a click says, where it stands, and what hovering tells."""
    assert score.value is not None
    low, high = score.interval or (None, None)
    return {
        "model": score.model,
        "method": score.method,
        "metric": score.metric,
        "percent": score.percent,
        "slice": frame.slice,
        "name": frame.title(score.method),
        "value": score.value,
        "low": low,
        "high": high,
        "shown": plain(score.value),
        "interval": interval_words(score),
        "examples": f"{score.n:,}",
        "skipped": skipped_words(score),
    }


def table_row(score: MetricScore, frame: Frame, more: Mapping[str, object] | None = None) -> dict[str, object]:
    """The same for reading and for files: plain numbers, with nothing in the place of a value that is not there."""
    low, high = (None if score.doubt else score.interval) or (None, None)
    return {
        **({"Slice": frame.slice} if frame.slice else {}),
        "Method": frame.title(score.method),
        "Model": score.model,
        **(more or {}),
        "Value": short(score.value),
        "95 % from": short(low),
        "95 % to": short(high),
        "Examples": score.n,
        "Without a value": sum(score.skipped.values()),
        **({DOUBT: score.doubt} if score.doubt else {}),
        **({WHY: skipped_words(score)} if score.skipped else {}),
    }


def short(value: float | None) -> float | None:
    """Four significant digits: more than an interval leaves certain."""
    return None if value is None else float(f"{value:.4g}")


def span_of(found: Iterable[MetricScore], room: float = 0.04) -> tuple[float, float] | None:
    """From the lowest end of an interval to the highest with a little room; None of nothing."""
    ends = [end for one in found if one.value is not None for end in (*(one.interval or ()), one.value)]
    if not ends:
        return None
    beside = room * (max(ends) - min(ends)) or room
    return min(ends) - beside, max(ends) + beside


def from_zero(found: Iterable[MetricScore], frame: Frame) -> Span:
    """The span of bars, which start at 0; `frame.span` where it is told, made to hold 0."""
    low, high = frame.span or span_of(found) or (0.0, 1.0)
    return min(0.0, low), max(0.0, high)
