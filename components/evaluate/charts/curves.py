"""Removal curves of many examples: their mean along the shares of units, with a band of the 95 % interval."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from components.charts import MOVED
from components.evaluate.charts.axes import Axis, evenly
from components.evaluate.charts.blank import blank_chart
from components.evaluate.charts.frame import Frame
from components.evaluate.charts.lines import AT, line_chart
from components.evaluate.charts.words import BETTER, record, span_of, table_row
from components.question_words import plural
from engine.evaluation.result import Evaluation
from engine.evaluation.views.points import is_score, points
from engine.metrics.catalog import metric
from engine.metrics.results import MetricScore

WAYS = {"without_top": MOVED["deletion"], "with_top": MOVED["insertion"]}
"""What becomes of the units with the highest scores, by metric."""
PROBABILITY = (0, 1)
"""The whole axis, so that no small fall looks large."""


def removal_points(
    found: Evaluation, frame: Frame, model: str | None = None, id: str = "without_top"
) -> list[MetricScore]:
    """What the chart draws: the curves of one model, the plan's first where none is named."""
    return points(found, id, frame.wanted([model or found.plan.models[0]]))


def removal_chart(
    found: Evaluation, frame: Frame, model: str | None = None, id: str = "without_top", bands: bool = True
) -> alt.LayerChart:
    """A line a method, random's dotted, over the share of units removed (`without_top`) or kept (`with_top`)."""
    drawn = [one for one in removal_points(found, frame, model, id) if one.value is not None]
    if not drawn:
        return blank_chart(frame)
    across = [f"share of {plural(found.plan.units)} {WAYS[id]},", "highest score first"]
    x = Axis(across, alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=10))
    y = evenly(_up(found, id), frame.span or (span_of(drawn) if is_score(found) else PROBABILITY))
    return line_chart(_data(drawn, frame, found), found.plan.company, frame, (x, y), {"moved": WAYS[id]}, bands)


def removal_table(found: Evaluation, frame: Frame, model: str | None = None, id: str = "without_top") -> pd.DataFrame:
    """A row a method and share of units, those without a value too."""
    share = f"{WAYS[id].capitalize()}, %"
    return pd.DataFrame(
        [table_row(one, frame, {share: one.percent}) for one in removal_points(found, frame, model, id)]
    )


def _data(drawn: Sequence[MetricScore], frame: Frame, found: Evaluation) -> pd.DataFrame:
    units = plural(found.plan.units)
    shares = [{AT: (one.percent or 0) / 100, "moved": f"{one.percent} % of the {units}"} for one in drawn]
    return pd.DataFrame([{**record(one, frame), **share} for one, share in zip(drawn, shares, strict=True)])


def _up(found: Evaluation, id: str) -> list[str]:
    what = "score of the model" if is_score(found) else "probability of the predicted class"
    return [what, BETTER[metric(id).better]]
