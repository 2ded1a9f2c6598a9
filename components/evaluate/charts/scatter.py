"""Two metrics against each other: a point a method, with its 95 % intervals as a cross."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt
import pandas as pd

from components.charts import finished
from components.evaluate.charts.axes import Axis, by_factors, evenly
from components.evaluate.charts.blank import blank_chart
from components.evaluate.charts.frame import Frame, picked, picked_size
from components.evaluate.charts.words import axis_words, interval_words, record, short, span_of, table_row, tips
from components.numbers import plain
from engine.evaluation.views.pairs import Pair
from engine.metrics.catalog import metric
from engine.metrics.results import MetricScore


def scatter_chart(pairs: Sequence[Pair], company: Sequence[str], frame: Frame, log: bool = False) -> alt.LayerChart:
    """`pairs`: of one model. `log`: the x axis goes by factors, as far as there are values above 0."""
    drawn = [one for one in pairs if one.x.value is not None]
    if not drawn:
        return blank_chart(frame)
    x, y = drawn[0].x.metric, drawn[0].y.metric
    at = [one.x for one in drawn]
    across = by_factors(axis_words(x), _ends(at)) if log else evenly(axis_words(x), span_of(at))
    up = evenly(axis_words(y), frame.span or span_of(one.y for one in drawn))
    return _crossed(_data(drawn, frame), company, frame, (across, up), metric(x).title)


def scatter_table(pairs: Sequence[Pair], frame: Frame) -> pd.DataFrame:
    """A row a method, those without values too: the metric on the y axis, and the one on the x axis."""
    return pd.DataFrame([table_row(one.y, frame, {metric(one.x.metric).title: short(one.x.value)}) for one in pairs])


def _crossed(
    table: pd.DataFrame, company: Sequence[str], frame: Frame, axes: tuple[Axis, Axis], across: str
) -> alt.LayerChart:
    x, y = axes
    seen, click = frame.seen(company, table), picked()
    legend = frame.legend(seen, "points")
    base = alt.Chart(table).encode(color=frame.colour(company, legend))
    whiskers = {
        "low": {"x": x.x("x"), "y": y.y("low"), "y2": "high:Q"},
        "left": {"x": x.x("left"), "x2": "right:Q", "y": y.y("value")},
    }
    layers = [
        base.properties(data=sure).mark_rule(strokeWidth=1.5, opacity=0.7).encode(**places)
        for end, places in whiskers.items()
        if (sure := table[table[end].notna()]).size
    ]
    told = tips(frame, {"across": across, "around": f"{across}, 95 % interval"})
    points = base.mark_point(filled=True, opacity=1).encode(
        x=x.x("x"), y=y.y("value"), size=picked_size(click), shape=frame.shape(company, legend), tooltip=told
    )
    return finished(alt.LayerChart(layer=[*layers, points.add_params(click)]), frame.height(seen), frame.theme)


def _data(drawn: Sequence[Pair], frame: Frame) -> pd.DataFrame:
    return pd.DataFrame([{**record(one.y, frame), **_of_x(one)} for one in drawn])


def _of_x(pair: Pair) -> dict[str, object]:
    value, (left, right) = pair.x.value, pair.x.interval or (None, None)
    assert value is not None
    return {"x": value, "left": left, "right": right, "across": plain(value), "around": interval_words(pair.x)}


def _ends(scores: Iterable[MetricScore]) -> list[float]:
    """Values, and the ends of their intervals."""
    return [end for one in scores for end in (*(one.interval or ()), one.value) if end is not None]
